-- The bill (scans.md, rule 71): one row of daily_usage for each day, endpoint and source. The row of a scan is written under the scan's lock,
-- so its writers never wait for each other there.

-- Adds rows to the sums. Those of scans are found first, because a plain update logs less than an insert that meets a row. The others come in
-- the order of their key, because no lock protects them.
create or replace function add_usage(p_rows daily_usage[]) returns void
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $$
begin
    with sums as materialized (
        select r.tenant_id, r.day, r.endpoint, r.single, r.monitor_id, r.scan_id, sum(r.attempts) as attempts, sum(r.billed) as billed,
               sum(r.reused) as reused, sum(r.not_needed) as not_needed, sum(r.ok) as ok, sum(r.empty) as empty, sum(r.partial) as partial,
               sum(r.degraded) as degraded
        from unnest(p_rows) r
        group by r.tenant_id, r.day, r.endpoint, r.single, r.monitor_id, r.scan_id
    ), found as materialized (
        select s.*, u.row_id from sums s
        left join lateral (select u.ctid as row_id from daily_usage u
                           where u.tenant_id = s.tenant_id and u.scan_id = s.scan_id and u.day = s.day and u.endpoint = s.endpoint
                             and u.single = s.single and u.monitor_id is not distinct from s.monitor_id
                           limit 1) u on true
    ), added as (
        update daily_usage u
        set attempts = u.attempts + f.attempts, billed = u.billed + f.billed, reused = u.reused + f.reused,
            not_needed = u.not_needed + f.not_needed, ok = u.ok + f.ok, empty = u.empty + f.empty, partial = u.partial + f.partial,
            degraded = u.degraded + f.degraded
        from found f
        where u.ctid = f.row_id
    )
    insert into daily_usage as u (tenant_id, day, endpoint, single, monitor_id, scan_id, attempts, billed, reused, not_needed, ok, empty,
                                  partial, degraded)
    select f.tenant_id, f.day, f.endpoint, f.single, f.monitor_id, f.scan_id, f.attempts, f.billed, f.reused, f.not_needed, f.ok, f.empty,
           f.partial, f.degraded
    from found f
    where f.row_id is null
    order by f.tenant_id, f.day, f.endpoint, f.single, f.monitor_id, f.scan_id
    on conflict (tenant_id, day, endpoint, single, monitor_id, scan_id) do update
    set attempts = u.attempts + excluded.attempts, billed = u.billed + excluded.billed, reused = u.reused + excluded.reused,
        not_needed = u.not_needed + excluded.not_needed, ok = u.ok + excluded.ok, empty = u.empty + excluded.empty,
        partial = u.partial + excluded.partial, degraded = u.degraded + excluded.degraded;
end $$;

-- A row for one scan on the UTC day of p_at, to add.
create or replace function scan_usage(p_tenant uuid, p_scan uuid, p_at timestamptz, p_attempts bigint default 0, p_billed bigint default 0,
                            p_reused bigint default 0, p_not_needed bigint default 0, p_ok bigint default 0, p_empty bigint default 0,
                            p_partial bigint default 0, p_degraded bigint default 0) returns daily_usage
language sql stable as $$
    select s.tenant_id, (p_at at time zone 'UTC')::date, s.endpoint, false, s.monitor_id, s.scan_id, p_attempts, p_billed, p_reused,
           p_not_needed, p_ok, p_empty, p_partial, p_degraded
    from scans s
    where s.tenant_id = p_tenant and s.scan_id between p_scan and p_scan
    order by s.scan_id limit 1
$$;

-- What a strategy leaves out is counted with its decision, which holds the scan's lock.
create or replace function count_not_needed() returns trigger
language plpgsql as $$
begin
    perform add_usage(array[scan_usage(new.tenant_id, new.scan_id, clock_timestamp(),
                                       p_not_needed => new.skipped - coalesce(old.skipped, 0))]);
    return new;
end $$;

create or replace trigger count_not_needed after update of skipped on scan_strategies
    for each row when (new.skipped > coalesce(old.skipped, 0)) execute function count_not_needed();

-- A deleted scan was billed all the same: its rows are added to those without a scan.
create or replace function keep_usage_of_scan(p_tenant uuid, p_scan uuid) returns void
language sql as $$
    with gone as (delete from daily_usage u where u.tenant_id = p_tenant and u.scan_id = p_scan returning u.*)
    select add_usage(array(select row (g.tenant_id, g.day, g.endpoint, g.single, g.monitor_id, null, g.attempts, g.billed, g.reused,
                                       g.not_needed, g.ok, g.empty, g.partial, g.degraded)::daily_usage
                           from gone g))
$$;
