-- Answers and prices. Partitions are months in UTC, so retention drops tables instead of deleting rows.

-- The whole answer as the marketplace gave it, zstd.
create table answers (
    tenant_id   uuid        not null,
    item_id     uuid        not null,
    number      integer     not null,
    observed_at timestamptz not null,
    body        bytea       not null,
    primary key (tenant_id, item_id, number, observed_at)
) partition by range (observed_at);
alter table answers alter column body set storage external;

-- A product whose price is followed: a search without its dates and without what does not change the product.
create table series (
    tenant_id      uuid  not null references tenants,
    series         bytea not null check (octet_length(series) = 16),   -- digest of endpoint and product
    endpoint       text  not null,
    product        jsonb not null,
    -- The subject, for look-ups: flights by route, hotels by destination, name or id.
    origin         text,
    place          text  not null,
    currency       text  not null,
    market         text,
    -- Days before this one are packed in observed_days; from it on the observations are read. Null: all days are packed
    -- (docs/decisions/0020).
    unpacked_since timestamptz,
    primary key (tenant_id, series)
);
-- The expression is the body of place_key().
create index series_by_place on series (tenant_id, endpoint,
    (case when endpoint in ('hotels/by-name', 'hotels/search') then lower(btrim(place) collate "C") else place end), origin);
create index series_unpacked on series (unpacked_since, tenant_id, series) where unpacked_since is not null;

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
-- In the order of the lists: the primary key has the dates before the time, so a page of a route would read and sort the whole route.
create index observations_newest on observations (tenant_id, series, observed_at, item_id, number);

-- For each date the newest price, if there ever was one, and the newest sample, whatever it came to. Updated in the transaction that
-- stores the answer.
create table latest_prices (
    tenant_id      uuid        not null,
    series         bytea       not null,
    first_date     date        not null,
    last_date      date        not null,        -- first_date where there is no second
    observed_at    timestamptz,
    price          numeric,
    seller         text,
    band_low       numeric,
    band_high      numeric,
    verdict        text,
    item_id        uuid,
    sampled_at     timestamptz,
    sample_status  text check (sample_status in ('ok', 'empty', 'partial', 'degraded')),
    sample_reason  text,
    sample_item_id uuid,
    primary key (tenant_id, series, first_date, last_date),
    check ((price is null) = (observed_at is null) and (price is null) = (item_id is null)),
    check ((sampled_at is null) = (sample_status is null) and (sampled_at is null) = (sample_item_id is null))
) with (fillfactor = 80);

-- The samples of a product in one UTC day, packed for aggregates: a year of a route with sixty departures is 365 rows instead of 21,900.
-- Made from the observations, and made again when one of them comes late or is deleted (docs/decisions/0020).
create table observed_days (
    tenant_id uuid        not null,
    series    bytea       not null,
    begins_at timestamptz not null check (begins_at = date_trunc('day', begins_at, 'UTC')),
    samples   bytea       not null,
    primary key (tenant_id, series, begins_at)
) partition by range (begins_at);
alter table observed_days alter column samples set storage external;

-- Partitions that retention removes. A row stands from before the first step (detaching) until after the last (dropping), so that the
-- next process continues where one died. A table that an operator detached is not in it, and is never touched.
create table retiring_partitions (
    partition  text        primary key,
    parent     text        not null check (parent in ('answers', 'observations', 'observed_days')),
    retired_at timestamptz not null
);
