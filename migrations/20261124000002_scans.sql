-- Scans and the queue over their items.
--
-- An item:      pending ──claim──► claimed ──begin──► calling ──record──► done | failed
--                  ▲                  │                  │
--                  ├──── release ─────┘                  ├── returned (the key was refused) ──► pending
--                  └── delayed (a retry waits) ◄─────────┘
--               held: its scan is paused. deferred, skipped: of a two-phase scan. cancelled: its scan was cancelled.

-- One caller's subscription to one API: its pace, its quota, its pauses (docs/decisions/0010). The row is the mutex of the caller's
-- pending items of that API.
create table lanes (
    tenant_id           uuid        not null references tenants,
    api                 text        not null check (api in ('flights', 'hotels')),
    -- GCRA: a call every `emission`, `burst` of them at once after a rest; `arrival` is the theoretical arrival time.
    emission            interval    not null check (emission > interval '0'),
    burst               integer     not null check (burst >= 1),
    max_in_flight       integer     not null check (max_in_flight >= 1),
    arrival             timestamptz not null default '-infinity',
    -- Start-time fair queueing between the scans of a lane: the low-water mark of the pending items' sequence numbers.
    virtual_time        bigint      not null default 0,
    -- Where the sequence of the next scan starts, unless the virtual time is further. Scans of one item count as one scan here: each
    -- starts one stride after the one before (docs/decisions/0025).
    next_start          double precision not null default 0,
    -- When the next claim can find something; null: nothing is ready until submit, retry or resume wakes the lane.
    next_at             timestamptz,
    -- All permits were in use at the last claim: the next completion must wake the lane.
    full_up             boolean     not null default false,
    -- null: not paused; 'infinity': until a resume.
    paused_until        timestamptz,
    pause_reason        text check (pause_reason in ('rate_limited', 'quota_exhausted', 'reserve_reached', 'key_rejected',
                                                     'not_subscribed', 'moving')),
    -- How often the lane was resumed. A refusal of a call that began before the last resume does not pause it (docs/decisions/0022).
    resumes             integer     not null default 0,
    -- What the marketplace's plan headers last said.
    plan_limit          bigint,
    plan_remaining      bigint,
    plan_reset_at       timestamptz,
    plan_seen_at        timestamptz,
    -- What the window headers last said: requests in each minute, and how many of them are left until the reset.
    window_limit        bigint check (window_limit >= 0),
    window_remaining    bigint check (window_remaining >= 0),
    window_reset_at     timestamptz,
    -- The pace before anything is known of the plan.
    start_per_minute    double precision not null check (start_per_minute > 0),
    start_in_flight     integer     not null check (start_in_flight >= 1),
    -- Permits, as learned: more while answers come back and the pace is not used up, half after a 429.
    learned_in_flight   integer     not null check (learned_in_flight >= 1),
    -- The pace that a 429 left, and since when it grows again.
    slowed_to           double precision check (slowed_to > 0),
    slowed_at           timestamptz,
    -- The caller's own limits; null: none. own_plan_per_minute is the rate of the named plan.
    own_plan            text,
    own_plan_per_minute integer check (own_plan_per_minute >= 1),
    own_per_minute      integer check (own_per_minute >= 1),
    own_in_flight       integer check (own_in_flight >= 1),
    -- Requests of the plan that scans leave to the caller's own calls.
    keep_in_reserve     bigint      not null default 0 check (keep_in_reserve >= 0),
    -- The caller resumed a lane whose quota was used up: until then it continues beyond the quota, at the plan's price.
    beyond_quota_until  timestamptz,
    pace_source         text        not null default 'start' check (pace_source in ('start', 'headers', 'after_429', 'caller')),
    primary key (tenant_id, api),
    check ((paused_until is null) = (pause_reason is null)),
    check ((slowed_to is null) = (slowed_at is null))
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500,
        autovacuum_analyze_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
create index lanes_due on lanes (next_at) where next_at is not null;

-- What finished calls say of a lane: those of scans, and synchronous ones after the fact. Null: the marketplace did not say.
create type lane_update as (
    tenant_id            uuid,
    api                  text,
    answered             integer,           -- calls of scans that have ended
    charged              integer,           -- billed requests of synchronous calls
    limited_seconds      double precision,  -- a synchronous call met a 429 that lasts so long
    plan_limit           bigint,
    plan_remaining       bigint,
    plan_reset_seconds   double precision,
    window_limit         bigint,
    window_remaining     bigint,
    window_reset_seconds double precision
);

-- One for each of the marketplace's APIs, shared by all processes. The program counts outcomes (queue::circuit); while a circuit is
-- open, nothing of its API begins but a probe now and then. What is pending waits in its lane, unspent.
create table circuits (
    api         text        primary key check (api in ('flights', 'hotels')),
    -- What the program has counted since the circuit closed.
    tally       jsonb       not null default '{"in_a_row": 0, "steps": []}',
    opened_at   timestamptz,
    -- From when on the next probe may begin.
    probe_at    timestamptz,
    probe_every interval    not null default '10 s' check (probe_every > interval '0'),
    -- The items that were probes since it opened, newest first.
    probes      uuid[]      not null default '{}',
    check ((opened_at is null) = (probe_at is null))
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
insert into circuits (api) values ('flights'), ('hotels');

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
    upstream_limit    integer,                  -- the rows that flights request; null for hotels and for a search sent as written
    -- The searches are sent as their caller wrote them, and their outcomes are kept.
    verbatim          boolean     not null default false,
    max_attempts      smallint    not null check (max_attempts >= 1),
    retry_delay       interval    not null,
    status            text        not null check (status in ('queued', 'running', 'paused', 'completed', 'incomplete', 'cancelled')),
    -- Why the scan itself is paused; the reason of its lane stands in the lane and is shown from there.
    status_reason     text,
    total             integer     not null check (total between 1 and 10000),
    -- Ended items by outcome; the rest of total is pending or in flight, so nothing can drift.
    ok                integer     not null default 0,
    empty             integer     not null default 0,
    partial           integer     not null default 0,
    degraded          integer     not null default 0,
    failed            integer     not null default 0,
    cancelled         integer     not null default 0,
    -- Billed requests: counted before the first byte of each, so the limit holds whatever dies.
    requests_spent    integer     not null default 0,
    max_requests      integer,
    best_price        numeric,
    best_currency     text,
    best_item_id      uuid,
    grant_id          uuid,
    -- The monitor that made the scan. No foreign key: it stays when the monitor is deleted.
    monitor_id        uuid,
    -- The last event number that was given (docs/decisions/0006). A change of the scan takes one; n changed items take one each, and the
    -- scan one after them.
    event_count       bigint      not null default 0,
    -- Events with a lower number may be deleted.
    events_from       bigint      not null default 0,
    -- There may be rows in scan_events.
    has_events        boolean     not null default false,
    -- When listeners were last notified of changed items.
    notified_at       timestamptz,
    created_at        timestamptz not null,
    started_at        timestamptz,
    finished_at       timestamptz,
    primary key (tenant_id, scan_id),
    foreign key (tenant_id, grant_id) references key_grants,
    check (max_requests is null or requests_spent <= max_requests),
    check (ok + empty + partial + degraded + failed + cancelled <= total),
    check (events_from <= event_count)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
create index scans_newest on scans (tenant_id, scan_id desc);
create index scans_live on scans (tenant_id, api) where finished_at is null;
create index scans_of_monitor on scans (tenant_id, monitor_id, scan_id desc) where monitor_id is not null;
create index scans_with_events on scans (finished_at) where has_events and finished_at is not null;
create index scans_ended on scans (finished_at) where finished_at is not null;

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
    state          text     not null default 'pending'
                   check (state in ('pending', 'claimed', 'calling', 'delayed', 'held', 'deferred', 'skipped', 'done', 'failed',
                                    'cancelled')),
    -- Its sequence number in the lane: items are claimed in this order.
    turn           bigint   not null,
    -- The number of the last claim, never used again; calls are counted apart.
    attempt        integer  not null default 0,
    calls          integer  not null default 0,
    -- Calls that count against max_attempts since the caller's last retry (one with a refused key does not count).
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

-- The ledger: a row is written, with its request in the budget, before the first byte of a call, and completed after it.
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
    -- How often its lane had been resumed when the call began.
    lane_resumes   integer,
    primary key (tenant_id, item_id, number),
    foreign key (tenant_id, item_id) references scan_items on delete cascade
) with (fillfactor = 85);
create index attempts_by_time on attempts (tenant_id, started_at);

-- A finished call, as the writer passes it to record_calls.
create type finished_call as (
    tenant_id      uuid,
    item_id        uuid,
    number         integer,
    ended_at       timestamptz,
    ending         text,              -- done, failed; returned: the key was refused, so the item waits as if it had not been called
    may_retry      boolean,           -- degraded in a way that another call may cure
    http_status    smallint,
    search_status  text,
    reason         text,
    error          text,
    search_headers jsonb,
    latency_ms     integer,
    billed         integer,
    results        integer,
    best_price     numeric,
    currency       text,
    pause_reason   text,              -- the lane stops, for so many seconds or (null) until a resume
    pause_seconds  double precision,
    attempt_id     uuid
);

-- Scans of which not all items are stored yet: those from position `stored` on are made once their caller is accepted
-- (docs/decisions/0029).
create table unexpanded_scans (
    tenant_id uuid    not null,
    scan_id   uuid    not null,
    stored    integer not null check (stored >= 1),
    -- The part of the request that a scan's row does not have.
    strategy  json,
    primary key (tenant_id, scan_id),
    foreign key (tenant_id, scan_id) references scans on delete cascade
);

-- A two-phase scan: every coarse_step-th date first, then the neighbours of the `refine` cheapest (docs/decisions/0004).
create table scan_strategies (
    tenant_id    uuid     not null,
    scan_id      uuid     not null,
    coarse_step  smallint not null check (coarse_step >= 2),
    refine       smallint not null check (refine >= 1),
    -- Where an item's date stands in its position: position / inner % dates; combinations is the number of items without samples.
    dates        integer  not null check (dates >= 1),
    inner_items  integer  not null check (inner_items >= 1),
    combinations integer  not null check (combinations >= dates),
    -- Items that the first phase leaves out (0 too once the scan was cancelled in it), and how many of them the second phase left out
    -- too (null: it has not begun, or there is none).
    deferred     integer  not null check (deferred >= 0),
    skipped      integer  check (skipped between 0 and deferred),
    primary key (tenant_id, scan_id),
    foreign key (tenant_id, scan_id) references scans on delete cascade
);
create index scan_strategies_in_first_phase on scan_strategies (tenant_id, scan_id) where skipped is null and deferred > 0;

-- Items of one scan that changed in one statement: the last of them has the number last_id, those before it the numbers before that.
-- One row for all of them costs a tenth of one row each when the writer stores a hundred calls at once.
create table scan_events (
    tenant_id uuid   not null,
    scan_id   uuid   not null,
    last_id   bigint not null,
    items     uuid[] not null check (cardinality(items) > 0),
    primary key (tenant_id, scan_id, last_id),
    foreign key (tenant_id, scan_id) references scans on delete cascade
);

-- The best offer of an item that has a price: what a grid shows beside the price. Written once when the answer is recorded, so that the
-- queue's rows stay narrow and a grid of 10,000 items unpacks no answers. It is read only while its item has a price.
create table item_offers (
    tenant_id   uuid not null,
    item_id     uuid not null,
    -- The carrier, or the room type.
    seller      text,
    -- The board of a room: rates of different boards are different products.
    board       text,
    link        text,
    band_low    numeric,
    band_high   numeric,
    verdict     text,
    primary key (tenant_id, item_id),
    foreign key (tenant_id, item_id) references scan_items on delete cascade
);

-- What a synchronous answer is made of beside the stored body: the last outcome of a search that is sent as its caller wrote it (JSON,
-- zstd; no key in it).
create table search_outcomes (
    tenant_id uuid    not null,
    item_id   uuid    not null,
    number    integer not null,
    outcome   bytea   not null,
    primary key (tenant_id, item_id),
    foreign key (tenant_id, item_id) references scan_items on delete cascade
);
