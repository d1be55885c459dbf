-- One caller's locked lane is not in the way of the others', and new work of a lane is not in the way of its old work.

-- Marks workers dead whose lease has run out, but not while the database itself has been up for less than a lease: they could not
-- renew while it was down. A row that somebody holds is for the next sweep.
create or replace function bury_workers(p_lease interval) returns bigint
language sql as $$
    with buried as (
        update workers w set dead = true
        where w.worker_id in (select o.worker_id from workers o where not o.dead and o.lease_until < clock_timestamp()
                              order by o.worker_id limit 1000 for update skip locked)
          and pg_postmaster_start_time() < clock_timestamp() - p_lease
        returning 1
    )
    select count(*) from buried
$$;

-- Claims of workers that are dead or that no lease knows, at most p_limit, lane by lane: each lane is given up in a transaction of its
-- own, so that a sweep holds one lane at a time. Not of the lanes p_except, which were busy: however many claims they have, those of
-- others are found.
drop function orphans(integer);
create function orphans(p_limit integer, p_except_tenants uuid[], p_except_apis text[])
returns table (tenant_id uuid, api text, items uuid[], numbers integer[])
language sql as $$
    select o.tenant_id, o.api, array_agg(o.item_id), array_agg(o.attempt)
    from (select i.tenant_id, i.api, i.item_id, i.attempt
          from scan_items i
          left join workers w on w.worker_id = i.worker_id
          where i.state in ('claimed', 'calling') and (w.dead or w.worker_id is null)
            and not exists (select from unnest(p_except_tenants, p_except_apis) x (tenant_id, api)
                            where x.tenant_id = i.tenant_id and x.api = i.api)
          limit p_limit) o
    group by o.tenant_id, o.api
    order by o.tenant_id, o.api
$$;

-- Lanes with a retry that is due, but for the lanes p_except, which were busy.
drop function lanes_with_due_retries(integer);
create function lanes_with_due_retries(p_limit integer, p_except_tenants uuid[], p_except_apis text[])
returns table (tenant_id uuid, api text)
language sql as $$
    select distinct d.tenant_id, d.api
    from (select i.tenant_id, i.api from scan_items i
          where i.state = 'delayed' and i.not_before <= clock_timestamp()
            and not exists (select from unnest(p_except_tenants, p_except_apis) x (tenant_id, api)
                            where x.tenant_id = i.tenant_id and x.api = i.api)
          order by i.not_before limit p_limit) d
    order by 1, 2
$$;

-- Where the turns of the next scan begin, unless the virtual time is further. Start-time fair queueing shares a lane between its scans
-- while there are few of them; single searches, of which each is a scan, would all begin at the virtual time, which moves only when a
-- later turn is claimed: as long as they come as fast as the lane makes calls, nothing else would get one. So all scans of one item
-- count as one scan: each begins a turn after the one before. One of n items moves the next by the n-th part of that.
alter table lanes add column next_start double precision not null default 0;

-- arm_lane for a new scan of so many items: gives where its turns begin.
create function start_turns(p_tenant uuid, p_api text, p_items integer, p_stride bigint) returns bigint
language plpgsql as $$
declare
    start double precision := arm_lane(p_tenant, p_api);
begin
    select greatest(start, l.next_start) into start from lanes l where l.tenant_id = p_tenant and l.api = p_api;
    update lanes l set next_start = start + p_stride::double precision / greatest(p_items, 1)
    where l.tenant_id = p_tenant and l.api = p_api;
    return floor(start);
end $$;

-- Takes at most p_slots items for a worker: due lanes in the order of their due time, each at most its share of the slots, its pace
-- (GCRA), its places in flight and what is left of its plan. A lane that the slots did not suffice for keeps its due time and so comes
-- first at the next visit. Items come in the order of their turns. The last row has no item but wait_ms, the milliseconds until a visit
-- is next of use (at most 1000), or -1: the worker's lease is gone, take a new one.
create or replace function claim(p_worker bigint, p_slots integer)
returns table (tenant_id uuid, api text, item_id uuid, scan_id uuid, number integer, endpoint text, body jsonb, upstream_filters boolean,
               upstream_limit integer, grant_id uuid, wait_ms integer)
language plpgsql
-- The planner takes a tenth of the rows for a LIMIT it does not know and then prefers scans and sorts that grow with the backlog.
set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    lane     lanes;
    t        timestamptz;
    free     integer := p_slots;
    share    integer;
    in_use   integer;
    may      bigint;
    wanted   bigint;
    left_of  bigint;
    look     bigint;
    taken    uuid[];
    got      integer;
    last     bigint;
