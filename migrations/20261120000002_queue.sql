-- The queue's moves, as functions: each is one round trip, and its inner statements see what was committed while it waited for a
-- lock. (A claim written as one plain statement takes its snapshot before the lane's lock, so a submit's wake-up can be lost.)
--
-- An item's way:
--
--   pending ──claim──► claimed ──begin_calls──► calling ──record_calls──► done | failed
--      ▲  ▲               │                        ├── a further try is allowed ──► delayed ──release_delayed──► pending
--      │  └───give_up─────┘                        ├── key rejected ──► pending, and the lane stops
--      │                                           └── give_up (the worker is lost) ──► done degraded | delayed
--   hold_scan puts pending, claimed and delayed to held; a cancel puts them to cancelled. What is calling runs on and is recorded.
--
-- What holds everywhere:
--   * locks are taken in one order: lanes, then items, then scans, each sorted by key. The lane's row is the mutex of its pending
--     set: an item becomes pending only under it. Leaving the set needs no lane, because every taker checks the state again.
--   * a claim has a number (scan_items.attempt) that is never used again; whoever acts on a claim names it.
--   * lanes and leases go by clock_timestamp(); every other time is given (p_now).

-- Lanes ------------------------------------------------------------------------------------------------------------------

-- Makes a caller's lane with the pace of a plan that is not known yet; leaves the one that is there.
create function make_lane(p_tenant uuid, p_api text, p_per_minute double precision, p_max_in_flight integer) returns void
language sql as $$
    insert into lanes (tenant_id, api, emission, burst, max_in_flight)
    values (p_tenant, p_api, make_interval(secs => 60 / p_per_minute), greatest(1, floor(p_per_minute / 30))::integer,
            p_max_in_flight)
    on conflict do nothing
$$;

-- Takes the lane's lock, which whoever makes items pending must hold, and has a claimer look at it. Gives the virtual time, where
-- the turns of new items begin: turn = virtual time + position * stride (1 for interactive scans, 9 for scheduled ones).
create function arm_lane(p_tenant uuid, p_api text) returns bigint
language plpgsql as $$
declare
    start bigint;
begin
    update lanes
    set next_at = case when paused_until = 'infinity' then null
                       else least(next_at, greatest(clock_timestamp(), arrival - (burst - 1) * emission, paused_until)) end
    where tenant_id = p_tenant and api = p_api
    returning virtual_time into start;
    if not found then
        raise exception 'there is no % lane of tenant %', p_api, p_tenant;
    end if;
    perform pg_notify('farescan_lane', '');   -- equal notifications of one transaction are one
    return start;
end $$;

-- Stops a lane for so many seconds, or until a resume (null). The longer pause wins.
create function pause_lane(p_tenant uuid, p_api text, p_reason text, p_seconds double precision) returns void
language plpgsql as $$
declare
    until timestamptz := coalesce(clock_timestamp() + make_interval(secs => p_seconds), 'infinity');
begin
    update lanes
    set paused_until = until, pause_reason = p_reason, next_at = nullif(until, 'infinity')
    where tenant_id = p_tenant and api = p_api and (paused_until is null or paused_until < until);
end $$;

-- After completions: lanes that had no place in flight have one now, and know what the plan headers said (null: nothing). A statement
-- of its own, so that recording takes no lane's lock, and one that touches no lane without news. Gives how many lanes were full.
create function tell_lanes(p_now timestamptz, p_tenants uuid[], p_apis text[], p_limits bigint[], p_remaining bigint[],
                           p_reset_seconds double precision[]) returns bigint
