-- Abandon: claims that their worker will not complete, and workers whose lease has expired.

-- Locks claims of one lane, and the items that wait for an equal search among their calls: all of them in one order, and before anything
-- else is locked but the lane. Returns the items that wait.
create or replace function lock_claims(p_tenant uuid, p_items uuid[], p_numbers integer[]) returns uuid[]
language plpgsql as $$
declare
    waiting uuid[] := array(
        select w.item_id
        from unnest(p_items, p_numbers) as x (item_id, number)
        join scan_items i on i.tenant_id = p_tenant and i.item_id = x.item_id and i.attempt = x.number and i.state = 'calling'
        join shared_searches r on r.tenant_id = p_tenant and r.item_id = i.item_id
        join shared_searches w on w.tenant_id = p_tenant and w.search_key = r.search_key and w.waits);
begin
    perform from scan_items i
    where i.tenant_id = p_tenant and i.item_id = any (p_items || waiting)
    order by i.item_id for no key update;
    return waiting;
end $$;

-- Abandons claims of one lane. One that was only claimed becomes pending again; of one that was calling nobody knows whether it was billed,
-- so its attempt ends as worker_lost, and it is called again only if its scan allows that. Returns the lost calls, with their requests.
create or replace function abandon_claims(p_now timestamptz, p_tenant uuid, p_api text, p_items uuid[], p_numbers integer[])
returns table (item_id uuid, number integer, endpoint text, body jsonb)
language plpgsql as $$
#variable_conflict use_column
declare
    start   bigint := wake_lane(p_tenant, p_api);
    waiting uuid[];
    work    record;
    scan    scans;
begin
    waiting := lock_claims(p_tenant, p_items, p_numbers);
    update scan_items i set not_before = clock_timestamp()
    where i.tenant_id = p_tenant and i.item_id = any (waiting) and i.state = 'delayed';

    for work in
        with seen as (
            select i.item_id, i.attempt, i.scan_id, i.state, s.retry_delay,
                   case when i.state = 'claimed' then 'pending'
                        when i.counted_calls < s.max_attempts then 'delayed'
                        else 'done' end as next_state
            from unnest(p_items, p_numbers) as x (item_id, number)
            join scan_items i on i.tenant_id = p_tenant and i.item_id = x.item_id and i.attempt = x.number
                             and i.api = p_api and i.worker_id is not null
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
        perform add_usage(array(select scan_usage(p_tenant, work.scan_id, a.started_at, p_degraded => 1)
                                from unnest(work.lost, work.lost_numbers) as x (item_id, number)
                                join attempts a on a.tenant_id = p_tenant and a.item_id = x.item_id and a.number = x.number));
        if work.put_back is not null then
            perform follow_scan_status(p_now, scan, work.put_back);
        end if;
        return query
        select i.item_id, x.number, scan.endpoint, i.body
        from unnest(work.lost, work.lost_numbers) as x (item_id, number)
        join scan_items i on i.tenant_id = p_tenant and i.item_id = x.item_id;
    end loop;
end $$;

-- Locks claims of one lane, as abandon_claims does, and returns those that it will give up as lost calls, with their requests.
create or replace function lock_lost_calls(p_tenant uuid, p_api text, p_items uuid[], p_numbers integer[])
returns table (item_id uuid, number integer, endpoint text, body jsonb)
language plpgsql as $$
#variable_conflict use_column
begin
    perform wake_lane(p_tenant, p_api);
    perform lock_claims(p_tenant, p_items, p_numbers);
    return query
    select i.item_id, i.attempt, s.endpoint, i.body
    from unnest(p_items, p_numbers) as x (item_id, number)
    join scan_items i on i.tenant_id = p_tenant and i.item_id = x.item_id and i.attempt = x.number
                     and i.api = p_api and i.state = 'calling'
    join scans s on s.tenant_id = p_tenant and s.scan_id = i.scan_id;
end $$;

-- Claims under a live worker that the worker does not have: the answer to its claim was lost after the commit. p_grace is longer than any
-- claim takes to be answered.
create or replace function leaked_claims(p_worker bigint, p_items uuid[], p_numbers integer[], p_grace interval)
returns table (tenant_id uuid, api text, items uuid[], numbers integer[])
language sql as $$
    select i.tenant_id, i.api, array_agg(i.item_id), array_agg(i.attempt)
    from scan_items i
    where i.worker_id = p_worker and i.claimed_at < clock_timestamp() - p_grace
      and not exists (select from unnest(p_items, p_numbers) as held (item_id, number)
                      where held.item_id = i.item_id and held.number = i.attempt)
    group by i.tenant_id, i.api
    order by i.tenant_id, i.api
$$;

-- Claims of dead workers, grouped by lane; lanes that are given are left out, so that one locked lane does not block the others.
create or replace function orphaned_claims(p_limit integer, p_except_tenants uuid[], p_except_apis text[])
returns table (tenant_id uuid, api text, items uuid[], numbers integer[])
language sql as $$
    select o.tenant_id, o.api, array_agg(o.item_id), array_agg(o.attempt)
    from (select i.tenant_id, i.api, i.item_id, i.attempt
          from scan_items i
          left join workers w on w.worker_id = i.worker_id
          where i.worker_id is not null and (w.dead or w.worker_id is null)
            and not exists (select from unnest(p_except_tenants, p_except_apis) x (tenant_id, api)
                            where x.tenant_id = i.tenant_id and x.api = i.api)
          limit p_limit) o
    group by o.tenant_id, o.api
    order by o.tenant_id, o.api
$$;

-- Marks workers dead whose lease has expired, but not while the database itself has been up for less than a lease: they could not renew
-- while it was down. A row that is locked is left for the next sweep.
create or replace function expire_workers(p_lease interval) returns bigint
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
