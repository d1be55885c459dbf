-- The bill (scans.md, rule 71): one row of daily_usage for each day, endpoint and source. The row of a scan is written under the scan's lock,
-- so its writers never wait for each other there.

-- Adds rows to the sums. Their order is that of their key, for those that no lock protects.
create or replace function add_usage(p_rows daily_usage[]) returns void
language sql as $$
    insert into daily_usage as u (tenant_id, day, endpoint, single, monitor_id, scan_id, attempts, billed, reused, not_needed, ok, empty,
                                  partial, degraded)
    select r.tenant_id, r.day, r.endpoint, r.single, r.monitor_id, r.scan_id, sum(r.attempts), sum(r.billed), sum(r.reused),
           sum(r.not_needed), sum(r.ok), sum(r.empty), sum(r.partial), sum(r.degraded)
    from unnest(p_rows) r
    group by r.tenant_id, r.day, r.endpoint, r.single, r.monitor_id, r.scan_id
    order by r.tenant_id, r.day, r.endpoint, r.single, r.monitor_id, r.scan_id
    on conflict (tenant_id, day, endpoint, single, monitor_id, scan_id) do update
    set attempts = u.attempts + excluded.attempts, billed = u.billed + excluded.billed, reused = u.reused + excluded.reused,
        not_needed = u.not_needed + excluded.not_needed, ok = u.ok + excluded.ok, empty = u.empty + excluded.empty,
        partial = u.partial + excluded.partial, degraded = u.degraded + excluded.degraded
$$;

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