language sql as $$
    with news as (
        select l.tenant_id, l.api, l.full_up, x.plan_limit, x.plan_remaining, x.reset_seconds,
               x.plan_limit is not null or x.plan_remaining is not null or x.reset_seconds is not null as spoke
        from lanes l
        join unnest(p_tenants, p_apis, p_limits, p_remaining, p_reset_seconds)
             as x (tenant_id, api, plan_limit, plan_remaining, reset_seconds) on l.tenant_id = x.tenant_id and l.api = x.api
        where l.full_up or x.plan_limit is not null or x.plan_remaining is not null or x.reset_seconds is not null
        order by l.tenant_id, l.api
        for no key update of l
    ), told as (
        update lanes l
        set full_up = false,
            next_at = case when n.full_up and l.paused_until is null then clock_timestamp() else l.next_at end,
            plan_limit = coalesce(n.plan_limit, l.plan_limit),
            plan_remaining = coalesce(n.plan_remaining, l.plan_remaining),
            plan_reset_at = coalesce(p_now + make_interval(secs => n.reset_seconds), l.plan_reset_at),
            plan_seen_at = case when n.spoke then p_now else l.plan_seen_at end
        from news n
        where l.tenant_id = n.tenant_id and l.api = n.api
        returning n.full_up
    )
    select count(*) filter (where t.full_up) from told t
$$;

-- Claim ------------------------------------------------------------------------------------------------------------------

-- Takes at most p_slots items for a worker: due lanes in the order of their due time, each at most its share of the slots, its pace
-- (GCRA) and its places in flight. The last row has no item but wait_ms, the milliseconds until a visit is next of use (at most
-- 1000), or -1: the worker's lease is gone, take a new one.
create function claim(p_worker bigint, p_slots integer)
returns table (tenant_id uuid, api text, item_id uuid, scan_id uuid, number integer, endpoint text, body jsonb, upstream_filters boolean,
               upstream_limit integer, grant_id uuid, wait_ms integer)
language plpgsql
-- The planner takes a tenth of the rows for a LIMIT it does not know and then prefers scans and sorts that grow with the backlog.
set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    lane     record;
    t        timestamptz;
    free     integer := p_slots;
    share    integer;
    in_use   integer;
    places   integer;
    wanted   integer;
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
    select greatest(5, ceil(p_slots::numeric / greatest(count(*), 1))) into share
    from (select from lanes l where l.next_at <= clock_timestamp() limit 32) due;

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
        -- Bounded above, so that a clock that jumped back cannot stop the lane for long.
        lane.arrival := least(greatest(lane.arrival, t), t + lane.burst * lane.emission + interval '1 minute');
        select count(*) into in_use
        from (select from scan_items i
              where i.tenant_id = lane.tenant_id and i.api = lane.api and i.state in ('claimed', 'calling')
              limit lane.max_in_flight) busy;
        places := floor(extract(epoch from t + lane.burst * lane.emission - lane.arrival)
                        / extract(epoch from lane.emission) + 1e-6);
        wanted := least(places, lane.max_in_flight - in_use, share, free);
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
            select array_agg(m.item_id), count(*), greatest(lane.virtual_time, max(m.turn)) into taken, got, last from moved m;
            -- Before the lane counts as empty, look below the low-water mark too: nothing should be there, and nothing may be lost.
            exit when got > 0 or look = 0;
            look := 0;
        end loop;
        if got > 0 then
            -- Item by item: joined freely, the planner begins with all scans of the tenant.
            return query
            with mine as materialized (
                select * from scan_items i where i.tenant_id = lane.tenant_id and i.item_id = any (taken)
            )
            select m.tenant_id, m.api, m.item_id, m.scan_id, m.attempt, s.endpoint, m.body, s.upstream_filters, s.upstream_limit,
                   s.grant_id, null::integer
            from mine m
            cross join lateral (select * from scans s where s.tenant_id = m.tenant_id and s.scan_id = m.scan_id offset 0) s;
        end if;
        update lanes l
        set arrival = lane.arrival + got * lane.emission,
            virtual_time = last,
            full_up = in_use + got >= lane.max_in_flight,
            paused_until = null,
            pause_reason = null,
            next_at = case when wanted > 0 and got = 0 then null
                           when in_use + got >= lane.max_in_flight then t + interval '1 second'
                           else greatest(t, lane.arrival + (got - lane.burst + 1) * lane.emission) end
        where l.tenant_id = lane.tenant_id and l.api = lane.api;
        free := free - got;
    end loop;

    wait_ms := coalesce(
        (select least(1000, ceil(greatest(0, extract(epoch from l.next_at - clock_timestamp()) * 1000)))::integer
         from lanes l where l.next_at is not null order by l.next_at limit 1), 1000);
    return next;
