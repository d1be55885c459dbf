-- Quiet hours and digests (monitors.md, rules 90 to 94; docs/decisions/0047).

alter table monitors
    -- As given; null: each run sends its alerts at once.
    add column notify       json,
    -- When the held alerts are sent; null: none are held.
    add column notify_at    timestamptz,
    -- How often rules fired for the held alerts, those of runs with too many alerts to store included.
    add column held_fired   bigint not null default 0 check (held_fired >= 0),
    -- The notify_at of the held alerts that were sent last; the next one is later, whatever a clock says.
    add column notified_for timestamptz,
    add check ((notify_at is null) = (held_fired = 0));
create index monitors_notify on monitors (notify_at) where notify_at is not null;

alter table alerts
    add column is_held     boolean not null default false,
    -- The delivery that reported it; null while it is held, and if the monitor had no webhook. Deliveries are deleted sooner than alerts.
    add column delivery_id uuid;
create index alerts_held on alerts (tenant_id, monitor_id, fired_at desc, alert_id desc) where is_held;
