-- Alerts: what rules remember from run to run, and what fired (docs/decisions/0018).

-- What one rule of a monitor remembers: of the whole scan, or of each of its cells, at most as many as a scan has items. All of it in one
-- value, JSON packed by zstd: it is read and written whole, once a run, and 10,000 cells of twenty rules as rows would be 200,000 dead
-- rows each time.
create table rule_states (
    tenant_id  uuid  not null,
    monitor_id uuid  not null,
    -- A digest of the rule's canonical form: what is changed is another rule, and remembers nothing.
    rule       bytea not null check (octet_length(rule) = 16),
    states     bytea not null,
    primary key (tenant_id, monitor_id, rule),
    foreign key (tenant_id, monitor_id) references monitors on delete cascade
);
alter table rule_states alter column states set storage external;

-- A rule that fired, as it is shown. What it tells of its scan and item stays when those are gone.
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

-- What became of a slot that was judged: how often its rules fired, how many alerts of that are on record, and how many rules (cells
-- counted apart) saw prices in a currency that does not compare.
alter table monitor_slots add column fired integer not null default 0 check (fired >= 0);
alter table monitor_slots add column alerts integer not null default 0 check (alerts between 0 and fired);
alter table monitor_slots add column not_comparable integer not null default 0 check (not_comparable >= 0);

-- To be judged are runs, and slots that came and had no run though one was due: a rule may wait for the lack of answers.
drop index monitor_slots_to_judge;
create index monitor_slots_to_judge on monitor_slots (slot)
    where judged_at is null and (scan_id is not null or outcome in ('failed', 'overlap'));