end $$;

-- Begin: the ledger before the first byte ----------------------------------------------------------------------------------

-- Puts claims on record as sent, each with its place in its scan's budget. One row for each claim that is still the worker's own:
--   begun        on record; send it. Asked again with the same attempt id, because the first answer was lost, it is begun still.
--   no_room      the scan's max_requests is reached: hold_scan
--   lane_paused  the lane has stopped since the claim: give_up
--   stopped      the scan is paused or has ended: give_up
-- No row: the claim is no longer the worker's, or its lease is gone.
create function begin_calls(p_now timestamptz, p_workers bigint[], p_tenants uuid[], p_items uuid[], p_numbers integer[],
                            p_attempt_ids uuid[])
returns table (item_id uuid, number integer, verdict text)
language plpgsql as $$
#variable_conflict use_column
declare
    alive bigint[];
    work  record;
    scan  record;
    room  integer;
    begun uuid[];
begin
    -- Shared with nobody who would mark the worker dead: a sweep sees its items either before this or after it, never between.
    select array_agg(w.worker_id) into alive
    from (select w.worker_id from workers w
          where w.worker_id = any (p_workers) and not w.dead and w.lease_until > clock_timestamp()
          order by w.worker_id for share) w;
    perform from scan_items i
    join unnest(p_tenants, p_items) as x (tenant_id, item_id) on i.tenant_id = x.tenant_id and i.item_id = x.item_id
    order by i.tenant_id, i.item_id for no key update of i;

    return query
    select a.item_id, a.number, 'begun'
    from unnest(p_tenants, p_items, p_numbers, p_attempt_ids) as x (tenant_id, item_id, number, attempt_id)
    join attempts a on a.tenant_id = x.tenant_id and a.item_id = x.item_id and a.number = x.number and a.attempt_id = x.attempt_id
    join scan_items i on i.tenant_id = x.tenant_id and i.item_id = x.item_id and i.attempt = x.number and i.state = 'calling';

    for work in
        select i.tenant_id, i.scan_id, i.api, array_agg(i.item_id order by i.position) as items
        from unnest(p_workers, p_tenants, p_items, p_numbers) as x (worker_id, tenant_id, item_id, number)
        join scan_items i on i.tenant_id = x.tenant_id and i.item_id = x.item_id and i.attempt = x.number
                         and i.worker_id = x.worker_id and i.state = 'claimed'
        where x.worker_id = any (alive)
        group by i.tenant_id, i.scan_id, i.api
        order by i.tenant_id, i.scan_id
    loop
        select * into scan from scans s where s.tenant_id = work.tenant_id and s.scan_id = work.scan_id for no key update;
        begun := '{}';
        if scan.status in ('queued', 'running')
           and not exists (select from lanes l where l.tenant_id = work.tenant_id and l.api = work.api
                           and l.paused_until > clock_timestamp())
        then
            room := coalesce(scan.max_requests - scan.requests_spent, cardinality(work.items));
            begun := work.items[1:room];
        end if;
        insert into attempts (tenant_id, item_id, number, attempt_id, scan_id, worker_id, started_at)
        select x.tenant_id, x.item_id, x.number, x.attempt_id, work.scan_id, x.worker_id, p_now
        from unnest(p_workers, p_tenants, p_items, p_numbers, p_attempt_ids) as x (worker_id, tenant_id, item_id, number, attempt_id)
        where x.tenant_id = work.tenant_id and x.item_id = any (begun);
        update scan_items i
        set state = 'calling', calls = i.calls + 1, counted_calls = i.counted_calls + 1, requests_spent = i.requests_spent + 1
        where i.tenant_id = work.tenant_id and i.item_id = any (begun);
        if cardinality(begun) > 0 then
            update scans s
            set requests_spent = s.requests_spent + cardinality(begun), status = 'running',
                started_at = coalesce(s.started_at, p_now)
            where s.tenant_id = work.tenant_id and s.scan_id = work.scan_id;
        end if;
        return query
        select x.item_id, x.number,
               case when x.item_id = any (begun) then 'begun'
                    when scan.status not in ('queued', 'running') then 'stopped'
                    when room is null then 'lane_paused'
                    else 'no_room' end
        from unnest(p_tenants, p_items, p_numbers) as x (tenant_id, item_id, number)
        where x.tenant_id = work.tenant_id and x.item_id = any (work.items);
        room := null;
    end loop;
