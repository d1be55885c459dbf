-- What a caller has spent, keys that have passed on to others, and synchronous searches that became scans.

-- Usage ------------------------------------------------------------------------------------------------------------------

-- What deleted scans had cost, by UTC day: their attempts go with them, and what was billed stays billed. Written in the transaction
-- that deletes a scan.
create table deleted_usage (
    tenant_id  uuid   not null references tenants,
    day        date   not null,
    endpoint   text   not null,
    attempts   bigint not null check (attempts >= 0),
    requests   bigint not null check (requests >= 0),
    -- Attempts by what their search said of itself; the rest of them was refused.
    ok         bigint not null,
    empty      bigint not null,
    partial    bigint not null,
    degraded   bigint not null,
    primary key (tenant_id, day, endpoint)
);

-- The billed requests of a caller from one midnight UTC to another: attempts by the day that they were put on record and by scan, and
-- what deleted scans had cost (scan_id null). A function that the planner opens, so that whoever groups its rows pays for no more.
create function usage_rows(p_tenant uuid, p_since timestamptz, p_until timestamptz)
returns table (day date, endpoint text, scan_id uuid, attempts bigint, requests bigint, ok bigint, empty bigint, partial bigint,
               degraded bigint)
language sql stable as $$
    select a.day, s.endpoint, a.scan_id, a.attempts, a.requests, a.ok, a.empty, a.partial, a.degraded
    from (select (t.started_at at time zone 'UTC')::date as day, t.scan_id, count(*) as attempts, sum(t.requests_spent) as requests,
                 count(*) filter (where t.search_status = 'ok') as ok,
                 count(*) filter (where t.search_status = 'empty') as empty,
                 count(*) filter (where t.search_status = 'partial') as partial,
                 count(*) filter (where t.search_status = 'degraded') as degraded
          from attempts t
          where t.tenant_id = p_tenant and t.started_at >= p_since and t.started_at < p_until
          group by 1, 2) a
    -- Left, so that whoever does not ask for endpoints is spared the join.
    left join scans s on s.tenant_id = p_tenant and s.scan_id = a.scan_id
    union all
    select d.day, d.endpoint, null, d.attempts, d.requests, d.ok, d.empty, d.partial, d.degraded
    from deleted_usage d
    where d.tenant_id = p_tenant and d.day >= (p_since at time zone 'UTC')::date and d.day < (p_until at time zone 'UTC')::date
$$;

-- Rotation ---------------------------------------------------------------------------------------------------------------

-- Fingerprints of keys whose tenant has passed on to another key, for two days: whoever sends a rotation again because its answer was
-- lost is given that answer. Part of the directory that finds a tenant, like tenant_keys; nothing is found by it but a repetition.
create table passed_keys (
    key_id        text        not null,
    fingerprint   bytea       not null check (octet_length(fingerprint) = 16),
    tenant_id     uuid        not null references tenants,
    passed_at     timestamptz not null,
    -- The answer: how many held keys were sealed anew, and which lanes go on.
    held_keys     integer     not null,
    lanes_resumed text[]      not null,
    primary key (key_id, fingerprint)
);
create index passed_keys_age on passed_keys (passed_at);

-- Synchronous searches that became scans ------------------------------------------------------------------------------------

-- What a synchronous answer is made of beside the stored answer's body: the last outcome of a search that goes upstream as its caller
-- wrote it (JSON, zstd; no key in it).
create table search_outcomes (
    tenant_id uuid    not null,
    item_id   uuid    not null,
    number    integer not null,
    outcome   bytea   not null,
    primary key (tenant_id, item_id),
    foreign key (tenant_id, item_id) references scan_items on delete cascade
);

comment on column scans.upstream_limit is
    'The rows that flights are asked for; null for hotels. 0: the searches go upstream as their caller wrote them, and their outcomes are kept.';
