-- A call's begin changes no column of an index, so that its item's new row version needs no index entries where its page has space
-- (heap-only tuples): `state` is in no index, but what the indexes need of it, in columns that a begin leaves as they are. An item is claimed
-- or calling exactly while it has a worker.
drop index scan_items_pending, scan_items_in_flight, scan_items_of_worker, scan_items_delayed;
alter table scan_items
    add column is_pending boolean not null generated always as (state = 'pending') stored,
    add column is_delayed boolean not null generated always as (state = 'delayed') stored;
create index scan_items_pending on scan_items (tenant_id, api, turn, item_id) where is_pending;
create index scan_items_in_flight on scan_items (tenant_id, api, worker_id) where worker_id is not null;
create index scan_items_of_worker on scan_items (worker_id) where worker_id is not null;
create index scan_items_delayed on scan_items (not_before) where is_delayed;
