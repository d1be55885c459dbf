-- Begin: a call is in the ledger before its first byte (docs/decisions/0021).
--
-- An item may be claimed twice while its first claim still waits to be recorded, because its caller has paused and resumed its scan
-- meanwhile. So a claim is its worker, tenant, item and number together, everywhere, and an answer is found by its attempt id.
--
-- Every row is read by its key, one by one, and with one plan for all calls, so that the cost of a begin does not grow with what is in
-- flight. On small tables the planner would take any index that begins with the tenant, and keep to that while they grow. So the key's last
-- column is given as a range of one value and the row is read in its order: only the key's index has that order without a sort, and sorts are
-- off. What is updated was read before, so it is found by its ctid.

-- Begins the claims that are still the worker's own, each with its request in its scan's budget. One row for each of them:
--   begun          on record; send it. Called again with the same attempt id, because the first answer was lost, it is still begun.
--   no_room        the scan's max_requests is reached: pause_scan
--   lane_paused    the lane was paused since the claim: abandon_claims
--   stopped        the scan is paused or has ended: abandon_claims
--   upstream_down  the circuit of its API is open, and this is not its probe: abandon_claims
--   shared         one of p_sharing, the items of scans with a max_age: it took an answer, or waits for an equal search (share_answers)
-- No row: the claim is no longer the worker's, its lease has expired, or a call is on record under its number: abandon_claims.
create or replace function begin_calls(p_now timestamptz, p_workers bigint[], p_tenants uuid[], p_items uuid[], p_numbers integer[],
                            p_attempt_ids uuid[], p_sharing uuid[] default '{}')
returns table (item_id uuid, number integer, attempt_id uuid, verdict text)
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_sort = off set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    alive   bigint[];
    claims  claim_to_begin[];   -- those that are still the worker's own; their items are locked
    shared  uuid[];             -- the attempt ids of those that need no call
    round   claim_to_begin[];   -- those that are decided together
    changes ended_calls[];      -- what its begun calls change of their scans, and of their usage
    bill    daily_usage[];
    -- Its verdicts.
    items       uuid[];
    numbers     integer[];
    attempt_ids uuid[];
    verdicts    text[];
    waiting     uuid[] := attempts_behind_circuit(p_workers, p_tenants, p_items, p_numbers, p_attempt_ids);
