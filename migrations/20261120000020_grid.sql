-- What grids and two-phase scans need beside the items.

-- The best offer of an item that has a price: what a grid shows beside the price. A table of its own, written once when the answer is
-- recorded, so that the queue's rows stay narrow and a grid of 10,000 items unpacks no answers. A row tells of the item's price as
-- long as the item has one: asked again without a price, the row is stale and nobody reads it.
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

-- Two more states of an item.
-- deferred: of a two-phase scan, not wanted yet; it counts as pending. skipped: never wanted; it counts nowhere, not in total either.
alter table scan_items drop constraint scan_items_state_check;
alter table scan_items add constraint scan_items_state_check
    check (state in ('pending', 'claimed', 'calling', 'delayed', 'held', 'deferred', 'skipped', 'done', 'failed', 'cancelled')) not valid;
alter table scan_items validate constraint scan_items_state_check;

-- How a two-phase scan goes: every coarse_step-th date first, then the neighbours of the `refine` cheapest.
create table scan_strategies (
    tenant_id    uuid     not null,
    scan_id      uuid     not null,
    coarse_step  smallint not null check (coarse_step >= 2),
    refine       smallint not null check (refine >= 1),
    -- Where an item's date stands in its position: position / inner % dates; combinations is the number of items without samples.
    dates        integer  not null check (dates >= 1),
    inner_items  integer  not null check (inner_items >= 1),
    combinations integer  not null check (combinations >= dates),
    -- Items that the first phase leaves out (0 too once the scan was cancelled in it), and how many of them the second left out too
    -- (null: there is none, or it has not begun).
    deferred     integer  not null check (deferred >= 0),
    skipped      integer  check (skipped between 0 and deferred),
    primary key (tenant_id, scan_id),
    foreign key (tenant_id, scan_id) references scans on delete cascade
);
create index scan_strategies_in_first_phase on scan_strategies (tenant_id, scan_id) where skipped is null and deferred > 0;
