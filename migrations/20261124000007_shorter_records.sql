-- Functions of which the result or the arguments have changed (migrations/functions): such a function cannot be replaced. They are dropped
-- at once and not a release later, because nothing is released.
drop function if exists claim_items(bigint, integer);
drop function if exists record_calls(timestamptz, jsonb);
drop function if exists restore_lost_attempts(jsonb);
drop function if exists unknown_calls(jsonb);

-- What the calls that record_calls records came to for one scan.
create type ended_calls as (
    tenant_id  uuid,
    scan_id    uuid,
    api        text,
    unused     bigint,     -- reserved requests that were not spent
    ok         bigint,     -- items that have ended, by outcome
    empty      bigint,
    partial    bigint,
    degraded   bigint,
    failed     bigint,
    price      numeric,    -- the best of them in the scan's currency, and its item
    currency   text,
    item_id    uuid,
    known_currency text,   -- the scan's currency when its items were read
    ended      uuid[],     -- items that have ended
    put_back   uuid[],     -- items that are pending again, or wait for a retry
    reasons    text[],     -- pauses of the lane: why, for so many seconds or (null) until a resume, since when
    seconds    double precision[],
    since      timestamptz[]
);

-- What a grid shows beside an item's price (item_offers).
create type offer_record as (
    seller    text,
    board     text,
    link      text,
    band_low  numeric,
    band_high numeric,
    verdict   text
);
alter type finished_call add attribute offer offer_record;

-- A claim that is still its worker's, with its item as it was locked.
create type claim_to_begin as (
    worker_id  bigint,
    tenant_id  uuid,
    item_id    uuid,
    number     integer,
    attempt_id uuid,
    row_id     tid,
    scan_id    uuid,
    api        text,
    position   integer,
    state      text
);
