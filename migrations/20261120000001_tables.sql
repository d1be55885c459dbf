-- The tables of the scanner. The words are those of the job API: scan, item, attempt, answer, observation, lane, grant.
--
-- Rules that hold for every table here:
--   * tenant_id comes first in every primary, unique and foreign key, so that all rows of a tenant can live on one shard.
--     The exceptions are the directory that finds the tenant (tenants, tenant_keys) and the leases of processes (workers).
--   * states are text with a CHECK: readable in psql, and a new one is a small migration.
--   * clocks of lanes and leases are the database's own; every other time comes from the program.
--   * prices are numeric in major units beside their currency, as the marketplace gave them: minor units would need a table of
--     exponents, and a marketplace that sends 12345.5 JPY would be rounded by it.

-- Who calls -----------------------------------------------------------------------------------------------------------

create table tenants (
    tenant_id   uuid primary key,
    created_at  timestamptz not null
);

-- A fingerprint is the first 16 bytes of an HMAC under the ring's key named key_id. Never a plain hash, never the key.
create table tenant_keys (
    key_id      text        not null,
    fingerprint bytea       not null check (octet_length(fingerprint) = 16),
    tenant_id   uuid        not null references tenants,
    created_at  timestamptz not null,
    primary key (key_id, fingerprint)
);
create index tenant_keys_tenant on tenant_keys (tenant_id);

