-- Deliveries: leases and results of tries (docs/decisions/0015, 0028, 0058). An endpoint is a monitor's webhook or a channel; p_monitor is
-- the id of either, which the name of an argument cannot follow while processes of an earlier version call these functions.

-- A delivery is due now, or soon: its endpoint becomes due, unless it is leased or switched off. An address that is not confirmed is
-- switched off for all but the mail with its code. Its row is locked, also where nothing changes: the transaction that ends the lease then
-- sees the delivery.
create or replace function wake_endpoint(p_tenant uuid, p_monitor uuid) returns void
language plpgsql as $$
begin
    update webhook_endpoints w
    set next_at = case when w.off_at is not null and w.off_reason <> 'unconfirmed' then w.next_at
                       when w.taken_until is null then least(w.next_at, clock_timestamp())
                       -- It was switched off during a try and is on again: the lease may have been lost with its process.
                       else coalesce(w.next_at, w.taken_until) end
    where w.tenant_id = p_tenant and w.endpoint_id = p_monitor;
    perform pg_notify('farescan_delivery', '');
end $$;

-- Leases a delivery of each due endpoint, at most p_slots. Callers are served round robin: the one with the fewest tries in flight comes
-- first. A caller has at most p_of_one tries in flight over all processes, and gets at most a quarter of the free slots, so that another
-- caller always finds some; a host has at most p_of_host, of which one caller has at most half. What exceeds a limit becomes due again
-- later. Waits for no lock, and updates each row once: at the second update of a row in one transaction Postgres checks its foreign keys,
-- and so locks the monitor (docs/decisions/0028).
--
-- A channel has at most p_of_hour tries an hour, the lost and failed ones included.
create or replace function lease_messages(p_now timestamptz, p_slots integer, p_of_one integer, p_of_host integer, p_of_hour integer,
                                          p_lease interval, p_with_channels boolean)
returns table (tenant_id uuid, monitor_id uuid, channel_id uuid, kind text, delivery_id uuid, event_type text, number integer,
               failures smallint, most_tries smallint, body text, url_id uuid, secret_ids uuid[], notify json, timezone text)
language plpgsql as $$
#variable_conflict use_column
declare
    begun   timestamptz := clock_timestamp();
    e       webhook_endpoints;
    d       deliveries;
    taken   integer := 0;
    busy    integer;
    at_host integer;
    own     integer;
    is_mine boolean;
    again   interval;
    takes   boolean;
begin
    for e in with due as (
                 select w.tenant_id, w.endpoint_id, w.next_at from webhook_endpoints w
                 where w.next_at <= begun and (p_with_channels or w.channel_id is null)
             ), in_flight as (
                 select w.tenant_id, count(*) as tries from webhook_endpoints w where w.taken_until > begun group by w.tenant_id
             ), turns as (
                 select due.tenant_id, due.endpoint_id, due.next_at,
                        coalesce(f.tries, 0) + row_number() over (partition by due.tenant_id order by due.next_at) as turn
                 from due left join in_flight f on f.tenant_id = due.tenant_id
             )
             select w.* from turns t
             join webhook_endpoints w on w.tenant_id = t.tenant_id and w.endpoint_id = t.endpoint_id
             where w.next_at <= begun
             order by t.turn, t.next_at limit 2 * p_slots
             for no key update of w skip locked
    loop
        exit when taken >= p_slots;
        -- Its process has died, or hangs: the result of its try is unknown.
        if e.taken_delivery is not null then
            perform abandon_try(p_now, e.tenant_id, e.taken_delivery);
        end if;
        select * into d from deliveries waiting
        where waiting.tenant_id = e.tenant_id and coalesce(waiting.channel_id, waiting.monitor_id) = e.endpoint_id
          and waiting.due_at is not null
        order by waiting.due_at, waiting.delivery_id limit 1;
        select count(*) into busy from webhook_endpoints other
        where other.tenant_id = e.tenant_id and other.taken_until > clock_timestamp();
        -- One process at a time leases for a host: two would not see each other's tries.
        is_mine := coalesce(pg_try_advisory_xact_lock(hashtextextended('farescan.webhook ' || e.host, 0)), true);
        select count(*), count(*) filter (where other.tenant_id = e.tenant_id) into at_host, own from webhook_endpoints other
        where other.host = e.host and other.taken_until > clock_timestamp();
        again := case when cardinality(e.recent) >= p_of_hour and e.recent[1] > clock_timestamp() - interval '1 h'
                      then e.recent[1] + interval '1 h' - clock_timestamp()
                      when busy >= least(p_of_one, greatest(1, (p_slots - taken) / 4)) then interval '1 s'
                      when at_host >= p_of_host or own >= greatest(1, p_of_host / 2) or not is_mine then interval '100 ms' end;
        takes := coalesce(e.taken_delivery is null and d.due_at <= clock_timestamp() and again is null, false);
        update webhook_endpoints w
        set taken_until = case when takes then clock_timestamp() + p_lease end,
            taken_delivery = case when takes then d.delivery_id end,
            taken_epoch = case when takes then w.epoch else w.taken_epoch end,
            recent = case when takes and w.channel_id is not null
                          then (w.recent || clock_timestamp())[greatest(1, cardinality(w.recent) + 2 - p_of_hour):] else w.recent end,
            next_at = case when takes then clock_timestamp() + p_lease
                           when d.due_at <= clock_timestamp() and again is not null then clock_timestamp() + again
                           else d.due_at end
        where w.tenant_id = e.tenant_id and w.endpoint_id = e.endpoint_id;
        continue when not takes;
        update deliveries n set tries = d.tries + 1, is_held = false where n.tenant_id = e.tenant_id and n.delivery_id = d.delivery_id;
        insert into delivery_tries (tenant_id, delivery_id, number, started_at)
        values (e.tenant_id, d.delivery_id, d.tries + 1, p_now);
        taken := taken + 1;
        return query select e.tenant_id, e.monitor_id, e.channel_id, e.kind, d.delivery_id, d.event_type, d.tries + 1, d.failures,
                            d.most_tries, d.body, e.url_id, e.secret_ids, c.notify, c.timezone
                     from (select) one left join channels c on c.tenant_id = e.tenant_id and c.channel_id = e.channel_id;
    end loop;