end $$;

-- The second place of a call, for the one more try of a server error (contract 17): in the ledger, the budget and the lane's pace
-- before its first byte. False: there is none; do not send it.
create function second_place(p_tenant uuid, p_item uuid, p_number integer) returns boolean
language plpgsql as $$
declare
    item record;
begin
    select i.scan_id, i.api into item from scan_items i where i.tenant_id = p_tenant and i.item_id = p_item;
    if not found then
        return false;
    end if;
    update lanes l set arrival = greatest(l.arrival, clock_timestamp()) + l.emission
    where l.tenant_id = p_tenant and l.api = item.api;
    perform from scan_items i
    where i.tenant_id = p_tenant and i.item_id = p_item and i.attempt = p_number and i.state = 'calling' for no key update;
    if not found then
        return false;
    end if;
    update scans s set requests_spent = s.requests_spent + 1
    where s.tenant_id = p_tenant and s.scan_id = item.scan_id and s.status = 'running'
      and (s.max_requests is null or s.requests_spent < s.max_requests);
    if not found then
        return false;
    end if;
    update attempts a set requests_spent = a.requests_spent + 1
    where a.tenant_id = p_tenant and a.item_id = p_item and a.number = p_number;
    update scan_items i set requests_spent = i.requests_spent + 1
    where i.tenant_id = p_tenant and i.item_id = p_item;
    return true;
end $$;

-- Scans ------------------------------------------------------------------------------------------------------------------

-- Counts items that have ended, takes back places in the budget that were not used, and ends the scan with its last item: its status
-- is settled, its key is wiped and whoever waits for it is told. A late answer may still make an incomplete scan a completed one.
create function count_ended(p_now timestamptz, p_tenant uuid, p_scan uuid, p_ok bigint, p_empty bigint, p_partial bigint,
                            p_degraded bigint, p_failed bigint, p_cancelled bigint, p_unused bigint) returns scans
language plpgsql as $$
declare
    scan scans;
    good boolean;
begin
    update scans s
    set ok = s.ok + p_ok, empty = s.empty + p_empty, partial = s.partial + p_partial, degraded = s.degraded + p_degraded,
        failed = s.failed + p_failed, cancelled = s.cancelled + p_cancelled, requests_spent = s.requests_spent - p_unused
    where s.tenant_id = p_tenant and s.scan_id = p_scan
    returning * into scan;
    good := scan.partial + scan.degraded + scan.failed = 0;
    if scan.ok + scan.empty + scan.partial + scan.degraded + scan.failed + scan.cancelled < scan.total then
        return scan;
    end if;
    if scan.finished_at is null then
        update scans s
        set status = case when s.status = 'cancelled' then s.status when good then 'completed' else 'incomplete' end,
            status_reason = null, finished_at = p_now
        where s.tenant_id = p_tenant and s.scan_id = p_scan
        returning * into scan;
        update key_grants g set nonce = '', ciphertext = '', wiped_at = p_now
        where g.tenant_id = p_tenant and g.grant_id = scan.grant_id and g.wiped_at is null;
        perform pg_notify('farescan_scan', p_scan::text);
    elsif scan.status = 'incomplete' and good then
        update scans s set status = 'completed'
        where s.tenant_id = p_tenant and s.scan_id = p_scan
        returning * into scan;
    end if;
    return scan;
end $$;

-- Items that were put back follow their scan, which may have stopped meanwhile: held under a pause, cancelled under a cancel. The
-- caller holds the locks of the items and of the scan.
create function follow_scan(p_now timestamptz, p_scan scans, p_items uuid[]) returns void
language plpgsql as $$
declare
    moved bigint;
