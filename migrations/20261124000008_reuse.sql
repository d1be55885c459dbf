-- Answers that are reused instead of bought again (scans.md, rules 74 to 79).

-- Functions of which the result or the arguments have changed (migrations/functions).
drop function if exists claim_items(bigint, integer);
drop function if exists begin_calls(timestamptz, bigint[], uuid[], uuid[], integer[], uuid[]);

-- The items of a scan may take an answer that is at most so old; null: each is searched. Of its ended items, those that took an earlier
-- answer, and those that waited for an equal search in flight.
alter table scans
    add column max_age interval check (max_age > interval '0'),
    add column reused  integer not null default 0,
    add column joined  integer not null default 0;

-- The item and attempt whose answer the item took, and when.
alter table scan_items
    add column reused_item uuid,
    add column reused_from uuid,
    add column reused_at   timestamptz;

-- What the items of scans with a max_age search for, until they have ended and nobody can wait for them. Items with one search key differ in
-- nothing that changes the answer.
create table shared_searches (
    tenant_id  uuid    not null,
    item_id    uuid    not null,
    search_key bytea   not null check (octet_length(search_key) = 16),
    -- Its row in latest_prices, where its answers are found.
    series     bytea   not null,
    first_date date    not null,
    last_date  date    not null,
    -- It waits for an equal search in flight.
    waits      boolean not null default false,
    primary key (tenant_id, item_id),
    foreign key (tenant_id, item_id) references scan_items on delete cascade
);
create index shared_searches_by_key on shared_searches (tenant_id, search_key);
