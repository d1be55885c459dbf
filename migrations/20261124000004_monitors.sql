-- Monitors: scans on a schedule, their slots, and alerts.

create table monitors (
    tenant_id              uuid        not null references tenants,
    monitor_id             uuid        not null,
    name                   text        not null,
    cron                   text        not null,
    -- An IANA name. The program computes times from its own zone database; the server's may be another.
    timezone               text        not null,
    scan                   json        not null,     -- as given, its fields in the caller's order, its dates relative still
    -- The lane of its scans.
    api                    text        not null check (api in ('flights', 'hotels')),
    rules                  json        not null default '[]',
    max_requests_per_month integer check (max_requests_per_month >= 1),
    -- By the caller alone. A pause of its lane shows from there, as with scans.
    paused                 boolean     not null default false,
    -- The next slot to be decided; null while it is paused, and when its schedule has ended.
    next_slot              timestamptz,
    -- The slot waits until then, because its caller has too many live scans (room), or because the run before it has not ended (run).
    not_before             timestamptz,
    waits_for              text check (waits_for in ('room', 'run')),
    -- Holds the key for its runs, and is wiped while it is paused; each run's scan has the key sealed anew in a grant of its own.
    grant_id               uuid        not null,
    created_at             timestamptz not null,
    updated_at             timestamptz not null,
    primary key (tenant_id, monitor_id),
    foreign key (tenant_id, grant_id) references key_grants,
    check (not paused or next_slot is null)
);
create index monitors_due on monitors (greatest(next_slot, not_before)) where next_slot is not null;

-- A row is a decision: the process that inserts it has decided the slot, and no other decides it again (docs/decisions/0013).
create table monitor_slots (
    tenant_id        uuid        not null,
    monitor_id       uuid        not null,
    slot             timestamptz not null,
    -- manual: the caller ran the monitor, at this time.
    kind             text        not null check (kind in ('schedule', 'manual')),
    outcome          text        not null check (outcome in ('ran', 'late', 'missed', 'overlap', 'monthly_ceiling', 'failed')),
    reason           text,
    -- Null once the scan is deleted; what it had cost is then in deleted_requests.
    scan_id          uuid,
    deleted_requests integer     not null default 0 check (deleted_requests >= 0),
    decided_at       timestamptz not null,
    -- When the alert rules were evaluated: once, after the scan has ended.
    evaluated_at     timestamptz,
    -- How often rules fired, how many alerts of that are stored, and how many rules (cells counted apart) met prices in a currency that
    -- does not compare.
    fired            integer     not null default 0 check (fired >= 0),
    alerts           integer     not null default 0 check (alerts between 0 and fired),
    not_comparable   integer     not null default 0 check (not_comparable >= 0),
    primary key (tenant_id, monitor_id, slot, kind),
    foreign key (tenant_id, monitor_id) references monitors on delete cascade,
    foreign key (tenant_id, scan_id) references scans on delete set null (scan_id),
    check (scan_id is null or outcome in ('ran', 'late'))
);
create index monitor_slots_scan on monitor_slots (tenant_id, scan_id) where scan_id is not null;
-- Runs, and slots that had no run though one was due: a rule may wait for the lack of answers.
create index monitor_slots_to_evaluate on monitor_slots (slot)
    where evaluated_at is null and (scan_id is not null or outcome in ('failed', 'overlap'));
create index monitor_slots_by_time on monitor_slots (slot);

-- What one rule of a monitor remembers from run to run: of the whole scan, or of each of its cells (docs/decisions/0018). One value, JSON
-- packed by zstd, because it is read and written whole: 10,000 cells of twenty rules as rows would be 200,000 dead rows each run.
create table rule_states (
    tenant_id  uuid  not null,
    monitor_id uuid  not null,
    -- A digest of the rule's canonical form: a changed rule is another rule, and remembers nothing.
    rule       bytea not null check (octet_length(rule) = 16),
    states     bytea not null,
    primary key (tenant_id, monitor_id, rule),
    foreign key (tenant_id, monitor_id) references monitors on delete cascade
);
alter table rule_states alter column states set storage external;

-- A rule that fired, as it is shown. What it says of its scan and item stays when those are deleted.
create table alerts (
    tenant_id  uuid        not null,
    alert_id   uuid        not null,
    monitor_id uuid        not null,
    rule_type  text        not null,
    fired_at   timestamptz not null,
    alert      json        not null,
    primary key (tenant_id, alert_id),
    foreign key (tenant_id, monitor_id) references monitors on delete cascade
);
create index alerts_newest on alerts (tenant_id, fired_at desc, alert_id desc);
create index alerts_of_monitor on alerts (tenant_id, monitor_id, fired_at desc, alert_id desc);
create index alerts_fired on alerts (fired_at);