begin
    if not exists (select from workers w where w.worker_id = p_worker and not w.dead and w.lease_until > clock_timestamp()) then
        wait_ms := -1;
        return next;
        return;
    end if;
    select ceil(p_slots::numeric / greatest(count(*), 1)) into share
    from (select from lanes l where l.next_at <= clock_timestamp() limit 20) due;

    for lane in
        select * from lanes l where l.next_at <= clock_timestamp() order by l.next_at limit 32 for no key update skip locked
    loop
        exit when free <= 0;
        t := clock_timestamp();
        if lane.paused_until > t then
            update lanes l set next_at = nullif(lane.paused_until, 'infinity')
            where l.tenant_id = lane.tenant_id and l.api = lane.api;
            continue;
        end if;
        if lane.slowed_at is not null then
            lane := paced(lane, t);
        end if;
        -- Bounded above, so that a clock that jumped back cannot stop the lane for long.
        lane.arrival := least(greatest(lane.arrival, t), t + lane.burst * lane.emission + interval '1 minute');
        select count(*) into in_use
        from (select from scan_items i
              where i.tenant_id = lane.tenant_id and i.api = lane.api and i.state in ('claimed', 'calling')
              limit lane.max_in_flight) busy;
        left_of := calls_left(lane, in_use, t);
        may := least(lane_places(lane, t), lane.max_in_flight - in_use, left_of, share);
        wanted := least(may, free);
        got := 0;
        last := lane.virtual_time;
        look := lane.virtual_time;
        while wanted > 0 loop
            with moved as (
                update scan_items i
                set state = 'claimed', attempt = i.attempt + 1, worker_id = p_worker, claimed_at = t
                where i.state = 'pending' and i.ctid = any (array(
                    select p.ctid from scan_items p
                    where p.tenant_id = lane.tenant_id and p.api = lane.api and p.state = 'pending' and p.turn >= look
                    order by p.turn, p.item_id limit wanted))
                returning i.item_id, i.turn
            )
            -- Sorted inside the aggregate: a sort of the plan's own, forbidden above, would make all plans look alike.
            select array_agg(m.item_id order by m.turn, m.item_id), count(*), greatest(lane.virtual_time, max(m.turn))
            into taken, got, last from moved m;
            -- Before the lane counts as empty, look below the low-water mark too: nothing should be there, and nothing may be lost.
            exit when got > 0 or look = 0;
            look := 0;
        end loop;
        if got > 0 then
            -- Item by item, in the order of their turns: joined freely, the planner begins with all scans of the tenant.
            return query
            select m.tenant_id, m.api, m.item_id, m.scan_id, m.attempt, s.endpoint, m.body, s.upstream_filters, s.upstream_limit,
                   s.grant_id, null::integer
            from unnest(taken) x (item_id)
            cross join lateral (select * from scan_items i where i.tenant_id = lane.tenant_id and i.item_id = x.item_id offset 0) m
            cross join lateral (select * from scans s where s.tenant_id = m.tenant_id and s.scan_id = m.scan_id offset 0) s;
        end if;

        lane.arrival := lane.arrival + got * lane.emission;
        lane.virtual_time := last;
        lane.paused_until := null;
        lane.pause_reason := null;
        in_use := in_use + got;
        -- Nothing more before one of its calls has ended: all places are taken, or all that is left of the plan is under way.
        lane.full_up := in_use >= lane.max_in_flight or coalesce(left_of - got <= 0, false) and in_use > 0;
        if wanted > 0 and got = 0 then
            lane.next_at := null;
            lane.next_start := 0;
        elsif lane.full_up then
            lane.next_at := t + interval '1 second';
        elsif left_of <= 0 then
            if lane.window_reset_at > t and lane.window_remaining <= 0 then
                lane.next_at := lane.window_reset_at;
            else
                lane := stopped(lane, case when lane.plan_remaining = 0 then 'quota_exhausted' else 'reserve_reached' end,
                                coalesce(lane.plan_reset_at, 'infinity'));
            end if;
        elsif got < may and got = free then
            -- Cut short by the slots alone: due as before.
        else
            lane.next_at := greatest(t, lane.arrival - (lane.burst - 1) * lane.emission);
        end if;
        update lanes l
        set arrival = lane.arrival, virtual_time = lane.virtual_time, full_up = lane.full_up, next_at = lane.next_at,
            paused_until = lane.paused_until, pause_reason = lane.pause_reason, emission = lane.emission, burst = lane.burst,
            max_in_flight = lane.max_in_flight, pace_source = lane.pace_source, slowed_to = lane.slowed_to, slowed_at = lane.slowed_at,
            next_start = lane.next_start
        where l.tenant_id = lane.tenant_id and l.api = lane.api;
        free := free - got;
    end loop;

    wait_ms := coalesce(
        (select least(1000, ceil(greatest(0, extract(epoch from l.next_at - clock_timestamp()) * 1000)))::integer
         from lanes l where l.next_at is not null order by l.next_at limit 1), 1000);
    return next;
end $$;
