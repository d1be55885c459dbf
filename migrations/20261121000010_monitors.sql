-- Monitors: scans on a schedule, and what became of each of their slots (docs/decisions/0013).

create table monitors (
    tenant_id      uuid        not null references tenants,
    monitor_id     uuid        not null,
    name           text        not null,
    cron           text        not null,
    -- An IANA name. The program knows the zones; nothing here is computed by the database's own list, which may be another.
    timezone       text        not null,
    scan           json        not null,     -- as given, its fields in the caller's order, its dates relative still
    -- The lane of its scans.
    api            text        not null check (api in ('flights', 'hotels')),
    rules          json        not null default '[]',
    max_requests_per_month integer check (max_requests_per_month >= 1),
    -- By the caller's word alone. What stops its lane shows from there, as with scans.
    paused         boolean     not null default false,
    -- The next slot to be decided; null while it is paused, and once its schedule has no more.
    next_slot      timestamptz,
    -- Its caller had too much underway: looked at again then.
    not_before     timestamptz,
    -- Holds the key for its runs, and is wiped while it is paused; each run's scan has the key sealed anew in a grant of its own.
    grant_id       uuid        not null,
    created_at     timestamptz not null,
    updated_at     timestamptz not null,
    primary key (tenant_id, monitor_id),
    foreign key (tenant_id, grant_id) references key_grants,
    check (not paused or next_slot is null)
);
create index monitors_due on monitors (greatest(next_slot, not_before)) where next_slot is not null;

-- A row is a decision: whoever writes it has decided the slot, and nobody decides it again.
create table monitor_slots (
    tenant_id   uuid        not null,
    monitor_id  uuid        not null,
    slot        timestamptz not null,
    -- manual: the caller ran the monitor, at this time.
    kind        text        not null check (kind in ('schedule', 'manual')),
    outcome     text        not null check (outcome in ('ran', 'late', 'missed', 'overlap', 'monthly_ceiling', 'failed')),
    reason      text,
    -- Gone once the scan is deleted; what it had cost stays.
    scan_id     uuid,
    -- What the scan had cost when it was deleted; until then the scan says it.
    deleted_requests integer not null default 0 check (deleted_requests >= 0),
    decided_at  timestamptz not null,
    -- When the alert rules have looked at the run: once, after its scan has ended.
    judged_at   timestamptz,
    primary key (tenant_id, monitor_id, slot, kind),
    foreign key (tenant_id, monitor_id) references monitors on delete cascade,
    foreign key (tenant_id, scan_id) references scans on delete set null (scan_id),
    check (scan_id is null or outcome in ('ran', 'late'))
);
create index monitor_slots_scan on monitor_slots (tenant_id, scan_id) where scan_id is not null;
create index monitor_slots_to_judge on monitor_slots (slot) where judged_at is null and scan_id is not null;

-- Which monitor made a scan. No foreign key: it is said of the scan also when the monitor is gone.
alter table scans add column monitor_id uuid;
create index scans_of_monitor on scans (tenant_id, monitor_id, scan_id desc) where monitor_id is not null;

-- What a deleted run had cost was billed all the same, and counts against its month.
create function keep_requests_of_run() returns trigger
language plpgsql as $$
begin
    update monitor_slots s set deleted_requests = old.requests_spent
    where s.tenant_id = old.tenant_id and s.scan_id = old.scan_id;
    return old;
end $$;
create trigger keep_requests_of_run before delete on scans
    for each row when (old.monitor_id is not null) execute function keep_requests_of_run();

-- As before, and the monitor that made it.
create or replace view shown_scans as
select s.tenant_id, s.scan_id, s.endpoint, s.request, s.sweep, s.label, s.tags,
       case when stopped.reason is null then s.status else 'paused' end as status,
       coalesce(stopped.reason, s.status_reason) as status_reason,
       s.total, s.ok, s.empty, s.partial, s.degraded, s.failed, s.cancelled, busy.running,
       s.requests_spent, s.max_requests, s.best_price, s.best_currency, s.best_item_id,
       extract(epoch from l.emission)::double precision as seconds_per_search,
       g.expires_at as key_held_until,
       s.created_at, s.started_at, s.finished_at, s.monitor_id
from scans s
left join lanes l on l.tenant_id = s.tenant_id and l.api = s.api
left join key_grants g on g.tenant_id = s.tenant_id and g.grant_id = s.grant_id and g.wiped_at is null
left join lateral (
    select case when l.paused_until > clock_timestamp() then l.pause_reason
                when exists (select from circuits c where c.api = s.api and c.opened_at is not null) then 'upstream_down'
           end as reason
    where s.status in ('queued', 'running')
) stopped on true
-- The lane's few items in flight, by their own index; never the scan's thousands.
cross join lateral (
    select count(*) as running
    from scan_items i
    where s.finished_at is null and i.tenant_id = s.tenant_id and i.api = s.api and i.scan_id = s.scan_id
      and i.state in ('claimed', 'calling') and i.state = 'calling'
) busy;

-- Whoever ticks hears at once of a slot that comes sooner than the last look knew, and of a run that can be judged.
create function tell_of_monitors() returns trigger
language plpgsql as $$
begin
    perform pg_notify('farescan_monitor', '');
    return null;
end $$;
create trigger tell_of_new_monitor after insert on monitors
    for each row when (new.next_slot is not null) execute function tell_of_monitors();
create trigger tell_of_earlier_slot after update of next_slot on monitors
    for each row when (new.next_slot < coalesce(old.next_slot, 'infinity')) execute function tell_of_monitors();
create trigger tell_of_ended_run after update of finished_at on scans
    for each row when (new.monitor_id is not null and old.finished_at is null and new.finished_at is not null)
    execute function tell_of_monitors();
