-- One bill: what a caller's searches cost, from the moment at which they are charged (scans.md, rule 71).

-- Sums by UTC day. Those of a scan are written in the transactions that change it, under its lock; `single` are the caller's single searches
-- and key checks. Deleted scans are summed up in rows without a scan.
create table daily_usage (
    tenant_id  uuid    not null references tenants,
    day        date    not null,
    endpoint   text    not null,
    single     boolean not null,
    monitor_id uuid,
    scan_id    uuid,
    -- Searches sent; what was billed for them; searches that took an answer; searches that a strategy left out.
    attempts   bigint  not null default 0,
    billed     bigint  not null default 0,
    reused     bigint  not null default 0,
    not_needed bigint  not null default 0,
    -- The attempts by search status; the rest was refused, or has not ended.
    ok         bigint  not null default 0,
    empty      bigint  not null default 0,
    partial    bigint  not null default 0,
    degraded   bigint  not null default 0,
    unique nulls not distinct (tenant_id, day, endpoint, single, monitor_id, scan_id)
);
create index daily_usage_by_scan on daily_usage (tenant_id, scan_id) where scan_id is not null;

insert into daily_usage (tenant_id, day, endpoint, single, monitor_id, scan_id, attempts, billed, ok, empty, partial, degraded)
select a.tenant_id, (a.started_at at time zone 'UTC')::date, s.endpoint, s.verbatim and a.worker_id = 0, s.monitor_id,
       case when not (s.verbatim and a.worker_id = 0) then s.scan_id end, count(*), sum(a.requests_spent),
       count(*) filter (where a.search_status = 'ok'), count(*) filter (where a.search_status = 'empty'),
       count(*) filter (where a.search_status = 'partial'), count(*) filter (where a.search_status = 'degraded')
from attempts a join scans s on s.tenant_id = a.tenant_id and s.scan_id = a.scan_id
group by 1, 2, 3, 4, 5, 6;

insert into daily_usage as u (tenant_id, day, endpoint, single, monitor_id, scan_id, reused)
select i.tenant_id, (i.reused_at at time zone 'UTC')::date, s.endpoint, false, s.monitor_id, s.scan_id, count(*)
from scan_items i join scans s on s.tenant_id = i.tenant_id and s.scan_id = i.scan_id
where i.reused_at is not null
group by 1, 2, 3, 4, 5, 6
on conflict (tenant_id, day, endpoint, single, monitor_id, scan_id) do update set reused = u.reused + excluded.reused;

insert into daily_usage as u (tenant_id, day, endpoint, single, monitor_id, scan_id, not_needed)
select t.tenant_id, (coalesce(s.finished_at, s.created_at) at time zone 'UTC')::date, s.endpoint, false, s.monitor_id, s.scan_id, t.skipped
from scan_strategies t join scans s on s.tenant_id = t.tenant_id and s.scan_id = t.scan_id
where t.skipped > 0
on conflict (tenant_id, day, endpoint, single, monitor_id, scan_id) do update set not_needed = u.not_needed + excluded.not_needed;

insert into daily_usage as u (tenant_id, day, endpoint, single, attempts, billed, reused, ok, empty, partial, degraded)
select d.tenant_id, d.day, d.endpoint, false, d.attempts, d.requests, d.avoided, d.ok, d.empty, d.partial, d.degraded from deleted_usage d;

-- Nothing is released, so these are dropped at once.
drop function if exists usage_rows(uuid, timestamptz, timestamptz);
drop table deleted_usage;
drop index scan_items_reused;
