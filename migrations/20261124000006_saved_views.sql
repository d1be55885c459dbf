-- A caller's named filters of the list of scans, as the dashboard shows them. The query is that of the list's URL: filters only, which
-- are checked again whenever the list is read.
create table saved_views (
    tenant_id  uuid        not null references tenants on delete cascade,
    name       text        not null check (char_length(name) between 1 and 60),
    query      text        not null check (char_length(query) between 1 and 1000),
    created_at timestamptz not null,
    primary key (tenant_id, name)
);