begin
    if waiting <> '{}' then
        return query
        select x.item_id, x.number, x.attempt_id, 'upstream_down'
        from unnest(p_items, p_numbers, p_attempt_ids) as x (item_id, number, attempt_id)
        where x.attempt_id = any (waiting);
        select coalesce(array_agg(x.worker_id), '{}'), coalesce(array_agg(x.tenant_id), '{}'), coalesce(array_agg(x.item_id), '{}'),
               coalesce(array_agg(x.number), '{}'), coalesce(array_agg(x.attempt_id), '{}')
        into p_workers, p_tenants, p_items, p_numbers, p_attempt_ids
        from unnest(p_workers, p_tenants, p_items, p_numbers, p_attempt_ids)
             as x (worker_id, tenant_id, item_id, number, attempt_id)
        where not x.attempt_id = any (waiting);
    end if;
    if p_sharing <> '{}' then
        perform lock_search_keys(array_agg(r.tenant_id), array_agg(r.search_key))
        from unnest(p_tenants, p_items) as x (tenant_id, item_id)
        cross join lateral (select * from shared_searches r
                            where r.tenant_id = x.tenant_id and r.item_id between x.item_id and x.item_id
                            order by r.item_id limit 1) r
        where x.item_id = any (p_sharing);
    end if;
    -- Locks out whatever would mark the worker dead: a sweep sees its items either before this or after it, never between.
    select array_agg(w.worker_id) into alive
    from (select w.worker_id from workers w
          where w.worker_id = any (p_workers) and not w.dead and w.lease_until > clock_timestamp()
          order by w.worker_id for share) w;
    select array_agg(row (x.worker_id, x.tenant_id, x.item_id, x.number, x.attempt_id, i.row_id, i.scan_id, i.api, i.position,
                          i.state)::claim_to_begin) into claims
    from (select * from unnest(p_workers, p_tenants, p_items, p_numbers, p_attempt_ids)
                        as x (worker_id, tenant_id, item_id, number, attempt_id)
          order by x.tenant_id, x.item_id offset 0) x
    cross join lateral (select i.ctid as row_id, i.scan_id, i.api, i.position, i.state, i.worker_id, i.attempt
                        from scan_items i
                        where i.tenant_id = x.tenant_id and i.item_id between x.item_id and x.item_id
                        order by i.item_id limit 1 for no key update) i
    where i.state in ('claimed', 'calling') and i.worker_id = x.worker_id and i.attempt = x.number;
    perform lock_scans(array_agg(c.tenant_id), array_agg(c.scan_id)) from unnest(claims) c where c.state = 'claimed';
    -- Of equal searches one is decided in a round. If its call begins, the others wait for it; if not, the next one is decided.
    loop
        round := coalesce(claims, '{}');
        claims := '{}';
        if p_sharing <> '{}' then
            select coalesce(array_agg(s.attempt_id), '{}') into shared
            from share_answers(p_now, array(select c from unnest(round) c
                                            where c.item_id = any (p_sharing) and c.worker_id = any (alive))) s;
            return query
            select c.item_id, c.number, c.attempt_id, 'shared' from unnest(round) c where c.attempt_id = any (shared);
            select coalesce(array_agg(x.claim) filter (where x.nth = 1), '{}'), coalesce(array_agg(x.claim) filter (where x.nth > 1), '{}')
            into round, claims
            from (select c as claim,
                         rank() over (partition by c.tenant_id, coalesce(r.search_key, uuid_send(c.attempt_id)) order by c.item_id) as nth
                  from unnest(round) c
                  left join lateral (select r.search_key from shared_searches r
                                     where c.item_id = any (p_sharing) and r.tenant_id = c.tenant_id
                                       and r.item_id between c.item_id and c.item_id
                                     order by r.item_id limit 1) r on true
                  where not c.attempt_id = any (shared)) x;
        end if;
        perform set_config('farescan.numbers_items', 'on', true);
        with on_record as materialized (
            select o.*, a.attempt_id as known_as
            from unnest(round) o
            left join lateral (select * from attempts a
                               where a.tenant_id = o.tenant_id and a.item_id = o.item_id and a.number between o.number and o.number
                               order by a.number limit 1) a on true
        ), new as materialized (
            select distinct on (o.tenant_id, o.item_id) o.* from on_record o
            where o.state = 'claimed' and o.known_as is null and o.worker_id = any (alive)
            order by o.tenant_id, o.item_id, o.attempt_id
        ), decided as materialized (
            select n.*, s.endpoint, s.monitor_id, l.resumes,
                   case when s.status not in ('queued', 'running') then 'stopped'
                        when l.paused_until > clock_timestamp() then 'lane_paused'
                        when row_number() over (partition by n.tenant_id, n.scan_id order by n.position)
                             > s.max_requests - s.requests_spent then 'no_room'
                        else 'begun' end as verdict
            from new n
            cross join lateral (select s.* from scans s
                                where s.tenant_id = n.tenant_id and s.scan_id between n.scan_id and n.scan_id
                                order by s.scan_id limit 1) s
            cross join lateral (select * from lanes l where l.tenant_id = n.tenant_id and l.api = n.api limit 1) l
        ), entered as (
            insert into attempts (tenant_id, item_id, number, attempt_id, scan_id, worker_id, started_at, lane_resumes)
            select d.tenant_id, d.item_id, d.number, d.attempt_id, d.scan_id, d.worker_id, p_now, d.resumes
            from decided d where d.verdict = 'begun'
        ), moved as (
            update scan_items i
            set state = 'calling', calls = i.calls + 1, counted_calls = i.counted_calls + 1, requests_spent = i.requests_spent + 1
            from decided d
            where d.verdict = 'begun' and i.tenant_id = d.tenant_id and i.ctid = d.row_id
        ), of_scans as (
            select d.tenant_id, d.scan_id, d.endpoint, d.monitor_id, count(*) as calls, array_agg(d.item_id order by d.position) as items
            from decided d where d.verdict = 'begun' group by 1, 2, 3, 4
        )
        select (select array_agg(row (s.tenant_id, s.scan_id, null, -s.calls, 0, 0, 0, 0, 0, null, null, null, null, null, null, null, null,
                                      null, p_now, s.items)::ended_calls) from of_scans s),
               (select array_agg(row (s.tenant_id, (p_now at time zone 'UTC')::date, s.endpoint, false, s.monitor_id, s.scan_id, s.calls,
                                      s.calls, 0, 0, 0, 0, 0, 0)::daily_usage) from of_scans s),
               array_agg(o.item_id), array_agg(o.number), array_agg(o.attempt_id), array_agg(o.verdict)
        into changes, bill, items, numbers, attempt_ids, verdicts
        from (select d.item_id, d.number, d.attempt_id, d.verdict from decided d
              union all
              select o.item_id, o.number, o.attempt_id, 'begun' from on_record o where o.state = 'calling' and o.known_as = o.attempt_id) o;
        perform set_config('farescan.numbers_items', 'off', true);
        if changes is not null then
            perform change_scans(changes);
            perform add_usage(bill);
        end if;
        return query select * from unnest(items, numbers, attempt_ids, verdicts);
        exit when cardinality(claims) = 0;
    end loop;
