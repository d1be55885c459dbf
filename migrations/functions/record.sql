-- Record: what finished calls came to (docs/decisions/0021, 0022, 0023).
--
-- An outcome belongs to its attempt id. Its row may be missing, because a standby that had not received it was promoted, and its number may
-- stand for another call by now; it was sent and billed all the same, so its row is restored and counted.
--
-- A refusal that comes late pauses nothing: only a call that is recorded for the first time, and that began after the lane's last resume, may
-- pause it, from when its answer came.
--
-- Rows are read as in begin.sql.

-- Stores what became of calls (a JSON array of finished_call, of different items): attempts, items, scans, and the lanes that pause or
-- have items again. Returns those that were not recorded before, each with the number under which it is: only their answers and observations
-- are stored, so that recording twice stores once.
--
-- The answer of a call that was abandoned still completes its item, unless a newer attempt has begun: then, and when the item was cancelled
-- or waits for a better call, it is stored with its attempt alone. Its cost counts either way.
create or replace function record_calls(p_now timestamptz, p_calls jsonb)
returns table (tenant_id uuid, item_id uuid, number integer)
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_sort = off set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    work    record;
    scan    scans;
    entered uuid[];
begin
    for work in
        select i.tenant_id, i.api, bool_or(c.ending = 'returned') as returned
        from jsonb_populate_recordset(null::finished_call, p_calls) c
        cross join lateral (select * from scan_items i where i.tenant_id = c.tenant_id and i.item_id between c.item_id and c.item_id
                            order by i.item_id limit 1) i
        where c.ending = 'returned' or c.pause_reason is not null
        group by i.tenant_id, i.api
        order by i.tenant_id, i.api
    loop
        perform from lanes l where l.tenant_id = work.tenant_id and l.api = work.api for no key update;
        -- Its items are pending again, and a claim may have found the lane empty meanwhile.
        if work.returned then
            perform wake_lane(work.tenant_id, work.api);
        end if;
    end loop;
    perform from (select c.tenant_id, c.item_id from jsonb_populate_recordset(null::finished_call, p_calls) c
                  order by c.tenant_id, c.item_id offset 0) c
    cross join lateral (select from scan_items i where i.tenant_id = c.tenant_id and i.item_id between c.item_id and c.item_id
                        order by i.item_id limit 1 for no key update) i;
    perform from (select distinct i.tenant_id, i.scan_id from jsonb_populate_recordset(null::finished_call, p_calls) c
                  cross join lateral (select * from scan_items i
                                      where i.tenant_id = c.tenant_id and i.item_id between c.item_id and c.item_id
                                      order by i.item_id limit 1) i
                  order by i.tenant_id, i.scan_id offset 0) x
    cross join lateral (select from scans s where s.tenant_id = x.tenant_id and s.scan_id between x.scan_id and x.scan_id
                        order by s.scan_id limit 1 for no key update) s;
    entered := restore_lost_attempts(p_calls);

    for work in
        with calls as materialized (
            select c.*, a.row_id as attempt_row, a.number as place, a.lane_resumes, a.requests_spent - least(c.billed, a.requests_spent) as unused,
                   coalesce(a.attempt_id = any (entered), false) as was_lost
            from jsonb_populate_recordset(null::finished_call, p_calls) c
            cross join lateral (select a.*, a.ctid as row_id from attempts a
                                where a.tenant_id = c.tenant_id and a.item_id between c.item_id and c.item_id
                                  and case when c.attempt_id is null then a.number = c.number else a.attempt_id = c.attempt_id end
                                order by a.item_id limit 1) a
            where a.ended_at is null or a.reason = 'worker_lost'
        ), seen as materialized (
            select c.*, i.row_id as item_row, i.scan_id, i.api, i.state, i.counted_calls, s.max_attempts, s.retry_delay, l.virtual_time,
                   c.pause_reason is not null and not c.was_lost and coalesce(c.lane_resumes = l.resumes, true) as stops,
                   -- A call whose begin was lost in a failover may find its item as it was before.
                   i.state = 'calling' and i.attempt = c.place
                       or c.was_lost and i.state in ('pending', 'claimed') and c.ending <> 'returned' as live,
                   i.state = 'done' and i.reason = 'worker_lost' as given_up,
                   coalesce(newer.is_there, false) as outrun
            from calls c
            cross join lateral (select i.*, i.ctid as row_id from scan_items i
                                where i.tenant_id = c.tenant_id and i.item_id between c.item_id and c.item_id
                                order by i.item_id limit 1) i
            cross join lateral (select * from scans s
                                where s.tenant_id = i.tenant_id and s.scan_id between i.scan_id and i.scan_id
                                order by s.scan_id limit 1) s
            cross join lateral (select * from lanes l where l.tenant_id = i.tenant_id and l.api = i.api limit 1) l
            left join lateral (select true as is_there from attempts n
                               where n.tenant_id = c.tenant_id and n.item_id = c.item_id and n.number > c.place
                               order by n.number limit 1) newer on true
        ), decided as materialized (
            select s.*,
                   case when s.live and s.ending = 'returned' then 'pending'
                        when s.live and s.may_retry and s.counted_calls < s.max_attempts then 'delayed'
                        when s.live then s.ending
                        when s.outrun or s.ending = 'returned' then null
                        when s.given_up then s.ending
                        -- Lost, and waiting for another call that has not begun: a good answer makes that needless.
                        when s.state in ('pending', 'claimed', 'delayed', 'held') and not s.may_retry then s.ending
                   end as next_state
            from seen s
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
            where i.ctid = d.item_row
        )
        select d.tenant_id, d.scan_id, d.api, sum(d.unused) as unused,
               array_agg(d.item_id) as items, array_agg(d.place) as numbers,
               array_agg(d.item_id) filter (where d.next_state in ('done', 'failed')) as ended,
               array_agg(d.item_id) filter (where d.next_state in ('pending', 'delayed')) as put_back,
               array_agg(d.pause_reason) filter (where d.stops) as reasons,
               array_agg(d.pause_seconds) filter (where d.stops) as seconds,
               array_agg(clock_timestamp() - greatest(p_now - d.ended_at, interval '0')) filter (where d.stops) as since,
               count(*) filter (where d.next_state = 'done' and d.search_status = 'ok') as ok,
               count(*) filter (where d.next_state = 'done' and d.search_status = 'empty') as empty,
               count(*) filter (where d.next_state = 'done' and d.search_status = 'partial') as partial,
               count(*) filter (where d.next_state = 'done' and d.search_status = 'degraded')
                   - count(*) filter (where d.next_state is not null and d.given_up) as degraded,
               count(*) filter (where d.next_state = 'failed') as failed
        from decided d
        group by d.tenant_id, d.scan_id, d.api
        order by d.tenant_id, d.scan_id
    loop
        perform pause_lane_since(work.tenant_id, work.api, p.reason, p.seconds, p.since)
        from unnest(work.reasons, work.seconds, work.since) as p (reason, seconds, since);
        scan := count_ended(p_now, work.tenant_id, work.scan_id, work.ok, work.empty, work.partial, work.degraded, work.failed, 0,
                            work.unused);
        if work.put_back is not null then
            perform follow_scan_status(p_now, scan, work.put_back);
        end if;
        if work.ended is not null then
            perform update_best_price(work.tenant_id, work.scan_id, work.ended);
        end if;
        return query
        select work.tenant_id, x.item_id, x.number from unnest(work.items, work.numbers) as x (item_id, number);
    end loop;