-- One sealed marketplace key, held for one piece of ordered work. Wiping overwrites nonce and ciphertext with nothing.
create table key_grants (
    tenant_id  uuid        not null references tenants,
    grant_id   uuid        not null,
    purpose    text        not null check (purpose in ('scan', 'monitor')),
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

-- The answer that a POST gave, kept so that the same POST gives it again instead of spending twice.
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

-- The queue ------------------------------------------------------------------------------------------------------------

-- One row per process start: the only lease there is. A process that finds itself dead takes a new row.
create table workers (
    worker_id   bigint generated always as identity primary key,
    started_at  timestamptz not null default clock_timestamp(),
    lease_until timestamptz not null,
    dead        boolean     not null default false
) with (fillfactor = 50);
create index workers_alive on workers (lease_until) where not dead;

-- One caller's subscription to one API: its pace, its quota, its pauses. The row is the mutex of its set of pending items.
create table lanes (
    tenant_id      uuid        not null references tenants,
    api            text        not null check (api in ('flights', 'hotels')),
    -- GCRA: a call every `emission`, `burst` of them at once after a rest; `arrival` is the theoretical arrival time.
    emission       interval    not null check (emission > interval '0'),
    burst          integer     not null check (burst >= 1),
    max_in_flight  integer     not null check (max_in_flight >= 1),
    arrival        timestamptz not null default '-infinity',
    -- Start-time fair queueing between the scans of a lane: the low-water mark of the pending items' turns.
    virtual_time   bigint      not null default 0,
    -- When a claimer's visit is next of use; null: nothing is ready, submit and retry arm it again.
    next_at        timestamptz,
    -- All places in flight were taken: the next completion must arm the lane.
    full_up        boolean     not null default false,
    -- null: not paused; 'infinity': until a resume.
    paused_until   timestamptz,
    pause_reason   text check (pause_reason in ('rate_limited', 'quota_exhausted', 'key_rejected', 'not_subscribed')),
    -- What the marketplace's plan headers last said.
    plan_limit     bigint,
    plan_remaining bigint,
    plan_reset_at  timestamptz,
    plan_seen_at   timestamptz,
    primary key (tenant_id, api),
    check ((paused_until is null) = (pause_reason is null))
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500,
        autovacuum_analyze_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
create index lanes_due on lanes (next_at) where next_at is not null;

create table scans (
    tenant_id         uuid        not null references tenants,
    scan_id           uuid        not null,
    endpoint          text        not null,
    api               text        not null,
    request           json        not null,     -- as given, its fields in the caller's order
    sweep             json        not null,
    label             text,
    tags              text[]      not null default '{}',
    priority          text        not null check (priority in ('interactive', 'scheduled')),
    upstream_filters  boolean     not null default false,
    upstream_limit    integer,
    max_attempts      smallint    not null check (max_attempts >= 1),
    retry_delay       interval    not null,
    status            text        not null check (status in ('queued', 'running', 'paused', 'completed', 'incomplete', 'cancelled')),
    -- Why the scan itself is paused; what its lane says stands in the lane and is shown from there.
    status_reason     text,
    total             integer     not null check (total between 1 and 10000),
    -- Ended items by outcome; what is left of total is pending or in flight, so there is nothing that could drift.
    ok                integer     not null default 0,
    empty             integer     not null default 0,
    partial           integer     not null default 0,
    degraded          integer     not null default 0,
    failed            integer     not null default 0,
    cancelled         integer     not null default 0,
    -- Billed requests: counted before the first byte of each, so the ceiling holds whatever dies.
    requests_spent    integer     not null default 0,
    max_requests      integer,
    best_price        numeric,
    best_currency     text,
    best_item_id      uuid,
    grant_id          uuid,
    created_at        timestamptz not null,
    started_at        timestamptz,
    finished_at       timestamptz,
    primary key (tenant_id, scan_id),
    foreign key (tenant_id, grant_id) references key_grants,
    check (max_requests is null or requests_spent <= max_requests),
    check (ok + empty + partial + degraded + failed + cancelled <= total)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
create index scans_newest on scans (tenant_id, scan_id desc);
create index scans_live on scans (tenant_id, api) where finished_at is null;

-- One search of a scan, and the queue itself: the workers claim from this table.
create table scan_items (
    tenant_id      uuid     not null,
    item_id        uuid     not null,
    scan_id        uuid     not null,
    api            text     not null,
    position       integer  not null,
    body           jsonb    not null,
    -- The last date that the search is about; once it has passed, a retry would be refused.
    first_date     date,
    -- pending: may be claimed. claimed: taken by a worker, nothing sent. calling: on record as sent. delayed: a retry that waits.
    -- held: of a paused scan. done, failed, cancelled: ended.
    state          text     not null default 'pending'
                   check (state in ('pending', 'claimed', 'calling', 'delayed', 'held', 'done', 'failed', 'cancelled')),
    turn           bigint   not null,
    -- The number of the last claim, never used again; what went upstream is counted apart, in calls.
    attempt        integer  not null default 0,
    calls          integer  not null default 0,
    -- Calls that count against max_attempts since the caller last ordered (a rejected key does not).
    counted_calls  integer  not null default 0,
    worker_id      bigint,
    claimed_at     timestamptz,
    not_before     timestamptz,
    search_status  text check (search_status in ('ok', 'empty', 'partial', 'degraded')),
    reason         text,
    requests_spent integer  not null default 0,
    results        integer,
    best_price     numeric,
    currency       text,
    observed_at    timestamptz,
    latency_ms     integer,
    error          text,
    primary key (tenant_id, item_id),
    foreign key (tenant_id, scan_id) references scans on delete cascade,
    unique (tenant_id, scan_id, position),
    check ((state in ('claimed', 'calling')) = (worker_id is not null)),
    check (state <> 'delayed' or not_before is not null)
) with (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000,
        autovacuum_analyze_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
create index scan_items_pending on scan_items (tenant_id, api, turn, item_id) where state = 'pending';
create index scan_items_in_flight on scan_items (tenant_id, api, worker_id) where state in ('claimed', 'calling');
create index scan_items_of_worker on scan_items (worker_id) where state in ('claimed', 'calling');
create index scan_items_delayed on scan_items (not_before) where state = 'delayed';

-- The ledger: a row is written, with its place in the budget, before the first byte of a call, and completed after it.
create table attempts (
    tenant_id      uuid        not null,
    item_id        uuid        not null,
    number         integer     not null,
    attempt_id     uuid        not null,
    scan_id        uuid        not null,
    worker_id      bigint      not null,
    started_at     timestamptz not null,
    ended_at       timestamptz,
    requests_spent smallint    not null default 1,
    http_status    smallint,
    search_status  text check (search_status in ('ok', 'empty', 'partial', 'degraded')),
    reason         text,
    search_headers jsonb,
    latency_ms     integer,
    error          text,
    primary key (tenant_id, item_id, number),
    foreign key (tenant_id, item_id) references scan_items on delete cascade
) with (fillfactor = 85);
create index attempts_by_time on attempts (tenant_id, started_at);

-- What was seen --------------------------------------------------------------------------------------------------------

-- The whole answer as upstream gave it, zstd. A month is a partition, so retention drops tables instead of deleting rows.
create table answers (
    tenant_id   uuid        not null,
    item_id     uuid        not null,
    number      integer     not null,
    observed_at timestamptz not null,
    body        bytea       not null,
    primary key (tenant_id, item_id, number, observed_at)
) partition by range (observed_at);
alter table answers alter column body set storage external;

-- A product whose price is followed: what was asked, without its dates and without what does not change the product.
create table series (
    tenant_id uuid  not null references tenants,
    series    bytea not null check (octet_length(series) = 16),   -- digest of endpoint and product
    endpoint  text  not null,
    product   jsonb not null,
    -- The subject, for look-ups: flights by route, hotels by destination, name or id.
    origin    text,
    place     text  not null,
    currency  text  not null,
    market    text,
    primary key (tenant_id, series)
);
create index series_by_subject on series (tenant_id, endpoint, place, origin);

-- A price, or its absence, seen at a time. Narrow on purpose; a degraded or empty search leaves one without a price.
create table observations (
    tenant_id     uuid        not null,
    series        bytea       not null,
    first_date    date        not null,      -- departure or check-in
    last_date     date,                      -- return or check-out
    observed_at   timestamptz not null,
    price         numeric,
    seller        text,                      -- the carrier of the best fare, the room or hotel of the best rate
    results       integer,
    band_low      numeric,
    band_high     numeric,
    verdict       text,
    search_status text        not null check (search_status in ('ok', 'empty', 'partial', 'degraded')),
    reason        text,
    item_id       uuid        not null,
    number        integer     not null,
    primary key (tenant_id, series, first_date, observed_at, item_id, number)
) partition by range (observed_at);
create index observations_by_time on observations using brin (observed_at);

-- The last price seen for each date, kept up in the transaction that stores the answer.
create table latest_prices (
    tenant_id   uuid        not null,
    series      bytea       not null,
    first_date  date        not null,
    last_date   date        not null,        -- first_date where there is no second
    observed_at timestamptz not null,
    price       numeric     not null,
    seller      text,
    band_low    numeric,
    band_high   numeric,
    verdict     text,
    item_id     uuid        not null,
    primary key (tenant_id, series, first_date, last_date)
) with (fillfactor = 80);

-- Partitions are made by the program: at start, and by the sweeper long before they are needed.
create function make_partitions(of_time timestamptz, months_ahead integer) returns integer
language plpgsql as $$
declare
    parent text;
    month  timestamp := date_trunc('month', of_time at time zone 'UTC');
    first  timestamptz;
    name   text;
    made   integer := 0;
begin
    perform pg_advisory_xact_lock(hashtextextended('farescan.partitions', 0));
    for i in 0 .. months_ahead loop
        first := (month + make_interval(months => i)) at time zone 'UTC';
        foreach parent in array array['answers', 'observations'] loop
            name := parent || to_char(month + make_interval(months => i), '"_y"YYYY"m"MM');
            if to_regclass(name) is null then
                execute format('create table %I partition of %I for values from (%L) to (%L)', name, parent, first,
                               (month + make_interval(months => i + 1)) at time zone 'UTC');
                made := made + 1;
            end if;
        end loop;
    end loop;
    return made;
end $$;

-- A month back: an answer that a spool held while the database was away may be that old.
select make_partitions(now() - interval '1 month', 3);