end $$;

-- Reserves the request of the one retry of a server error (gateway.md, rule 17): in the ledger, the budget and the lane's pace, before its
-- first byte. False: there is none, or the circuit is open, where the retry would be billed and fail like the first; do not send it.
create or replace function reserve_retry(p_tenant uuid, p_item uuid, p_number integer) returns boolean
language plpgsql as $$
declare
    item     record;
    begun_at timestamptz;   -- a request is billed on the day on which its call began
begin
    select i.scan_id, i.api into item from scan_items i where i.tenant_id = p_tenant and i.item_id = p_item;
    if not found then
        return false;
    end if;
    if exists (select from circuits c where c.api = item.api and c.opened_at is not null) then
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
    where a.tenant_id = p_tenant and a.item_id = p_item and a.number = p_number
    returning a.started_at into begun_at;
    perform add_usage(array[scan_usage(p_tenant, item.scan_id, begun_at, p_billed => 1)]);
    update scan_items i set requests_spent = i.requests_spent + 1
    where i.tenant_id = p_tenant and i.item_id = p_item;
    return true;
end $$;

-- Withdraws calls of one lane that were recorded after their process had stopped waiting for the record: they were never sent. Their
-- requests return to the budget, and their claims stand as if they had never begun.
create or replace function withdraw_unsent(p_tenant uuid, p_api text, p_items uuid[], p_numbers integer[]) returns void
language plpgsql as $$
declare
    work record;
begin
    perform wake_lane(p_tenant, p_api);
    perform from scan_items i
    join unnest(p_items, p_numbers) as x (item_id, number) on i.item_id = x.item_id and i.attempt = x.number
    where i.tenant_id = p_tenant and i.state = 'calling'
    order by i.tenant_id, i.item_id for no key update of i;
    for work in
        with unsent as materialized (
            select i.item_id, i.scan_id, i.attempt
            from unnest(p_items, p_numbers) as x (item_id, number)
            join scan_items i on i.tenant_id = p_tenant and i.item_id = x.item_id and i.attempt = x.number and i.state = 'calling'
            -- One with a reserved retry was sent, whatever the process says.
            join attempts a on a.tenant_id = p_tenant and a.item_id = i.item_id and a.number = i.attempt
                           and a.ended_at is null and a.requests_spent = 1
        ), taken as (
            delete from attempts a using unsent u
            where a.tenant_id = p_tenant and a.item_id = u.item_id and a.number = u.attempt
            returning a.scan_id, a.started_at
        ), moved as (
            update scan_items i
            set state = 'claimed', calls = i.calls - 1, counted_calls = i.counted_calls - 1, requests_spent = i.requests_spent - 1
            from unsent u
            where i.tenant_id = p_tenant and i.item_id = u.item_id
        )
        select t.scan_id, count(*) as calls, array_agg(t.started_at) as begun from taken t group by t.scan_id order by t.scan_id
    loop
        update scans s set requests_spent = s.requests_spent - work.calls where s.tenant_id = p_tenant and s.scan_id = work.scan_id;
        perform add_usage(array(select scan_usage(p_tenant, work.scan_id, b.at, -1, -1) from unnest(work.begun) as b (at)));
    end loop;
end $$;

-- Fails the item of a claim whose call the database refuses to record: claimed again, it would be refused again.
create or replace function fail_claim(p_now timestamptz, p_worker bigint, p_tenant uuid, p_item uuid, p_number integer, p_error text) returns void
language plpgsql as $$
declare
    scan uuid;
begin
    update scan_items i
    set state = 'failed', worker_id = null, search_status = null, reason = 'not_on_record', error = p_error, observed_at = p_now
    where i.tenant_id = p_tenant and i.item_id = p_item and i.state = 'claimed' and i.worker_id = p_worker and i.attempt = p_number
    returning i.scan_id into scan;
    if found then
        perform count_ended(p_now, p_tenant, scan, 0, 0, 0, 0, 1, 0, 0);
    end if;
end $$;