end $$;

-- Restores the rows of finished calls that are not on record, each with its request in the budget: a failover lost them. A number that
-- stands for another call by now is left to that one. Returns their attempt ids. The caller holds the locks of items and scans.
create or replace function restore_lost_attempts(p_calls jsonb) returns uuid[]
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_sort = off set plan_cache_mode = force_generic_plan
as $$
declare
    call    record;
    place   integer;
    counted integer;   -- 1: its item and scan have counted it
    entered uuid[] := '{}';
begin
    for call in
        select c.*, i.scan_id, i.worker_id, i.attempt, i.state
        from jsonb_populate_recordset(null::finished_call, p_calls) c
        cross join lateral (select * from scan_items i where i.tenant_id = c.tenant_id and i.item_id between c.item_id and c.item_id
                            order by i.item_id limit 1) i
        left join lateral (select true as is_there from attempts a
                           where a.tenant_id = c.tenant_id and a.item_id between c.item_id and c.item_id
                             and a.attempt_id = c.attempt_id
                           order by a.item_id limit 1) known on true
        where c.attempt_id is not null and known.is_there is null
        order by c.tenant_id, i.scan_id, c.item_id
    loop
        select case when count(*) filter (where a.number = call.number) = 0 then call.number
                    else greatest(max(a.number), call.attempt) + 1 end
        into place
        from attempts a where a.tenant_id = call.tenant_id and a.item_id = call.item_id;
        counted := (call.state = 'calling' and call.attempt = call.number and place = call.number)::integer;
        insert into attempts (tenant_id, item_id, number, attempt_id, scan_id, worker_id, started_at, requests_spent)
        values (call.tenant_id, call.item_id, place, call.attempt_id, call.scan_id, coalesce(call.worker_id, 0),
                call.ended_at - make_interval(secs => call.latency_ms / 1000.0), greatest(call.billed, counted));
        entered := entered || call.attempt_id;
        continue when counted = 1;
        update scan_items i
        set calls = i.calls + 1, counted_calls = i.counted_calls + 1, requests_spent = i.requests_spent + call.billed,
            attempt = case when i.worker_id is null then greatest(i.attempt, place) else i.attempt end
        where i.tenant_id = call.tenant_id and i.item_id = call.item_id;
        -- They are spent, whatever the limit says.
        update scans s
        set requests_spent = s.requests_spent + call.billed,
            max_requests = case when s.max_requests is not null then greatest(s.max_requests, s.requests_spent + call.billed) end
        where s.tenant_id = call.tenant_id and s.scan_id = call.scan_id;
    end loop;
    return entered;
end $$;

-- Of finished calls those that are still not on record, and whether their item exists: a call without an attempt id cannot be restored; an
-- item that is missing was deleted with its scan, or lost in a failover.
create or replace function unknown_calls(p_calls jsonb) returns table (item_id uuid, has_item boolean)
language sql
set enable_seqscan = off set enable_sort = off
as $$
    select c.item_id, i.is_there is not null
    from jsonb_populate_recordset(null::finished_call, p_calls) c
    left join lateral (select true as is_there from attempts a
                       where a.tenant_id = c.tenant_id and a.item_id between c.item_id and c.item_id
                         and case when c.attempt_id is null then a.number = c.number else a.attempt_id = c.attempt_id end
                       order by a.item_id limit 1) a on true
    left join lateral (select true as is_there from scan_items i
                       where i.tenant_id = c.tenant_id and i.item_id between c.item_id and c.item_id
                       order by i.item_id limit 1) i on true
    where a.is_there is null
$$;
