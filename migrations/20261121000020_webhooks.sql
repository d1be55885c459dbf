-- Webhooks: where a monitor's events are sent, what was sent there, and every try of it.
--
-- A delivery:   pending ──2xx──► delivered
--                  │ ▲ a failure that is not the last: due again after the schedule's next delay
--                  ├─┘
--                  └─ the last failure, 410, switched off, closed ──► failed ──resend──► pending, from the first delay on
--
-- An endpoint is the lane of its deliveries, and its row their mutex: it is taken, with one delivery, for the time of a lease, so
-- that one try at most is in flight to a receiver. next_at is when the next look at it is of use; while it is taken, that is the end of
-- the lease, so what a dead process held is found by the same index as what is due. The row is locked before any delivery of it.

-- A webhook's secrets are sealed like the callers' keys, in the same table: a new master key, the check at start and the sweep of what
-- has expired hold for them too. They are no caller's key, so a rotation of that leaves them alone. (not valid: it allows more than
-- before, so there is nothing to look for in the rows.)
alter table key_grants drop constraint key_grants_purpose_check;
alter table key_grants add constraint key_grants_purpose_check check (purpose in ('scan', 'monitor', 'webhook')) not valid;

create table webhook_endpoints (
    tenant_id      uuid        not null references tenants,
    monitor_id     uuid        not null,
    url            text        not null,
    -- The grants that hold its secrets, the newest first. All but the first expire a day after they were replaced.
    secret_ids     uuid[]      not null check (cardinality(secret_ids) between 1 and 4),
    created_at     timestamptz not null,
    -- Switched off: nothing is sent any more. gone: the receiver answered 410. failing: five days without a success.
    off_at         timestamptz,
    off_reason     text check (off_reason in ('gone', 'failing')),
    delivered_at   timestamptz,
    -- The first failure since then.
    failing_since  timestamptz,
    next_at        timestamptz,
    taken_until    timestamptz,
    taken_delivery uuid,
    primary key (tenant_id, monitor_id),
    foreign key (tenant_id, monitor_id) references monitors on delete cascade,
    check ((off_at is null) = (off_reason is null)),
    check (off_at is null or next_at is null),
    check ((taken_until is null) = (taken_delivery is null))
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
create index webhook_endpoints_due on webhook_endpoints (next_at) where next_at is not null;

create table deliveries (
    tenant_id   uuid        not null references tenants,
    delivery_id uuid        not null,
    monitor_id  uuid        not null,
    event_type  text        not null,
    body        text        not null,          -- byte for byte what is sent; signed anew at each try
    status      text        not null default 'pending' check (status in ('pending', 'delivered', 'failed')),
    reason      text check (reason in ('tries_spent', 'gone', 'endpoint_off', 'endpoint_closed', 'worker_lost')),
    -- The failures after which it is given up: one for a test.
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

-- Written before the first byte is sent, and completed after it.
create table delivery_tries (
    tenant_id   uuid        not null,
    delivery_id uuid        not null,
    number      integer     not null,
    started_at  timestamptz not null,
    ended_at    timestamptz,
    http_status smallint,
    -- null beside an end: the receiver took it.
    error       text check (error in ('http_status', 'timeout', 'unresolved', 'address_refused', 'unconnected', 'broken',
                                      'secret_unreadable', 'worker_lost')),
    response    text,                           -- the beginning of what was answered
    latency_ms  integer,
    primary key (tenant_id, delivery_id, number),
    foreign key (tenant_id, delivery_id) references deliveries on delete cascade
) with (fillfactor = 85);

-- The secrets go with the endpoint, however it goes: also with its monitor.
create function forget_webhook_secrets() returns trigger
language plpgsql as $$
begin
    delete from key_grants g where g.tenant_id = old.tenant_id and g.grant_id = any (old.secret_ids);
    return null;
end $$;

create trigger webhook_closed after delete on webhook_endpoints for each row execute function forget_webhook_secrets();

-- Takes a delivery of each due endpoint, so many at most. A caller has `p_of_one` in flight at most, over all processes: beyond it his
-- endpoints look again a second later, behind those of others. Waits for no lock.
create function take_deliveries(p_now timestamptz, p_slots integer, p_of_one integer, p_lease interval)
returns table (tenant_id uuid, monitor_id uuid, delivery_id uuid, number integer, failures smallint, most_tries smallint, body text,
               url text, secret_ids uuid[])
language plpgsql as $$
#variable_conflict use_column
declare
    e     webhook_endpoints;
    d     deliveries;
    taken integer := 0;
    busy  integer;
begin
    for e in select w.* from webhook_endpoints w
             where w.next_at <= clock_timestamp()
             order by w.next_at limit 2 * p_slots
             for no key update skip locked
    loop
        exit when taken >= p_slots;
        -- Its holder has died, or hangs: what becomes of its try is not known.
        if e.taken_delivery is not null then
            perform lose_try(p_now, e.tenant_id, e.taken_delivery);
        end if;
        select * into d from deliveries waiting
        where waiting.tenant_id = e.tenant_id and waiting.monitor_id = e.monitor_id and waiting.due_at is not null
        order by waiting.due_at, waiting.delivery_id limit 1;
        select count(*) into busy from webhook_endpoints other
        where other.tenant_id = e.tenant_id and other.taken_until > clock_timestamp();
        update webhook_endpoints w
        set taken_until = null, taken_delivery = null,
            next_at = case when d.due_at <= clock_timestamp() and busy >= p_of_one then clock_timestamp() + interval '1 s'
                           else d.due_at end
        where w.tenant_id = e.tenant_id and w.monitor_id = e.monitor_id;
        continue when d.delivery_id is null or d.due_at > clock_timestamp() or busy >= p_of_one;
        update webhook_endpoints w
        set taken_until = clock_timestamp() + p_lease, next_at = clock_timestamp() + p_lease, taken_delivery = d.delivery_id
        where w.tenant_id = e.tenant_id and w.monitor_id = e.monitor_id;
        update deliveries n set tries = d.tries + 1 where n.tenant_id = e.tenant_id and n.delivery_id = d.delivery_id;
        insert into delivery_tries (tenant_id, delivery_id, number, started_at)
        values (e.tenant_id, d.delivery_id, d.tries + 1, p_now);
        taken := taken + 1;
        return query select e.tenant_id, e.monitor_id, d.delivery_id, d.tries + 1, d.failures, d.most_tries, d.body, e.url,
                            e.secret_ids;
    end loop;
end $$;

-- A try went with its process. It may have arrived, so the delivery is tried again at once; ten times, in case it is what kills them.
create function lose_try(p_now timestamptz, p_tenant uuid, p_delivery uuid) returns void
language plpgsql as $$
begin
    update delivery_tries t set ended_at = p_now, error = 'worker_lost'
    where t.tenant_id = p_tenant and t.delivery_id = p_delivery and t.ended_at is null;
    update deliveries n
    set lost = lost + 1,
        status = case when lost < 9 then status else 'failed' end,
        reason = case when lost < 9 then reason else 'worker_lost' end,
        due_at = case when lost < 9 then due_at end,
        ended_at = case when lost < 9 then ended_at else p_now end
    where n.tenant_id = p_tenant and n.delivery_id = p_delivery and n.status = 'pending';
end $$;

-- Puts the end of a try on record, and what it means for its delivery (p_fate: delivered, again, spent, gone) if the endpoint is still
-- taken for it: a process that was given up may have been overtaken, and then its result is evidence and nothing more. false: it was.
create function end_try(p_now timestamptz, p_tenant uuid, p_monitor uuid, p_delivery uuid, p_number integer, p_failures smallint,
                        p_http_status smallint, p_error text, p_response text, p_latency_ms integer, p_fate text, p_delay interval,
                        p_patience interval)
returns boolean
language plpgsql as $$
declare
    e webhook_endpoints;
    d deliveries;
begin
    select * into e from webhook_endpoints w where w.tenant_id = p_tenant and w.monitor_id = p_monitor for no key update;
    update delivery_tries t
    set ended_at = p_now, http_status = p_http_status, error = p_error, response = p_response, latency_ms = p_latency_ms
    where t.tenant_id = p_tenant and t.delivery_id = p_delivery and t.number = p_number;
    select * into d from deliveries n where n.tenant_id = p_tenant and n.delivery_id = p_delivery;
    if e.taken_delivery is distinct from p_delivery or d.tries is distinct from p_number then
        return false;
    end if;
    -- It was ordered again meanwhile: its failures count anew.
    if p_fate = 'spent' and d.failures < p_failures then
        p_fate := 'again';
    end if;
    update deliveries n
    set status = case p_fate when 'delivered' then 'delivered' when 'again' then 'pending' else 'failed' end,
        reason = case p_fate when 'spent' then 'tries_spent' when 'gone' then 'gone' end,
        failures = failures + (p_fate <> 'delivered')::integer,
        due_at = case p_fate when 'again' then clock_timestamp() + coalesce(p_delay, interval '5 s') end,
        ended_at = case when p_fate <> 'again' then p_now end
    where n.tenant_id = p_tenant and n.delivery_id = p_delivery;
    e.failing_since := case when p_fate <> 'delivered' then coalesce(e.failing_since, p_now) end;
    if p_fate = 'gone' or p_fate = 'spent' and e.failing_since <= p_now - p_patience then
        e.off_reason := case p_fate when 'gone' then 'gone' else 'failing' end;
        update deliveries n set status = 'failed', reason = 'endpoint_off', due_at = null, ended_at = p_now
        where n.tenant_id = p_tenant and n.monitor_id = p_monitor and n.due_at is not null;
    end if;
    update webhook_endpoints w
    set taken_until = null, taken_delivery = null, failing_since = e.failing_since, off_reason = e.off_reason,
        off_at = case when e.off_reason is not null then p_now end,
        delivered_at = case p_fate when 'delivered' then p_now else w.delivered_at end,
        next_at = (select min(n.due_at) from deliveries n
                   where n.tenant_id = p_tenant and n.monitor_id = p_monitor and n.due_at is not null)
    where w.tenant_id = p_tenant and w.monitor_id = p_monitor;
    return true;
end $$;

-- A delivery is due now, or soon: its endpoint is looked at, unless it is taken or switched off. Its row is locked, also where nothing
-- changes: whoever frees it then sees the delivery.
create function arm_endpoint(p_tenant uuid, p_monitor uuid) returns void
language plpgsql as $$
begin
    update webhook_endpoints w
    set next_at = case when w.off_at is null and w.taken_until is null then least(w.next_at, clock_timestamp()) else w.next_at end
    where w.tenant_id = p_tenant and w.monitor_id = p_monitor;
    perform pg_notify('farescan_delivery', '');
end $$;
