-- Begin by claims: an item may be claimed twice while its first claim still waits to be put on record, because its caller has paused and
-- resumed its scan meanwhile. So a claim is its worker, tenant, item and number together, everywhere, and its answer is found by its
-- attempt id.
--
-- Every row is read by its key, one by one, and with one plan for all calls: what a begin reads does not grow with what is in flight. On
-- tables that are small yet the planner takes any index that begins with the tenant, and keeps to that while they grow. So the key's last
-- column is given as a range of one and the row is asked for in its order: only the key's index has that order without a sort, and sorts
-- are off. What is updated was read before, so it is found by its ctid.

-- How often the lane was resumed, and how often it had been when a call began: a refusal says nothing of the time after a resume.
alter table lanes add column resumes integer not null default 0;
alter table attempts add column lane_resumes integer;   -- null: of before this column

drop function begin_within_circuits(timestamptz, bigint[], uuid[], uuid[], integer[], uuid[]);
drop function begin_calls(timestamptz, bigint[], uuid[], uuid[], integer[], uuid[]);

-- Puts claims on record as sent, each with its place in its scan's budget. One row for each claim that is still the worker's own:
--   begun        on record; send it. Asked again with the same attempt id, because the first answer was lost, it is begun still.
--   no_room      the scan's max_requests is reached: hold_scan
--   lane_paused  the lane has stopped since the claim: give_up
--   stopped      the scan is paused or has ended: give_up
-- No row: the claim is no longer the worker's, its lease is gone, or a call is on record under its number: give_up.
create function begin_calls(p_now timestamptz, p_workers bigint[], p_tenants uuid[], p_items uuid[], p_numbers integer[],
                            p_attempt_ids uuid[])
