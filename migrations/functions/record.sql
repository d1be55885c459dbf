-- Record: what finished calls came to (docs/decisions/0021, 0022, 0023).
--
-- An outcome belongs to its attempt id. Its row may be missing, because a standby that had not received it was promoted, and its number may
-- stand for another call by now; it was sent and billed all the same, so its row is restored and counted.
--
-- A refusal that comes late pauses nothing: only a call that is recorded for the first time, and that began after the lane's last resume, may
-- pause it, from when its answer came.
--
-- Rows are read as in begin.sql.

-- The transaction of a batch:
--   lock_lanes_of_calls   only where a call may pause its lane or puts its item back
--   open_calls            locks the items, so that nothing changes what it finds
--   restore_calls         only where a failover lost the row of a call
--   the answers and observations of the calls that are not recorded yet
--   record_calls          attempts, items, and last the scans, which the begins of other calls wait for

-- Locks the lanes of calls before their items, and wakes the lanes that have items again: a claim may have found them empty meanwhile.
create or replace function lock_lanes_of_calls(p_tenants uuid[], p_items uuid[], p_puts_back boolean[]) returns void
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_sort = off set plan_cache_mode = force_generic_plan
as $$
declare
    lane record;
begin
    for lane in
        select i.tenant_id, i.api, bool_or(x.puts_back) as puts_back
        from unnest(p_tenants, p_items, p_puts_back) as x (tenant_id, item_id, puts_back)
        cross join lateral (select i.tenant_id, i.api from scan_items i
                            where i.tenant_id = x.tenant_id and i.item_id between x.item_id and x.item_id
                            order by i.item_id limit 1) i
        group by i.tenant_id, i.api
        order by i.tenant_id, i.api
    loop
        perform from lanes l where l.tenant_id = lane.tenant_id and l.api = lane.api for no key update;
        if lane.puts_back then
            perform wake_lane(lane.tenant_id, lane.api);
        end if;
    end loop;
end $$;

-- Locks the items of finished calls (of different items) and finds the calls' rows. One row for each call whose item exists: its number in
-- the ledger (null: it is not on record), whether it is still to be recorded, and whether the item still waits for this call. The answer of a
-- call that was abandoned comes late and is still to be recorded.
create or replace function open_calls(p_tenants uuid[], p_items uuid[], p_numbers integer[], p_attempt_ids uuid[])
returns table (item_id uuid, number integer, is_open boolean, is_current boolean)
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_sort = off set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    found   uuid[];
    current uuid[];
begin
    select array_agg(i.item_id), array_agg(i.item_id) filter (where i.state = 'calling' and i.attempt = x.number) into found, current
    from (select * from unnest(p_tenants, p_items, p_numbers) as x (tenant_id, item_id, number)
          order by x.tenant_id, x.item_id offset 0) x
    cross join lateral (select i.item_id, i.state, i.attempt from scan_items i
                        where i.tenant_id = x.tenant_id and i.item_id between x.item_id and x.item_id
                        order by i.item_id limit 1 for no key update) i;
    return query
    select x.item_id, a.number, a.number is not null and (a.ended_at is null or a.reason = 'worker_lost') is true,
           coalesce(x.item_id = any (current), false)
    from unnest(p_tenants, p_items, p_numbers, p_attempt_ids) as x (tenant_id, item_id, number, attempt_id)
    left join lateral (select a.number, a.ended_at, a.reason from attempts a
                       where a.tenant_id = x.tenant_id and a.item_id between x.item_id and x.item_id
                         and case when x.attempt_id is null then a.number = x.number else a.attempt_id = x.attempt_id end
                       order by a.item_id limit 1) a on true
    where x.item_id = any (found);
end $$;

-- 1 if a search status has come to be this one, -1 if it was this one, otherwise 0.
create or replace function status_change(p_now text, p_before text, p_status text) returns bigint
language sql immutable as $$
    select coalesce((p_now = p_status)::integer, 0)::bigint - coalesce((p_before = p_status)::integer, 0)
$$;