begin
    if p_scan.status in ('queued', 'running') then
        return;
    end if;
    update scan_items i
    set state = case when p_scan.status = 'paused' then 'held' else 'cancelled' end, not_before = null
    where i.tenant_id = p_scan.tenant_id and i.item_id = any (p_items) and i.state in ('pending', 'delayed');
    get diagnostics moved = row_count;
    if p_scan.status <> 'paused' and moved > 0 then
        perform count_ended(p_now, p_scan.tenant_id, p_scan.scan_id, 0, 0, 0, 0, 0, moved, 0);
    end if;
end $$;

-- Pauses a live scan and holds what of it has not been sent; what is calling runs on. For budget_spent the budget is looked at again
-- under the scan's lock. False: there was nothing to pause.
create function hold_scan(p_tenant uuid, p_scan uuid, p_reason text) returns boolean
language plpgsql as $$
declare
    lane_api text;
begin
    select s.api into lane_api from scans s where s.tenant_id = p_tenant and s.scan_id = p_scan;
    if not found then
        return false;
    end if;
    perform arm_lane(p_tenant, lane_api);
    perform from scan_items i
    where i.tenant_id = p_tenant and i.scan_id = p_scan and i.state in ('pending', 'claimed', 'delayed')
    order by i.item_id for no key update;
    update scans s set status = 'paused', status_reason = p_reason
    where s.tenant_id = p_tenant and s.scan_id = p_scan and s.status in ('queued', 'running')
      and (p_reason <> 'budget_spent' or s.requests_spent >= s.max_requests);
    if not found then
        return false;
    end if;
    update scan_items i set state = 'held', worker_id = null, not_before = null
    where i.tenant_id = p_tenant and i.scan_id = p_scan and i.state in ('pending', 'claimed', 'delayed');
    perform pg_notify('farescan_scan', p_scan::text);
    return true;
end $$;

-- The best price of a scan, when some of its items have ended. Prices of another currency than the scan's best do not compare.
create function keep_best(p_tenant uuid, p_scan uuid, p_items uuid[]) returns void
language plpgsql as $$
begin
    -- The item of the best price was searched again, so its price may be gone: look at all of them.
    update scans s set best_price = null, best_currency = null, best_item_id = null
    where s.tenant_id = p_tenant and s.scan_id = p_scan and s.best_item_id = any (p_items);
    if found then
        select array_agg(i.item_id) into p_items from scan_items i where i.tenant_id = p_tenant and i.scan_id = p_scan;
    end if;
    update scans s set best_price = b.best_price, best_currency = b.currency, best_item_id = b.item_id
    from (select i.item_id, i.best_price, i.currency
          from scan_items i
          join scans own on own.tenant_id = i.tenant_id and own.scan_id = i.scan_id
          where i.tenant_id = p_tenant and i.item_id = any (p_items) and i.best_price is not null and i.state = 'done'
            and (own.best_currency is null or i.currency is not distinct from own.best_currency)
          order by i.best_price, i.position limit 1) b
    where s.tenant_id = p_tenant and s.scan_id = p_scan and (s.best_price is null or b.best_price < s.best_price);
end $$;

-- Record -----------------------------------------------------------------------------------------------------------------

-- A finished call, as the writer hands it over.
create type finished_call as (
    tenant_id      uuid,
    item_id        uuid,
    number         integer,
    ended_at       timestamptz,
    ending         text,              -- done, failed; returned: the key was not taken, so the item waits as if it had not been asked
    may_retry      boolean,           -- degraded in a way that another try may mend
    http_status    smallint,
    search_status  text,
    reason         text,
    error          text,
    search_headers jsonb,
    latency_ms     integer,
    billed         integer,
    results        integer,
    best_price     numeric,
    currency       text,
    pause_reason   text,              -- the lane stops, for so many seconds or (null) until a resume
    pause_seconds  double precision
);

-- Stores what became of calls (a JSON array of finished_call): attempts, items, scans, and the lanes that stop. Gives back those that
-- were not on record before: only their answers and observations are stored, so that recording twice stores once.
--
-- The answer of a call that was given up as lost still completes its item, unless a newer attempt has begun: then, and when the item
-- was cancelled or waits for a better try, it is kept with its attempt alone. Its cost counts either way.
create function record_calls(p_now timestamptz, p_calls jsonb)
returns table (tenant_id uuid, item_id uuid, number integer)
language plpgsql as $$
#variable_conflict use_column
declare
    work record;
    scan scans;
