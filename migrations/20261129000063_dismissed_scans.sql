-- Incomplete scans that their caller leaves as they are (scans.md, rule 39).

create table dismissed_scans (
    tenant_id    uuid        not null,
    scan_id      uuid        not null,
    dismissed_at timestamptz not null,
    primary key (tenant_id, scan_id),
    foreign key (tenant_id, scan_id) references scans on delete cascade
);

-- Finds the few that need a decision among all scans of a caller.
create index scans_incomplete on scans (tenant_id, scan_id desc) where status = 'incomplete';
