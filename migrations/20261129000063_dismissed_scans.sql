-- Incomplete scans that their caller leaves as they are (docs/reference/scans.md).

create table dismissed_scans (
    tenant_id    uuid        not null,
    scan_id      uuid        not null,
    dismissed_at timestamptz not null,
    primary key (tenant_id, scan_id),
    foreign key (tenant_id, scan_id) references scans on delete cascade
);