end $$;

-- Takes back a try that has not begun: it is in the quiet hours of its channel, which end at p_until.
-- The database's clock may be ahead of the process's: without the second the message would be leased again at once, until they agree.
create or replace function postpone_try(p_tenant uuid, p_endpoint uuid, p_delivery uuid, p_number integer, p_until timestamptz)
returns void
language plpgsql as $$
declare
    e webhook_endpoints;
begin
    select * into e from webhook_endpoints w where w.tenant_id = p_tenant and w.endpoint_id = p_endpoint for no key update;
    if e.taken_delivery is distinct from p_delivery then
        return;
    end if;
    update deliveries n set tries = tries - 1, due_at = greatest(p_until, clock_timestamp() + interval '1 second')
    where n.tenant_id = p_tenant and n.delivery_id = p_delivery and n.tries = p_number and n.due_at is not null;
    if not found then
        return;
    end if;
    delete from delivery_tries t where t.tenant_id = p_tenant and t.delivery_id = p_delivery and t.number = p_number;
    update webhook_endpoints w
    set taken_until = null, taken_delivery = null, recent = w.recent[:cardinality(w.recent) - 1],
        next_at = (select min(n.due_at) from deliveries n
                   where n.tenant_id = p_tenant and coalesce(n.channel_id, n.monitor_id) = p_endpoint and n.due_at is not null)
    where w.tenant_id = p_tenant and w.endpoint_id = p_endpoint;
end $$;

-- For processes of an earlier version, which know no channels.
create or replace function lease_deliveries(p_now timestamptz, p_slots integer, p_of_one integer, p_of_host integer, p_lease interval)
returns table (tenant_id uuid, monitor_id uuid, delivery_id uuid, number integer, failures smallint, most_tries smallint, body text,
               url_id uuid, secret_ids uuid[])
language sql as $$
    select l.tenant_id, l.monitor_id, l.delivery_id, l.number, l.failures, l.most_tries, l.body, l.url_id, l.secret_ids
    from lease_messages(p_now, p_slots, p_of_one, p_of_host, 1, p_lease, false) l
$$;

-- Records the result of a try; false: its lease had expired, so the result is stored as evidence only.
create or replace function end_try(p_now timestamptz, p_tenant uuid, p_monitor uuid, p_delivery uuid, p_number integer, p_failures smallint,
                        p_http_status smallint, p_error text, p_response text, p_latency_ms integer, p_fate text, p_delay interval,
                        p_patience interval)
returns boolean
language plpgsql as $$
declare
    e       webhook_endpoints;
    d       deliveries;
    is_past boolean;
    is_code boolean;
    is_test boolean;
