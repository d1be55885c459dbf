-- What a caller has set for all of its work (scans.md, rules 89 and 90). No row: nothing is set.
create table account_settings (
    tenant_id       uuid        primary key references tenants,
    -- Complete answers of synchronous searches are stored.
    record_searches boolean     not null,
    -- For submitted scans that name no age; null: none.
    max_age_seconds integer     check (max_age_seconds between 1 and 2678400),
    changed_at      timestamptz not null
);
create index account_settings_recording on account_settings (changed_at) where record_searches;