begin
    for work in
        select i.tenant_id, i.api, c.pause_reason, c.pause_seconds
        from jsonb_populate_recordset(null::finished_call, p_calls) c
        join scan_items i on i.tenant_id = c.tenant_id and i.item_id = c.item_id
        where c.pause_reason is not null
        order by i.tenant_id, i.api
    loop
        perform from lanes l where l.tenant_id = work.tenant_id and l.api = work.api for no key update;
        perform pause_lane(work.tenant_id, work.api, work.pause_reason, work.pause_seconds);
    end loop;
    perform from scan_items i
    join jsonb_populate_recordset(null::finished_call, p_calls) c on i.tenant_id = c.tenant_id and i.item_id = c.item_id
    order by i.tenant_id, i.item_id for no key update of i;

    for work in
        with seen as (
            select c.*, i.scan_id, i.state, a.requests_spent - least(c.billed, a.requests_spent) as unused,
                   s.max_attempts, s.retry_delay, i.counted_calls, l.virtual_time,
                   i.state = 'calling' and i.attempt = c.number as live,
                   i.state = 'done' and i.reason = 'worker_lost' as given_up,
                   exists (select from attempts newer where newer.tenant_id = c.tenant_id and newer.item_id = c.item_id
                           and newer.number > c.number) as outrun
            from jsonb_populate_recordset(null::finished_call, p_calls) c
            join scan_items i on i.tenant_id = c.tenant_id and i.item_id = c.item_id
            join scans s on s.tenant_id = i.tenant_id and s.scan_id = i.scan_id
            join lanes l on l.tenant_id = i.tenant_id and l.api = i.api
            join attempts a on a.tenant_id = c.tenant_id and a.item_id = c.item_id and a.number = c.number
                           and (a.ended_at is null or a.reason = 'worker_lost')
        ), decided as (
            select s.*,
                   case when s.live and s.ending = 'returned' then 'pending'
                        when s.live and s.may_retry and s.counted_calls < s.max_attempts then 'delayed'
                        when s.live then s.ending
                        when s.outrun or s.ending = 'returned' then null
                        when s.given_up then s.ending
                        -- Lost, and waiting for a further try that has not begun: a good answer makes it needless.
                        when s.state in ('pending', 'claimed', 'delayed', 'held') and not s.may_retry then s.ending
                   end as next_state
            from seen s
        ), ended_attempts as (
            update attempts a
            set ended_at = d.ended_at, http_status = d.http_status, search_status = d.search_status, reason = d.reason,
                error = d.error, search_headers = d.search_headers, latency_ms = d.latency_ms,
                requests_spent = a.requests_spent - d.unused
            from decided d
            where a.tenant_id = d.tenant_id and a.item_id = d.item_id and a.number = d.number
        ), moved as (
            update scan_items i
            set state = coalesce(d.next_state, i.state),
                worker_id = case when d.next_state is null then i.worker_id end,
                turn = case when d.next_state = 'pending' then d.virtual_time else i.turn end,
                not_before = case when d.next_state = 'delayed' then clock_timestamp() + d.retry_delay
                                  when d.next_state is null then i.not_before end,
                counted_calls = i.counted_calls - case when d.live and d.ending = 'returned' then 1 else 0 end,
                requests_spent = i.requests_spent - d.unused,
                search_status = case when d.next_state = 'done' then d.search_status
                                     when d.next_state is null then i.search_status end,
                reason = case when d.next_state in ('done', 'failed') then d.reason when d.next_state is null then i.reason end,
                error = case when d.next_state in ('done', 'failed') then d.error when d.next_state is null then i.error end,
                results = case when d.next_state = 'done' then d.results when d.next_state is null then i.results end,
                best_price = case when d.next_state = 'done' then d.best_price when d.next_state is null then i.best_price end,
                currency = case when d.next_state = 'done' then d.currency when d.next_state is null then i.currency end,
                observed_at = case when d.next_state in ('done', 'failed') then d.ended_at else i.observed_at end,
                latency_ms = case when d.next_state in ('done', 'failed') then d.latency_ms else i.latency_ms end
            from decided d
            where i.tenant_id = d.tenant_id and i.item_id = d.item_id
        )
        select d.tenant_id, d.scan_id, sum(d.unused) as unused,
               array_agg(d.item_id) as items, array_agg(d.number) as numbers,
               array_agg(d.item_id) filter (where d.next_state in ('done', 'failed')) as ended,
               array_agg(d.item_id) filter (where d.next_state in ('pending', 'delayed')) as put_back,
               count(*) filter (where d.next_state = 'done' and d.search_status = 'ok') as ok,
               count(*) filter (where d.next_state = 'done' and d.search_status = 'empty') as empty,
               count(*) filter (where d.next_state = 'done' and d.search_status = 'partial') as partial,
               count(*) filter (where d.next_state = 'done' and d.search_status = 'degraded')
                   - count(*) filter (where d.next_state is not null and d.given_up) as degraded,
               count(*) filter (where d.next_state = 'failed') as failed
        from decided d
        group by d.tenant_id, d.scan_id
        order by d.tenant_id, d.scan_id
    loop
        scan := count_ended(p_now, work.tenant_id, work.scan_id, work.ok, work.empty, work.partial, work.degraded, work.failed, 0,
                            work.unused);
        if work.put_back is not null then
            perform follow_scan(p_now, scan, work.put_back);
        end if;
        if work.ended is not null then
            perform keep_best(work.tenant_id, work.scan_id, work.ended);
        end if;
        return query select work.tenant_id, x.item_id, x.number from unnest(work.items, work.numbers) as x (item_id, number);
    end loop;
