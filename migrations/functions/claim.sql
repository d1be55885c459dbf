-- Claims: which items a worker calls next, and retries that become due.

-- Claims at most p_slots items for a worker: due lanes in the order of their due time, each at most its share of the slots, its pace
-- (GCRA), its permits and what is left of its plan. A lane that the slots did not suffice for keeps its due time and so comes first at the
-- next poll. Items come in the order of their sequence, each with the sealed key of its scan (null: it was wiped or has expired). The last
-- row has no item but wait_ms, the milliseconds until the next poll can find something (at most 1000), or -1: the worker's lease has
-- expired, take a new one.
create or replace function claim_items(p_worker bigint, p_slots integer)
returns table (tenant_id uuid, api text, item_id uuid, scan_id uuid, number integer, endpoint text, body jsonb, upstream_filters boolean,
               upstream_limit integer, verbatim boolean, shares boolean, grant_id uuid, key_purpose text, key_id text, key_nonce bytea,
               key_ciphertext bytea, key_expires_at timestamptz, wait_ms integer)
language plpgsql
-- The planner takes a tenth of the rows for a LIMIT it does not know and then prefers scans and sorts that grow with the backlog.
set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    circuit  circuits;
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
    t := clock_timestamp();
    -- Lanes that are due while their circuit is open wait for its next probe. When that is due, one lane passes, chosen at random, so that
    -- a caller whose calls alone fail cannot keep the circuit open for the others. Locked lanes are skipped: this waits for nobody.
    for circuit in select * from circuits c where c.opened_at is not null loop
        update lanes l
        set next_at = greatest(circuit.probe_at, t + circuit.probe_every / 10)
                      + random() * circuit.probe_every / 10
        from (select d.tenant_id, d.api from lanes d
              where d.api = circuit.api and d.next_at <= t
              order by d.next_at
              offset (circuit.probe_at <= t)::integer limit 1000
              for no key update skip locked) due
        where l.tenant_id = due.tenant_id and l.api = due.api;
    end loop;
    -- At least four items: to visit a lane costs as much as to claim six (85 and 14 microseconds, docs/decisions/0037).
    select least(p_slots, greatest(4, ceil(p_slots::numeric / greatest(count(*), 1)))) into share
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
            lane := with_pace(lane, t);
        end if;
        -- Bounded above, so that a clock that jumped back cannot stop the lane for long.
        lane.arrival := least(greatest(lane.arrival, t), t + lane.burst * lane.emission + interval '1 minute');
        select count(*) into in_use
        from (select from scan_items i
              where i.tenant_id = lane.tenant_id and i.api = lane.api and i.worker_id is not null
              limit lane.max_in_flight) busy;
        left_of := calls_within_plan(lane, in_use, t);
        may := least(calls_within_pace(lane, t), lane.max_in_flight - in_use, left_of, share);
        wanted := least(may, free);
        got := 0;
        taken := '{}';
        last := lane.virtual_time;
        look := lane.virtual_time;
        while got < wanted loop
            with moved as (
                update scan_items i
                set state = 'claimed', attempt = i.attempt + 1, worker_id = p_worker, claimed_at = t
                where i.is_pending and i.ctid = any (array(
                    select p.ctid from scan_items p
                    where p.tenant_id = lane.tenant_id and p.api = lane.api and p.is_pending and p.turn >= look
                    order by p.turn, p.item_id limit wanted - got))
                returning i.item_id, i.turn
            )
            -- Sorted inside the aggregate: a sort of the plan's own, forbidden above, would make all plans look alike.
            select taken || coalesce(array_agg(m.item_id order by m.turn, m.item_id), '{}'), got + count(*), greatest(last, max(m.turn))
            into taken, got, last from moved m;
            -- Before the lane counts as empty, look below the low-water mark too: nothing should be there, and nothing may be lost.
            exit when look = 0;
            look := 0;
        end loop;
        if got > 0 then
            -- Item by item, in the order of their turns: joined freely, the planner begins with all scans of the tenant.
            return query
            select m.tenant_id, m.api, m.item_id, m.scan_id, m.attempt, s.endpoint, m.body, s.upstream_filters, s.upstream_limit,
                   s.verbatim, s.max_age is not null, g.grant_id, g.purpose, g.key_id, g.nonce, g.ciphertext, g.expires_at, null::integer
            from unnest(taken) x (item_id)
            cross join lateral (select * from scan_items i where i.tenant_id = lane.tenant_id and i.item_id = x.item_id offset 0) m
            cross join lateral (select * from scans s where s.tenant_id = m.tenant_id and s.scan_id = m.scan_id offset 0) s
            left join lateral (select * from key_grants g
                               where g.tenant_id = m.tenant_id and g.grant_id = s.grant_id and g.wiped_at is null
                                 and g.expires_at > clock_timestamp() offset 0) g on true;
        end if;

        lane.arrival := lane.arrival + got * lane.emission;
        lane.virtual_time := last;
        lane.paused_until := null;
        lane.pause_reason := null;
        in_use := in_use + got;
        -- Nothing more before one of its calls has ended: all permits are in use, or the rest of the plan is in flight.
        lane.full_up := in_use >= lane.max_in_flight or coalesce(left_of - got <= 0, false) and in_use > 0;
        -- Fewer than wanted: the lane is empty, unless a late answer has just changed some of its items, which this claim then passed over.
        if got < wanted and exists (select from scan_items p
                                    where p.tenant_id = lane.tenant_id and p.api = lane.api and p.is_pending) then
            lane.next_at := t;
        elsif got < wanted then
            lane.next_at := null;
            lane.next_start := 0;
        elsif lane.full_up then
            lane.next_at := t + interval '1 second';
        elsif left_of <= 0 then
            if lane.window_reset_at > t and lane.window_remaining <= 0 then
                lane.next_at := lane.window_reset_at;
            else
                lane := with_pause(lane, case when lane.plan_remaining = 0 then 'quota_exhausted' else 'reserve_reached' end,
                                coalesce(lane.plan_reset_at, 'infinity'));
            end if;
        elsif got < may and got = free then
            -- Limited by the worker's permits alone: due as before.
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

