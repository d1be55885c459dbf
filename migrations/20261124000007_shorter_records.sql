-- Functions of which the result or the arguments have changed (migrations/functions): such a function cannot be replaced.
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
    ended      uuid[],     -- items that have ended
    best_again boolean,    -- the item of the scan's best price is one of them
    put_back   uuid[],     -- items that are pending again, or wait for a retry
    reasons    text[],     -- pauses of the lane: why, for so many seconds or (null) until a resume, since when
    seconds    double precision[],
    since      timestamptz[]
);
