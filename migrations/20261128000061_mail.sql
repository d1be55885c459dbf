-- Channels of kind `email` (channels.md, rules 19 to 25; docs/decisions/0059).

alter table channels
    drop constraint channels_kind_check,
    add check (kind in ('ntfy', 'slack', 'email'));

alter table webhook_endpoints
    drop constraint webhook_endpoints_kind_check,
    add check (kind in ('webhook', 'ntfy', 'slack', 'email')),
    drop constraint webhook_endpoints_off_reason_check,
    add check (off_reason in ('gone', 'failing', 'by_caller', 'unconfirmed', 'unsubscribed')),
    -- An address that is not confirmed gets the mail with its code, though its channel is off.
    drop constraint webhook_endpoints_check1,
    add check (off_at is null or next_at is null or off_reason = 'unconfirmed'),
    -- Of an address: when it was confirmed; null until then, and after its reader has unsubscribed.
    add column confirmed_at timestamptz,
    -- A keyed digest of the code that was mailed last, until when it is valid, and how many wrong ones were entered since.
    add column code_digest bytea,
    add column code_until timestamptz,
    add column code_failures smallint not null default 0,
    -- When a code was last asked for.
    add column code_asked_at timestamptz;

-- How many codes an address was mailed lately, over all callers (channels.md, rule 21). No address is here, only its keyed digest.
create table mailed_addresses (
    address_digest bytea primary key check (octet_length(address_digest) = 16),
    -- When codes were asked for within seven days, the oldest first; empty once one was entered.
    codes_asked timestamptz[] not null default '{}',
    -- Until when its reader wants no code.
    refused_until timestamptz,
    -- From when on nothing of the row counts.
    ends_at timestamptz not null
);
create index on mailed_addresses (ends_at);

-- Not valid: each row fits, because it fitted the check before, and reading all of them would take the lock for long.
alter table deliveries
    drop constraint deliveries_reason_check,
    add check (reason in ('tries_spent', 'test_failed', 'gone', 'endpoint_off', 'endpoint_closed', 'worker_lost', 'refused')) not valid;

alter table delivery_tries
    drop constraint delivery_tries_error_check,
    add check (error in ('http_status', 'timeout', 'unresolved', 'address_refused', 'unconnected', 'broken', 'secret_unreadable',
                         'worker_lost', 'mail_deferred', 'mail_refused', 'not_set_up')) not valid;

-- When the caller last had codes mailed, the oldest first, at most as many as a day may have. Not in the channels, which can be deleted.
alter table tenants add column codes_asked timestamptz[] not null default '{}';
