-- Whether a marketplace has accepted a caller's key (docs/decisions/0029). Until then the caller has one scan, of which only the first
-- item is stored.

alter table tenants
    -- When a marketplace first accepted a key of this caller; null: not accepted yet. Never taken back.
    add column accepted_at timestamptz,
    -- Of a caller who is not accepted yet: when the marketplace last refused the key, and when the caller last ordered a scan.
    add column refused_at  timestamptz,
    add column ordered_at  timestamptz;
create index tenants_not_accepted on tenants (created_at) where accepted_at is null;

-- An answer other than a refusal, or what such an answer left when its attempt was deleted.
update tenants t set accepted_at = now()
where exists (select from attempts a where a.tenant_id = t.tenant_id and a.http_status not in (401, 403))
   or exists (select from deleted_usage u where u.tenant_id = t.tenant_id and u.ok + u.empty + u.partial > 0)
   or exists (select from latest_prices p where p.tenant_id = t.tenant_id)
   or exists (select from lanes l where l.tenant_id = t.tenant_id and l.plan_seen_at is not null);

-- Scans of which not all items are stored yet: those from position `stored` on are made from the order once the caller is accepted.
create table unexpanded_scans (
    tenant_id uuid    not null,
    scan_id   uuid    not null,
    stored    integer not null check (stored >= 1),
    -- The rest of the order, which a scan's row does not have.
    strategy  json,
    primary key (tenant_id, scan_id),
    foreign key (tenant_id, scan_id) references scans on delete cascade
);