-- Stores what became of open calls (a JSON array of finished_call, of different items, each with its number in the ledger): attempts, items,
-- offers, scans, and the lanes that pause or have items again. Those in p_restored were restored in this transaction. The caller holds the
-- locks of the items and, as lock_lanes_of_calls takes them, of the lanes. If some of their items no longer wait for these calls
-- (p_some_late), not all scans take event numbers, so they are locked first, all in one order.
--
-- The answer of a call that was abandoned still completes its item, unless a newer attempt has begun: then, and when the item was cancelled
-- or waits for a better call, it is stored with its attempt alone. So is one that was made before the answer that its item has to confirm.
-- Its cost counts either way.
create or replace function record_calls(p_now timestamptz, p_calls jsonb, p_restored uuid[], p_some_late boolean) returns void
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_sort = off set plan_cache_mode = force_generic_plan
as $$
declare
    calls finished_call[] := array(select c from jsonb_populate_recordset(null::finished_call, p_calls) c);
    ended ended_calls[];   -- one for each scan
    bill  daily_usage[];   -- what changes of their usage
    work  record;
begin
    if p_some_late then
        perform lock_scans(array_agg(i.tenant_id), array_agg(i.scan_id))
        from unnest(calls) c
        cross join lateral (select * from scan_items i
                            where i.tenant_id = c.tenant_id and i.item_id between c.item_id and c.item_id
                            order by i.item_id limit 1) i;
    end if;
    perform set_config('farescan.numbers_items', 'on', true);
    with open as materialized (
        select c.*, a.row_id as attempt_row, a.lane_resumes, a.requests_spent - least(c.billed, a.requests_spent) as unused,
               a.started_at, a.search_status as status_before, a.worker_id,
               coalesce(c.attempt_id = any (p_restored), false) as was_lost
        from unnest(calls) c
        cross join lateral (select a.*, a.ctid as row_id from attempts a
                            where a.tenant_id = c.tenant_id and a.item_id = c.item_id and a.number between c.number and c.number
                            order by a.number limit 1) a
    ), seen as materialized (
        select c.*, i.row_id as item_row, i.scan_id, i.api, i.position, i.state, i.counted_calls, i.is_live, s.endpoint, s.monitor_id,
               s.max_attempts, s.retry_delay, s.best_currency, l.virtual_time,
               c.pause_reason is not null and not c.was_lost and coalesce(c.lane_resumes = l.resumes, true) as stops,
               i.state = 'done' and i.reason = 'worker_lost' as given_up,
               coalesce(newer.is_there, false) or not i.is_live and coalesce(c.number < (i.earlier ->> 'kept_attempt')::integer, false) as outrun
        from open c
        cross join lateral (select i.*, i.ctid as row_id,
                                   -- A call whose begin was lost in a failover may find its item as it was before.
                                   i.state = 'calling' and i.attempt = c.number
                                       or c.was_lost and i.state in ('pending', 'claimed', 'deferred') and c.ending <> 'returned' as is_live
                            from scan_items i
                            where i.tenant_id = c.tenant_id and i.item_id between c.item_id and c.item_id
                            order by i.item_id limit 1) i
        cross join lateral (select * from scans s
                            where s.tenant_id = i.tenant_id and s.scan_id between i.scan_id and i.scan_id
                            order by s.scan_id limit 1) s
        left join lateral (select * from lanes l
                           where l.tenant_id = i.tenant_id and l.api = i.api and (c.ending = 'returned' or c.pause_reason is not null)
                           limit 1) l on true
        left join lateral (select true as is_there from attempts n
                           where not i.is_live and n.tenant_id = c.tenant_id and n.item_id = c.item_id and n.number > c.number
                           order by n.number limit 1) newer on true
    ), decided as materialized (
        select s.*,
               case when s.is_live and s.ending = 'returned' then 'pending'
                    when s.is_live and s.may_retry and s.counted_calls < s.max_attempts then 'delayed'
                    when s.is_live then s.ending
                    when s.outrun or s.ending = 'returned' then null
                    when s.given_up then s.ending
                    -- Lost, and waiting for another call that has not begun: a good answer makes that needless.
                    when s.state in ('pending', 'claimed', 'delayed', 'held') and not s.may_retry then s.ending
               end as next_state
        from seen s
    ), undeferred as (
        -- A failover has lost the decision that chose them, too: the next one must not wait for them.
        update scan_strategies t set deferred = t.deferred - d.items
        from (select d.tenant_id, d.scan_id, count(*) as items from decided d
              where d.state = 'deferred' and d.next_state in ('done', 'failed') group by 1, 2) d
        where t.tenant_id = d.tenant_id and t.scan_id = d.scan_id
    ), ended_attempts as (
        update attempts a
        set ended_at = d.ended_at, http_status = d.http_status, search_status = d.search_status, reason = d.reason,
            error = d.error, search_headers = d.search_headers, latency_ms = d.latency_ms,
            requests_spent = a.requests_spent - d.unused
        from decided d
        where a.ctid = d.attempt_row
    ), moved as (
        update scan_items i
        set state = coalesce(d.next_state, i.state),
            worker_id = case when d.next_state is null then i.worker_id end,
            turn = case when d.next_state = 'pending' then d.virtual_time else i.turn end,
            not_before = case when d.next_state = 'delayed' then clock_timestamp() + d.retry_delay
                              when d.next_state is null then i.not_before end,
            counted_calls = i.counted_calls - case when d.is_live and d.ending = 'returned' then 1 else 0 end,
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
        where i.ctid = d.item_row
    ), offers as materialized (
        select d.tenant_id, d.item_id, d.offer, o.row_id
        from decided d
        left join lateral (select o.ctid as row_id from item_offers o
                           where o.tenant_id = d.tenant_id and o.item_id between d.item_id and d.item_id
                           order by o.item_id limit 1) o on true
        where d.next_state = 'done' and d.best_price is not null
    ), offered as (
        -- The item is locked, so none comes meanwhile: a plain insert logs less than one that meets rows.
        insert into item_offers (tenant_id, item_id, seller, board, link, band_low, band_high, verdict)
        select o.tenant_id, o.item_id, (o.offer).seller, (o.offer).board, (o.offer).link, (o.offer).band_low, (o.offer).band_high,
               (o.offer).verdict
        from offers o where o.row_id is null
    ), offered_again as (
        update item_offers k
        set seller = (o.offer).seller, board = (o.offer).board, link = (o.offer).link, band_low = (o.offer).band_low,
            band_high = (o.offer).band_high, verdict = (o.offer).verdict
        from offers o where k.tenant_id = o.tenant_id and k.ctid = o.row_id
    ), priced as (
        -- Prices of the scan's currency, or of any while it has none.
        select d.*, d.next_state = 'done' and d.best_price is not null
                    and (d.best_currency is null or d.currency is not distinct from d.best_currency) as counts
        from decided d
    ), of_scans as (
        select d.tenant_id, d.scan_id, d.api, sum(d.unused) as unused,
               count(*) filter (where d.next_state = 'done' and d.search_status = 'ok') as ok,
               count(*) filter (where d.next_state = 'done' and d.search_status = 'empty') as empty,
               count(*) filter (where d.next_state = 'done' and d.search_status = 'partial') as partial,
               count(*) filter (where d.next_state = 'done' and d.search_status = 'degraded')
                   - count(*) filter (where d.next_state is not null and d.given_up) as degraded,
               count(*) filter (where d.next_state = 'failed') as failed,
               min(d.best_price) filter (where d.counts) as price,
               (array_agg(d.currency order by d.best_price, d.position) filter (where d.counts))[1] as currency,
               (array_agg(d.item_id order by d.best_price, d.position) filter (where d.counts))[1] as item_id,
               min(d.best_currency) as known_currency,
               array_agg(d.item_id) filter (where d.next_state in ('done', 'failed')) as ended,
               array_agg(d.item_id) filter (where d.next_state in ('pending', 'delayed')) as put_back,
               array_agg(d.pause_reason) filter (where d.stops) as reasons,
               array_agg(d.pause_seconds) filter (where d.stops) as seconds,
               array_agg(clock_timestamp() - greatest(p_now - d.ended_at, interval '0')) filter (where d.stops) as since,
               null::timestamptz as begun_at,
               array_agg(d.item_id order by d.position) filter (where d.next_state is not null) as changed
        from priced d
        group by d.tenant_id, d.scan_id, d.api
    ), of_usage as (
        -- On the day on which the call began. Single searches are charged where they are made, whether they are stored or not.
        select d.tenant_id, (d.started_at at time zone 'UTC')::date as day, d.endpoint, false as single, d.monitor_id, d.scan_id,
               0::bigint as attempts, -d.unused::bigint as billed, 0::bigint as reused, 0::bigint as not_needed,
               status_change(d.search_status, d.status_before, 'ok') as ok, status_change(d.search_status, d.status_before, 'empty') as empty,
               status_change(d.search_status, d.status_before, 'partial') as partial,
               status_change(d.search_status, d.status_before, 'degraded') as degraded
        from decided d
        where d.worker_id <> 0
    )
    select (select array_agg(row (o.*)::ended_calls order by o.tenant_id, o.scan_id) from of_scans o),
           (select array_agg(row (u.*)::daily_usage) from of_usage u)
    into ended, bill;
    perform set_config('farescan.numbers_items', 'off', true);
    perform lock_scans(array_agg(e.tenant_id), array_agg(e.scan_id)) from unnest(ended) e;

    for work in select * from unnest(ended) e where e.reasons is not null loop
        perform pause_lane_since(work.tenant_id, work.api, p.reason, p.seconds, p.since)
        from unnest(work.reasons, work.seconds, work.since) as p (reason, seconds, since);
    end loop;
    for work in select * from change_scans(ended) loop
        perform end_scan_if_done(p_now, work.scan);
        if work.put_back is not null then
            perform follow_scan_status(p_now, work.scan, work.put_back);
        end if;
        if work.looks_again and work.ended is not null then
            perform update_best_price((work.scan).tenant_id, (work.scan).scan_id, work.ended);
        end if;
    end loop;
    perform add_usage(bill);
