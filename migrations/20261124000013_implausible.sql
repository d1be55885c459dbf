-- How many prices of a run its rules left out, because they are far off their own history (monitors.md, rule 84).
alter table monitor_slots add column implausible integer not null default 0 check (implausible >= 0);
