-- Webhooks: a monitor's endpoint, its deliveries, and every try of them.
--
-- A delivery:   pending ──2xx──► delivered
--                  │ ▲ a failure that is not the last: due again after the schedule's next delay
--                  ├─┘
--                  └─ the last failure, 410, switched off, closed ──► failed ──resend──► pending, from the first delay on
--
-- An endpoint is the lane of its deliveries, and its row their mutex: it is leased together with one delivery, so that at most one try is
-- in flight to a receiver. The row is locked before any delivery of it.

create table webhook_endpoints (
    tenant_id      uuid        not null references tenants,
    monitor_id     uuid        not null,
    -- The grant that holds its URL, which often contains a secret.
    url_id         uuid        not null,
    -- The host of the URL, in lower case and without a port: tries in flight are limited for each host (docs/decisions/0015).
    host           text        not null,
    -- The grants that hold its secrets, the newest first. All but the first expire a day after they were replaced.
    secret_ids     uuid[]      not null check (cardinality(secret_ids) between 1 and 4),
    created_at     timestamptz not null,
    -- Switched off: nothing is sent any more. gone: the receiver answered 410. failing: five days without a success.
    off_at         timestamptz,
    off_reason     text check (off_reason in ('gone', 'failing')),
    delivered_at   timestamptz,
    -- The first failure since then.
    failing_since  timestamptz,
    -- When the next poll can find something; while the row is leased, the end of the lease.
    next_at        timestamptz,
    taken_until    timestamptz,
    taken_delivery uuid,
    -- How often the URL was changed or the endpoint was switched on again, and that number when it was leased: where the two differ, the
    -- result of the try says nothing of the present endpoint.
    epoch          integer     not null default 0,
    taken_epoch    integer     not null default 0,
    primary key (tenant_id, monitor_id),
    foreign key (tenant_id, monitor_id) references monitors on delete cascade,
    check ((off_at is null) = (off_reason is null)),
    check (off_at is null or next_at is null),
    check ((taken_until is null) = (taken_delivery is null))
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
create index webhook_endpoints_due on webhook_endpoints (next_at) where next_at is not null;
create index webhook_endpoints_taken on webhook_endpoints (tenant_id) where taken_until is not null;
create index webhook_endpoints_taken_host on webhook_endpoints (host) where taken_until is not null;

create table deliveries (
    tenant_id   uuid        not null references tenants,
    delivery_id uuid        not null,
    monitor_id  uuid        not null,
    event_type  text        not null,
    body        text        not null,          -- byte for byte what is sent; signed anew at each try
    status      text        not null default 'pending' check (status in ('pending', 'delivered', 'failed')),
    reason      text check (reason in ('tries_spent', 'test_failed', 'gone', 'endpoint_off', 'endpoint_closed', 'worker_lost')),
    -- The failures after which it fails for good: one for a test.
    most_tries  smallint    not null check (most_tries between 1 and 8),
    -- Failures, and tries lost with their process, since it was made or sent again.
    failures    smallint    not null default 0,
    lost        smallint    not null default 0,
    -- The number of its last try, never used again.
    tries       integer     not null default 0,
    due_at      timestamptz,
    created_at  timestamptz not null,
    ended_at    timestamptz,
    primary key (tenant_id, delivery_id),
    foreign key (tenant_id, monitor_id) references monitors on delete cascade,
    check ((status = 'pending') = (due_at is not null)),
    check ((status = 'pending') = (ended_at is null)),
    check ((status = 'failed') = (reason is not null)),
    check (octet_length(body) <= 1048576)
) with (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000);
create index deliveries_due on deliveries (tenant_id, monitor_id, due_at, delivery_id) where due_at is not null;
create index deliveries_of_monitor on deliveries (tenant_id, monitor_id, delivery_id);
create index deliveries_ended on deliveries (ended_at) where ended_at is not null;
create index deliveries_tests on deliveries (tenant_id, monitor_id) where event_type = 'monitor.test';

-- Written before the first byte is sent, and completed after it.
create table delivery_tries (
    tenant_id   uuid        not null,
    delivery_id uuid        not null,
    number      integer     not null,
    started_at  timestamptz not null,
    ended_at    timestamptz,
    http_status smallint,
    -- null beside an end: the receiver accepted it.
    error       text check (error in ('http_status', 'timeout', 'unresolved', 'address_refused', 'unconnected', 'broken',
                                      'secret_unreadable', 'worker_lost')),
    response    text,                           -- the beginning of the receiver's answer
    latency_ms  integer,
    primary key (tenant_id, delivery_id, number),
    foreign key (tenant_id, delivery_id) references deliveries on delete cascade
) with (fillfactor = 85);