end $$;

-- Restores the rows of finished calls that are not on record (a JSON array of finished_call), each with its request in the budget: a failover
-- lost them. A number that stands for another call by now is left to that one. Returns their items and numbers. The caller holds the locks
-- of the items.
create or replace function restore_calls(p_calls jsonb) returns table (item_id uuid, number integer)
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_sort = off set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    call    record;
    counted integer;   -- 1: its item and scan have counted it
begin
    for call in
        select c.*, i.scan_id, i.worker_id, i.attempt, i.state, i.reused_from is not null and i.attempt = c.number as is_reused
        from jsonb_populate_recordset(null::finished_call, p_calls) c
        cross join lateral (select * from scan_items i where i.tenant_id = c.tenant_id and i.item_id between c.item_id and c.item_id
                            order by i.item_id limit 1) i
        order by c.tenant_id, i.scan_id, c.item_id
    loop
        item_id := call.item_id;
        -- An answer that the item took meanwhile has a number without an attempt.
        select case when count(*) filter (where a.number = call.number) = 0 and not call.is_reused then call.number
                    else greatest(max(a.number), call.attempt) + 1 end
        into number
        from attempts a where a.tenant_id = call.tenant_id and a.item_id = call.item_id;
        counted := (call.state = 'calling' and call.attempt = call.number and number = call.number)::integer;
        insert into attempts (tenant_id, item_id, number, attempt_id, scan_id, worker_id, started_at, requests_spent)
        values (call.tenant_id, call.item_id, number, call.attempt_id, call.scan_id, coalesce(call.worker_id, -1),
                call.ended_at - make_interval(secs => call.latency_ms / 1000.0), greatest(call.billed, counted));
        return next;
        continue when counted = 1;
        update scan_items i
        set calls = i.calls + 1, counted_calls = i.counted_calls + 1, requests_spent = i.requests_spent + call.billed,
            attempt = case when i.worker_id is null then greatest(i.attempt, number) else i.attempt end
        where i.tenant_id = call.tenant_id and i.item_id = call.item_id;
        -- They are spent, whatever the limit says.
        update scans s
        set requests_spent = s.requests_spent + call.billed,
            max_requests = case when s.max_requests is not null then greatest(s.max_requests, s.requests_spent + call.billed) end
        where s.tenant_id = call.tenant_id and s.scan_id = call.scan_id;
        perform add_usage(array[scan_usage(call.tenant_id, call.scan_id, call.ended_at - make_interval(secs => call.latency_ms / 1000.0), 1,
                                           call.billed)]);
    end loop;
end $$;