returns table (item_id uuid, number integer, attempt_id uuid, verdict text)
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_sort = off set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    alive bigint[];
begin
    -- Shared with nobody who would mark the worker dead: a sweep sees its items either before this or after it, never between.
    select array_agg(w.worker_id) into alive
    from (select w.worker_id from workers w
          where w.worker_id = any (p_workers) and not w.dead and w.lease_until > clock_timestamp()
          order by w.worker_id for share) w;
    perform from (select distinct x.tenant_id, x.item_id from unnest(p_tenants, p_items) as x (tenant_id, item_id)
                  order by x.tenant_id, x.item_id offset 0) x
    cross join lateral (select from scan_items i where i.tenant_id = x.tenant_id and i.item_id between x.item_id and x.item_id
                        order by i.item_id limit 1 for no key update) i;
    perform from (select distinct x.tenant_id, i.scan_id
                  from unnest(p_workers, p_tenants, p_items, p_numbers) as x (worker_id, tenant_id, item_id, number)
                  cross join lateral (select * from scan_items i
                                      where i.tenant_id = x.tenant_id and i.item_id between x.item_id and x.item_id
                                      order by i.item_id limit 1) i
                  where i.state = 'claimed' and i.worker_id = x.worker_id and i.attempt = x.number
                  order by x.tenant_id, i.scan_id offset 0) x
    cross join lateral (select from scans s where s.tenant_id = x.tenant_id and s.scan_id between x.scan_id and x.scan_id
                        order by s.scan_id limit 1 for no key update) s;

    return query
    with own as materialized (
        select x.*, i.row_id, i.scan_id, i.api, i.position, i.state
        from unnest(p_workers, p_tenants, p_items, p_numbers, p_attempt_ids)
             as x (worker_id, tenant_id, item_id, number, attempt_id)
        cross join lateral (select i.*, i.ctid as row_id from scan_items i
                            where i.tenant_id = x.tenant_id and i.item_id between x.item_id and x.item_id
                            order by i.item_id limit 1) i
        where i.state in ('claimed', 'calling') and i.worker_id = x.worker_id and i.attempt = x.number
    ), on_record as materialized (
        select o.*, a.attempt_id as known_as
        from own o
        left join lateral (select * from attempts a
                           where a.tenant_id = o.tenant_id and a.item_id = o.item_id and a.number between o.number and o.number
                           order by a.number limit 1) a on true
    ), new as materialized (
        select distinct on (o.tenant_id, o.item_id) o.* from on_record o
        where o.state = 'claimed' and o.known_as is null and o.worker_id = any (alive)
        order by o.tenant_id, o.item_id, o.attempt_id
    ), decided as materialized (
        select n.*, s.row_id as scan_row, l.resumes,
               case when s.status not in ('queued', 'running') then 'stopped'
                    when l.paused_until > clock_timestamp() then 'lane_paused'
                    when row_number() over (partition by n.tenant_id, n.scan_id order by n.position)
                         > s.max_requests - s.requests_spent then 'no_room'
                    else 'begun' end as verdict
        from new n
        cross join lateral (select s.*, s.ctid as row_id from scans s
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
        where d.verdict = 'begun' and i.ctid = d.row_id
    ), counted as (
        update scans s
        set requests_spent = s.requests_spent + n.calls, status = 'running', started_at = coalesce(s.started_at, p_now)
        from (select d.scan_row, count(*) as calls from decided d where d.verdict = 'begun' group by 1) n
        where s.ctid = n.scan_row
    )
    select d.item_id, d.number, d.attempt_id, d.verdict from decided d
    union all
    select o.item_id, o.number, o.attempt_id, 'begun' from on_record o where o.state = 'calling' and o.known_as = o.attempt_id;
end $$;

-- begin_calls, but of an API whose circuit is open one call at most: the probe, if it is time for it. The verdict of the others:
--   upstream_down  the circuit is open: give_up
create function begin_within_circuits(p_now timestamptz, p_workers bigint[], p_tenants uuid[], p_items uuid[], p_numbers integer[],
                                      p_attempt_ids uuid[])
returns table (item_id uuid, number integer, attempt_id uuid, verdict text)
language plpgsql
set enable_sort = off
as $$
#variable_conflict use_column
declare
    circuit circuits;
    waiting uuid[];
    probe   uuid;
    held    uuid[] := '{}';
begin
    for circuit in select * from circuits c where c.opened_at is not null order by c.api loop
        select array_agg(x.attempt_id order by x.place), (array_agg(x.item_id order by x.place))[1] into waiting, probe
        from unnest(p_workers, p_tenants, p_items, p_numbers, p_attempt_ids) with ordinality
             as x (worker_id, tenant_id, item_id, number, attempt_id, place)
        cross join lateral (select * from scan_items i where i.tenant_id = x.tenant_id and i.item_id between x.item_id and x.item_id
                            order by i.item_id limit 1) i
        where i.api = circuit.api and i.state = 'claimed' and i.worker_id = x.worker_id and i.attempt = x.number;
        continue when waiting is null;
        update circuits c
        set probe_at = clock_timestamp() + c.probe_every, probes = (probe || c.probes)[1:30]
        where c.api = circuit.api and c.opened_at is not null and c.probe_at <= clock_timestamp();
        held := held || case when found then waiting[2:] else waiting end;
    end loop;
    if held = '{}' then
        return query select * from begin_calls(p_now, p_workers, p_tenants, p_items, p_numbers, p_attempt_ids);
        return;
    end if;
    return query
    select b.*
    from (select array_agg(x.worker_id) as workers, array_agg(x.tenant_id) as tenants, array_agg(x.item_id) as items,
                 array_agg(x.number) as numbers, array_agg(x.attempt_id) as attempts
          from unnest(p_workers, p_tenants, p_items, p_numbers, p_attempt_ids)
               as x (worker_id, tenant_id, item_id, number, attempt_id)
          where not x.attempt_id = any (held)) free
    cross join lateral begin_calls(p_now, free.workers, free.tenants, free.items, free.numbers, free.attempts) b
    where free.items is not null;
    return query
    select x.item_id, x.number, x.attempt_id, 'upstream_down'
    from unnest(p_items, p_numbers, p_attempt_ids) as x (item_id, number, attempt_id)
    where x.attempt_id = any (held);
end $$;

-- Ends the item of a claim whose call cannot be put on record, because the database refuses it: claimed again, it would be refused again.
create function refuse_claim(p_now timestamptz, p_worker bigint, p_tenant uuid, p_item uuid, p_number integer, p_error text) returns void
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

-- Claims that stand under a live worker but that it does not have: the answer to its claim was lost after the commit. p_grace is
-- longer than any claim takes to be answered.
create function strays(p_worker bigint, p_items uuid[], p_numbers integer[], p_grace interval)
returns table (tenant_id uuid, api text, items uuid[], numbers integer[])
language sql as $$
    select i.tenant_id, i.api, array_agg(i.item_id), array_agg(i.attempt)
    from scan_items i
    where i.worker_id = p_worker and i.state in ('claimed', 'calling') and i.claimed_at < clock_timestamp() - p_grace
      and not exists (select from unnest(p_items, p_numbers) as held (item_id, number)
                      where held.item_id = i.item_id and held.number = i.attempt)
    group by i.tenant_id, i.api
    order by i.tenant_id, i.api
$$;
-- Of before: processes of the last version may be running still.
comment on function strays(bigint, uuid[], interval) is 'for processes of the version before: to be dropped with the next';