end $$;

-- Give up, sweep ---------------------------------------------------------------------------------------------------------

-- Ends claims of one lane that nobody will carry on. One that was only claimed goes back; of one that was calling nobody knows
-- whether it was billed, so its attempt ends as worker_lost, and it is tried again only if its scan allows that. Gives the lost, with
-- what they asked.
create function give_up(p_now timestamptz, p_tenant uuid, p_api text, p_items uuid[], p_numbers integer[])
returns table (item_id uuid, number integer, endpoint text, body jsonb)
language plpgsql as $$
#variable_conflict use_column
declare
    start bigint := arm_lane(p_tenant, p_api);
    work  record;
    scan  scans;
begin
    perform from scan_items i
    join unnest(p_items, p_numbers) as x (item_id, number) on i.item_id = x.item_id and i.attempt = x.number
    where i.tenant_id = p_tenant and i.state in ('claimed', 'calling')
    order by i.tenant_id, i.item_id for no key update of i;

    for work in
        with seen as (
            select i.item_id, i.attempt, i.scan_id, i.state, s.retry_delay,
                   case when i.state = 'claimed' then 'pending'
                        when i.counted_calls < s.max_attempts then 'delayed'
                        else 'done' end as next_state
            from unnest(p_items, p_numbers) as x (item_id, number)
            join scan_items i on i.tenant_id = p_tenant and i.item_id = x.item_id and i.attempt = x.number
                             and i.api = p_api and i.state in ('claimed', 'calling')
            join scans s on s.tenant_id = p_tenant and s.scan_id = i.scan_id
        ), lost as (
            update attempts a set ended_at = p_now, search_status = 'degraded', reason = 'worker_lost'
            from seen x
            where a.tenant_id = p_tenant and a.item_id = x.item_id and a.number = x.attempt and x.state = 'calling'
        ), moved as (
            update scan_items i
            set state = x.next_state, worker_id = null,
                turn = case when x.next_state = 'pending' then start else i.turn end,
                not_before = case when x.next_state = 'delayed' then clock_timestamp() + x.retry_delay end,
                search_status = case when x.next_state = 'done' then 'degraded' end,
                reason = case when x.next_state = 'done' then 'worker_lost' end,
                observed_at = case when x.next_state = 'done' then p_now else i.observed_at end
            from seen x
            where i.tenant_id = p_tenant and i.item_id = x.item_id
        )
        select x.scan_id, count(*) filter (where x.next_state = 'done') as degraded,
               array_agg(x.item_id) filter (where x.next_state <> 'done') as put_back,
               array_agg(x.item_id) filter (where x.state = 'calling') as lost,
               array_agg(x.attempt) filter (where x.state = 'calling') as lost_numbers
        from seen x
        group by x.scan_id
        order by x.scan_id
    loop
        scan := count_ended(p_now, p_tenant, work.scan_id, 0, 0, 0, work.degraded, 0, 0, 0);
        if work.put_back is not null then
            perform follow_scan(p_now, scan, work.put_back);
        end if;
        return query
        select i.item_id, x.number, scan.endpoint, i.body
        from unnest(work.lost, work.lost_numbers) as x (item_id, number)
        join scan_items i on i.tenant_id = p_tenant and i.item_id = x.item_id;
    end loop;
