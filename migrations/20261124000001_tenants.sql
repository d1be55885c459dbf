-- Callers, their keys, and the installation itself.
--
-- Rules that hold for every table of these files:
--   * tenant_id comes first in every primary, unique and foreign key, so that the rows of a tenant can be found, copied and moved
--     together. The exceptions are the directory that finds a tenant (tenants, tenant_keys, passed_keys) and rows of processes.
--   * A state is text with a CHECK: readable in psql, and a new one is a small migration.
--   * Lanes, leases, slots and expiry go by the database's clock; every other time comes from the program.
--   * A price is numeric, in major units, beside its currency, as the marketplace gave it (docs/decisions/0002).
--
-- Numbered files hold types, tables, indexes and constraints only, and are never edited once released. Functions, triggers and views
-- are in migrations/functions, each defined once.

create table tenants (
    tenant_id   uuid primary key,
    created_at  timestamptz not null,
    -- When a marketplace first accepted a key of this caller; null: not accepted yet. Never reset (docs/decisions/0029).
    accepted_at timestamptz,
    -- Of a caller who is not accepted yet: when the marketplace last refused the key, and when the caller last submitted a scan.
    refused_at  timestamptz,
    ordered_at  timestamptz
);
create index tenants_not_accepted on tenants (created_at) where accepted_at is null;

-- A fingerprint is the first 16 bytes of an HMAC of the caller's key under the keyring's key named key_id. Never a plain hash, never
-- the key.
create table tenant_keys (
    key_id      text        not null,
    fingerprint bytea       not null check (octet_length(fingerprint) = 16),
    tenant_id   uuid        not null references tenants,
    created_at  timestamptz not null,
    primary key (key_id, fingerprint)
);
create index tenant_keys_tenant on tenant_keys (tenant_id);

-- Fingerprints of keys that were rotated, for two days: a rotation that is sent again, because its answer was lost, gets that answer.
create table passed_keys (
    key_id        text        not null,
    fingerprint   bytea       not null check (octet_length(fingerprint) = 16),
    tenant_id     uuid        not null references tenants,
    passed_at     timestamptz not null,
    -- The answer: how many sealed keys were sealed anew, and which lanes were resumed.
    held_keys     integer     not null,
    lanes_resumed text[]      not null,
    primary key (key_id, fingerprint)
);
create index passed_keys_age on passed_keys (passed_at);

-- One sealed secret, held for one purpose: a marketplace key for a scan or a monitor, or a webhook's signing secret or URL. Wiping
-- overwrites nonce and ciphertext with nothing.
create table key_grants (
    tenant_id  uuid        not null references tenants,
    grant_id   uuid        not null,
    purpose    text        not null check (purpose in ('scan', 'monitor', 'webhook', 'webhook_url')),
    key_id     text        not null,
    nonce      bytea       not null,
    ciphertext bytea       not null,
    created_at timestamptz not null,
    expires_at timestamptz not null,
    wiped_at   timestamptz,
    primary key (tenant_id, grant_id),
    check (wiped_at is null or (octet_length(nonce) = 0 and octet_length(ciphertext) = 0))
);
create index key_grants_live on key_grants (expires_at) where wiped_at is null;

-- The answer to a POST with an Idempotency-Key: the same POST gets it again instead of spending twice.
create table idempotency_keys (
    tenant_id   uuid        not null references tenants,
    path        text        not null,
    key         text        not null,
    body_digest bytea       not null check (octet_length(body_digest) = 32),
    response    json,                 -- as it was sent; null only inside the transaction that makes it
    created_at  timestamptz not null,
    primary key (tenant_id, path, key)
);
create index idempotency_keys_age on idempotency_keys (created_at);

-- What deleted scans had cost, by UTC day. Written in the transaction that deletes a scan, whose attempts are deleted with it.
create table deleted_usage (
    tenant_id  uuid   not null references tenants,
    day        date   not null,
    endpoint   text   not null,
    attempts   bigint not null check (attempts >= 0),
    requests   bigint not null check (requests >= 0),
    -- Attempts by search status; the rest was refused.
    ok         bigint not null,
    empty      bigint not null,
    partial    bigint not null,
    degraded   bigint not null,
    primary key (tenant_id, day, endpoint)
);

-- One row. A spool's answers belong to the database with this id and to no other.
create table installation (
    one               boolean primary key default true check (one),
    installation_id   uuid    not null default gen_random_uuid(),
    -- A database belongs to one marketplace (docs/decisions/0026). Null until a process has called one on this database.
    marketplace       text unique check (length(marketplace) between 1 and 5000),
    marketplace_since timestamptz,
    -- The version and digest of migrations/functions that were applied last; null: none yet.
    functions_version integer,
    functions_digest  bytea,
    check ((marketplace is null) = (marketplace_since is null))
);
insert into installation default values;

-- One row per start of a worker process: the only lease there is. A process whose lease has expired takes a new row.
create table workers (
    worker_id   bigint generated always as identity primary key,
    started_at  timestamptz not null default clock_timestamp(),
    lease_until timestamptz not null,
    dead        boolean     not null default false,
    -- A worker of another marketplace gets no row, whenever it comes.
    marketplace text references installation (marketplace)
) with (fillfactor = 50);
create index workers_alive on workers (lease_until) where not dead;