-- Lanes that have delayed items whose time has come, except those that are given.
create or replace function lanes_with_due_retries(p_limit integer, p_except_tenants uuid[], p_except_apis text[])
returns table (tenant_id uuid, api text)
language sql as $$
    select distinct d.tenant_id, d.api
    from (select i.tenant_id, i.api from scan_items i
          where i.is_delayed and i.not_before <= clock_timestamp()
            and not exists (select from unnest(p_except_tenants, p_except_apis) x (tenant_id, api)
                            where x.tenant_id = i.tenant_id and x.api = i.api)
          order by i.not_before limit p_limit) d
    order by 1, 2
$$;

-- Makes the due retries of one lane pending again; returns how many. They get new sequence numbers, spread like those of a scan of that
-- size: a thousand retries do not go before another scan's five items.
create or replace function release_delayed(p_now timestamptz, p_tenant uuid, p_api text, p_limit integer) returns bigint
language plpgsql as $$
declare
    start bigint := wake_lane(p_tenant, p_api);
    work  record;
    scan  scans;
    moved bigint := 0;
begin
    for work in
        with due as (
            select i.item_id, i.scan_id, i.position from scan_items i
            where i.tenant_id = p_tenant and i.api = p_api and i.is_delayed and i.not_before <= clock_timestamp()
            order by i.item_id limit p_limit
            for no key update
        ), placed as (
            select d.item_id, (row_number() over (partition by d.scan_id order by d.position) - 1)
                              * case s.priority when 'scheduled' then 9 else 1 end as place
            from due d join scans s on s.tenant_id = p_tenant and s.scan_id = d.scan_id
        ), released as (
            update scan_items i set state = 'pending', turn = start + p.place, not_before = null
            from placed p
            where i.tenant_id = p_tenant and i.item_id = p.item_id
            returning i.scan_id, i.item_id
        )
        select r.scan_id, array_agg(r.item_id) as items from released r group by r.scan_id order by r.scan_id
    loop
        moved := moved + cardinality(work.items);
        select * into scan from scans s where s.tenant_id = p_tenant and s.scan_id = work.scan_id for no key update;
        perform follow_scan_status(p_now, scan, work.items);
    end loop;
    return moved;
end $$;