begin
    select * into e from webhook_endpoints w where w.tenant_id = p_tenant and w.endpoint_id = p_monitor for no key update;
    update delivery_tries t
    set ended_at = p_now, http_status = p_http_status, error = p_error, response = p_response, latency_ms = p_latency_ms
    where t.tenant_id = p_tenant and t.delivery_id = p_delivery and t.number = p_number;
    select * into d from deliveries n where n.tenant_id = p_tenant and n.delivery_id = p_delivery;
    if e.taken_delivery is distinct from p_delivery or d.tries is distinct from p_number then
        return false;
    end if;
    -- A failure at a URL that was changed since: it is tried again soon at the new one, and is no failure of that. The old receiver may
    -- have asked for a delay (p_delay) or for no more (gone); the new one has not.
    is_past := e.taken_epoch <> e.epoch and p_fate <> 'delivered';
    if is_past then
        p_fate := 'again';
        p_delay := null;
    end if;
    -- It was sent again meanwhile: its failures are counted from 0 again.
    if p_fate = 'spent' and d.failures < p_failures then
        p_fate := 'again';
    end if;
    -- Its caller has paused the channel meanwhile, which has failed it. It stays failed, also where the channel is active again. The mail with
    -- a code is tried again while its address waits for it, unless a later one has taken its place.
    is_code := d.event_type = 'channel.confirm';
    if p_fate = 'again' and (d.status <> 'pending' or is_code and e.off_reason is distinct from 'unconfirmed') then
        p_fate := 'off';
    end if;
    update deliveries n
    set status = case p_fate when 'delivered' then 'delivered' when 'again' then 'pending' else 'failed' end,
        reason = case p_fate when 'spent' then case when d.event_type in ('monitor.test', 'channel.test') then 'test_failed' else 'tries_spent' end
                             when 'gone' then 'gone' when 'off' then 'endpoint_off' when 'refused' then 'refused' end,
        failures = failures + (p_fate <> 'delivered' and not is_past)::integer,
        due_at = case p_fate when 'again' then clock_timestamp() + coalesce(p_delay, interval '5 s') end,
        ended_at = case when p_fate <> 'again' then p_now end
    where n.tenant_id = p_tenant and n.delivery_id = p_delivery;
    -- A test says whether a receiver works; its failure never counts against the webhook, nor does that of the mail with a code.
    is_test := is_code or d.event_type in ('monitor.test', 'channel.test');
    if not is_past and (p_fate = 'delivered' or not is_test) then
        e.failing_since := case when p_fate <> 'delivered' then coalesce(e.failing_since, p_now) end;
    end if;
    if not is_test and (p_fate = 'gone' or p_fate in ('spent', 'refused') and e.failing_since <= p_now - p_patience) then
        e.off_reason := case p_fate when 'gone' then 'gone' else 'failing' end;
        update deliveries n set status = 'failed', reason = 'endpoint_off', due_at = null, ended_at = p_now
        where n.tenant_id = p_tenant and coalesce(n.channel_id, n.monitor_id) = p_monitor and n.due_at is not null;
    end if;
    update webhook_endpoints w
    set taken_until = null, taken_delivery = null, failing_since = e.failing_since, off_reason = e.off_reason,
        off_at = case when e.off_reason is not null then coalesce(e.off_at, p_now) end,
        delivered_at = case p_fate when 'delivered' then p_now else w.delivered_at end,
        next_at = (select min(n.due_at) from deliveries n
                   where n.tenant_id = p_tenant and coalesce(n.channel_id, n.monitor_id) = p_monitor and n.due_at is not null)
    where w.tenant_id = p_tenant and w.endpoint_id = p_monitor;
    return true;
end $$;

-- A try was lost with its process. It may have arrived, so the delivery is tried again at once; ten times, in case the delivery is what
-- kills the processes.
create or replace function abandon_try(p_now timestamptz, p_tenant uuid, p_delivery uuid) returns void
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

-- Deletes the secrets and the URL of a deleted endpoint.
create or replace function delete_webhook_secrets() returns trigger
language plpgsql as $$
begin
    delete from key_grants g where g.tenant_id = old.tenant_id and (g.grant_id = any (old.secret_ids) or g.grant_id = old.url_id);
    return null;
end $$;

create or replace trigger webhook_closed after delete on webhook_endpoints for each row execute function delete_webhook_secrets();
