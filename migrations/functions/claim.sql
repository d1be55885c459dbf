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
    circuit circuits;
    found   record;
    lane    lanes;
    t       timestamptz;
    free    integer := p_slots;   -- not chosen for yet
    share   integer;
    chosen  tid[];
    -- Of each lane that is visited: its row, its calls in flight, what is left of its plan, how many calls it may have, and how many of
    -- these there are slots for.
    seen    lanes[]   := '{}';
    row_ids tid[]     := '{}';
    busy    integer[] := '{}';
    lefts   bigint[]  := '{}';
    mays    bigint[]  := '{}';
    wants   bigint[]  := '{}';
    items   tid[]     := '{}';
    -- The claimed items and their tenants.
    taken   uuid[]    := '{}';
    tenants uuid[]    := '{}';
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

    -- The time at which the claim's items count against the pace of their lanes.
    t := clock_timestamp();
    for found in
        select l as lane, l.ctid as row_id from lanes l
        where l.next_at <= clock_timestamp() order by l.next_at limit 32 for no key update skip locked
    loop
        exit when free <= 0;
        lane := found.lane;
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
        seen := array_append(seen, lane);
        row_ids := array_append(row_ids, found.row_id);
        busy := array_append(busy, (select count(*)::integer
                                    from (select from scan_items i
                                          where i.tenant_id = lane.tenant_id and i.api = lane.api and i.worker_id is not null
                                          limit lane.max_in_flight) b));
        lefts := array_append(lefts, calls_within_plan(lane, busy[cardinality(seen)], t));
        mays := array_append(mays, least(calls_within_pace(lane, t), lane.max_in_flight - busy[cardinality(seen)],
                                         lefts[cardinality(seen)], share)::bigint);
        wants := array_append(wants, least(mays[cardinality(seen)], free::bigint));
        continue when wants[cardinality(seen)] <= 0;
        chosen := array(select p.ctid from scan_items p
                        where p.tenant_id = lane.tenant_id and p.api = lane.api and p.is_pending and p.turn >= lane.virtual_time
                        order by p.turn, p.item_id limit wants[cardinality(seen)]);
        if cardinality(chosen) < wants[cardinality(seen)] and lane.virtual_time > 0 then
            -- Before the lane counts as empty, look below the low-water mark too: nothing should be there, and nothing may be lost.
            chosen := chosen || array(select p.ctid from scan_items p
                                      where p.tenant_id = lane.tenant_id and p.api = lane.api and p.is_pending and p.turn < lane.virtual_time
                                      order by p.turn, p.item_id limit wants[cardinality(seen)] - cardinality(chosen));
        end if;
        items := items || chosen;
        free := free - cardinality(chosen);
    end loop;

    -- One statement for the items of all lanes: what a statement costs beside its rows is more than a few rows. A claim shows nowhere, so it
    -- takes no event numbers.
    perform set_config('farescan.numbers_items', 'on', true);
    for found in
        with moved as materialized (
            update scan_items i
            set state = 'claimed', attempt = i.attempt + 1, worker_id = p_worker, claimed_at = t
            where i.is_pending and i.ctid = any (items)
            returning i.tenant_id, i.api, i.item_id, i.turn
        )
        -- Sorted inside the aggregate: a sort of the plan's own, forbidden above, would make all plans look alike.
        select l.ordinality::integer as nth, count(m.item_id)::integer as got, max(m.turn) as last,
               array_agg(m.item_id order by m.turn, m.item_id) filter (where m.item_id is not null) as items
        from unnest(seen) with ordinality l
        left join moved m on m.tenant_id = l.tenant_id and m.api = l.api
        group by l.ordinality
    loop
        lane := seen[found.nth];
        taken := taken || found.items;
        tenants := tenants || array_fill(lane.tenant_id, array[found.got]);
        lane.arrival := lane.arrival + found.got * lane.emission;
        lane.virtual_time := greatest(lane.virtual_time, found.last);
        lane.paused_until := null;
        lane.pause_reason := null;
        -- Nothing more before one of its calls has ended: all permits are in use, or the rest of the plan is in flight.
        lane.full_up := busy[found.nth] + found.got >= lane.max_in_flight
                        or coalesce(lefts[found.nth] - found.got <= 0, false) and busy[found.nth] + found.got > 0;
        -- Fewer than wanted: the lane is empty, unless a late answer has just changed some of its items, which this claim then passed over.
        if found.got < wants[found.nth] and exists (select from scan_items p
                                                    where p.tenant_id = lane.tenant_id and p.api = lane.api and p.is_pending) then
            lane.next_at := t;
        elsif found.got < wants[found.nth] then
            lane.next_at := null;
            lane.next_start := 0;
        elsif lane.full_up then
            lane.next_at := t + interval '1 second';
        elsif lefts[found.nth] <= 0 then
            if lane.window_reset_at > t and lane.window_remaining <= 0 then
                lane.next_at := lane.window_reset_at;
            else
                lane := with_pause(lane, case when lane.plan_remaining = 0 then 'quota_exhausted' else 'reserve_reached' end,
                                coalesce(lane.plan_reset_at, 'infinity'));
            end if;
        elsif wants[found.nth] < mays[found.nth] then
            -- Limited by the worker's permits alone: due as before.
        else
            lane.next_at := greatest(t, lane.arrival - (lane.burst - 1) * lane.emission);
        end if;
        seen[found.nth] := lane;
    end loop;
    perform set_config('farescan.numbers_items', 'off', true);
    if taken <> '{}' then
        -- Item by item: joined freely, the planner begins with all scans of a tenant.
        return query
        select m.tenant_id, m.api, m.item_id, m.scan_id, m.attempt, s.endpoint, m.body, s.upstream_filters, s.upstream_limit,
               s.verbatim, s.max_age is not null, g.grant_id, g.purpose, g.key_id, g.nonce, g.ciphertext, g.expires_at, null::integer
        from unnest(tenants, taken) x (tenant_id, item_id)
        cross join lateral (select * from scan_items i where i.tenant_id = x.tenant_id and i.item_id = x.item_id offset 0) m
        cross join lateral (select * from scans s where s.tenant_id = m.tenant_id and s.scan_id = m.scan_id offset 0) s
        left join lateral (select * from key_grants g
                           where g.tenant_id = m.tenant_id and g.grant_id = s.grant_id and g.wiped_at is null
                             and g.expires_at > clock_timestamp() offset 0) g on true;
    end if;
    if seen <> '{}' then
        update lanes l
        set arrival = s.arrival, virtual_time = s.virtual_time, full_up = s.full_up, next_at = s.next_at, paused_until = s.paused_until,
            pause_reason = s.pause_reason, emission = s.emission, burst = s.burst, max_in_flight = s.max_in_flight,
            pace_source = s.pace_source, slowed_to = s.slowed_to, slowed_at = s.slowed_at, next_start = s.next_start
        from unnest(seen) with ordinality s
        where l.ctid = row_ids[s.ordinality];
    end if;

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
