-- Searches that took an answer instead of a request, in the usage (scans.md, rule 71).

-- Functions of which the result or the arguments have changed (migrations/functions). Dropped at once, because nothing is released.
drop function if exists reusable_answers(timestamptz, uuid, interval, text, integer, boolean, jsonb[], bytea[], date[], date[]);
drop function if exists usage_rows(uuid, timestamptz, timestamptz);

create index scan_items_reused on scan_items (tenant_id, reused_at) where reused_at is not null;

alter table deleted_usage add column avoided bigint not null default 0 check (avoided >= 0);