end $$;

-- Marks workers dead whose lease has run out, but not while the database itself has been up for less than a lease: they could not
-- renew while it was down.
create function bury_workers(p_lease interval) returns bigint
language sql as $$
    with buried as (
        update workers w set dead = true
        where w.worker_id in (select o.worker_id from workers o where not o.dead and o.lease_until < clock_timestamp()
                              order by o.worker_id limit 1000 for update)
          and pg_postmaster_start_time() < clock_timestamp() - p_lease
        returning 1
    )
    select count(*) from buried
$$;

-- Claims of workers that are dead or that no lease knows, at most p_limit, lane by lane: each lane is given up in a transaction of its
-- own, so that a sweep holds one lane at a time.
create function orphans(p_limit integer) returns table (tenant_id uuid, api text, items uuid[], numbers integer[])
language sql as $$
    select o.tenant_id, o.api, array_agg(o.item_id), array_agg(o.attempt)
    from (select i.tenant_id, i.api, i.item_id, i.attempt
          from scan_items i
          left join workers w on w.worker_id = i.worker_id
          where i.state in ('claimed', 'calling') and (w.dead or w.worker_id is null)
          limit p_limit) o
    group by o.tenant_id, o.api
    order by o.tenant_id, o.api
$$;

-- Claims that stand under a live worker but that it does not have: the answer to its claim was lost after the commit. p_grace is
-- longer than any claim takes to be answered.
create function strays(p_worker bigint, p_held uuid[], p_grace interval)
returns table (tenant_id uuid, api text, items uuid[], numbers integer[])
language sql as $$
    select i.tenant_id, i.api, array_agg(i.item_id), array_agg(i.attempt)
    from scan_items i
    where i.worker_id = p_worker and i.state in ('claimed', 'calling') and i.claimed_at < clock_timestamp() - p_grace
      and not i.item_id = any (p_held)
    group by i.tenant_id, i.api
    order by i.tenant_id, i.api
$$;

-- Lanes with a retry that is due.
create function lanes_with_due_retries(p_limit integer) returns table (tenant_id uuid, api text)
language sql as $$
    select distinct d.tenant_id, d.api
    from (select i.tenant_id, i.api from scan_items i
          where i.state = 'delayed' and i.not_before <= clock_timestamp() order by i.not_before limit p_limit) d
    order by 1, 2
$$;

-- Makes the due retries of one lane pending again; gives how many.
create function release_delayed(p_now timestamptz, p_tenant uuid, p_api text, p_limit integer) returns bigint
language plpgsql as $$
declare
    start bigint := arm_lane(p_tenant, p_api);
    work  record;
    scan  scans;
    moved bigint := 0;
begin
    for work in
        with due as (
            select i.item_id, i.scan_id from scan_items i
            where i.tenant_id = p_tenant and i.api = p_api and i.state = 'delayed' and i.not_before <= clock_timestamp()
            order by i.item_id limit p_limit
            for no key update
        ), released as (
            update scan_items i set state = 'pending', turn = start, not_before = null
            from due d
            where i.tenant_id = p_tenant and i.item_id = d.item_id
            returning i.scan_id, i.item_id
        )
        select r.scan_id, array_agg(r.item_id) as items from released r group by r.scan_id order by r.scan_id
    loop
        moved := moved + cardinality(work.items);
        select * into scan from scans s where s.tenant_id = p_tenant and s.scan_id = work.scan_id for no key update;
        perform follow_scan(p_now, scan, work.items);
    end loop;
    return moved;
end $$;
