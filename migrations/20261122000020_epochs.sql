-- A try that went to a place which its webhook has left since says nothing of the new one.

-- How often the endpoint was moved or switched on again, and what that was when it was taken: where the two differ, what comes of the try is
-- of a place, or a time, that its caller has put behind him.
alter table webhook_endpoints add column epoch integer not null default 0;
alter table webhook_endpoints add column taken_epoch integer not null default 0;

-- As before, and the epoch is kept with the take.
create or replace function take_deliveries(p_now timestamptz, p_slots integer, p_of_one integer, p_lease interval)
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
        set taken_until = clock_timestamp() + p_lease, next_at = clock_timestamp() + p_lease, taken_delivery = d.delivery_id,
            taken_epoch = w.epoch
        where w.tenant_id = e.tenant_id and w.monitor_id = e.monitor_id;
        update deliveries n set tries = d.tries + 1 where n.tenant_id = e.tenant_id and n.delivery_id = d.delivery_id;
        insert into delivery_tries (tenant_id, delivery_id, number, started_at)
        values (e.tenant_id, d.delivery_id, d.tries + 1, p_now);
        taken := taken + 1;
        return query select e.tenant_id, e.monitor_id, d.delivery_id, d.tries + 1, d.failures, d.most_tries, d.body, e.url,
                            e.secret_ids;
    end loop;
end $$;

-- As before, but where the endpoint was moved or switched on again during the try, its failure is none of the endpoint's.
create or replace function end_try(p_now timestamptz, p_tenant uuid, p_monitor uuid, p_delivery uuid, p_number integer, p_failures smallint,
                        p_http_status smallint, p_error text, p_response text, p_latency_ms integer, p_fate text, p_delay interval,
                        p_patience interval)
returns boolean
language plpgsql as $$
declare
    e       webhook_endpoints;
    d       deliveries;
    is_past boolean;
begin
    select * into e from webhook_endpoints w where w.tenant_id = p_tenant and w.monitor_id = p_monitor for no key update;
    update delivery_tries t
    set ended_at = p_now, http_status = p_http_status, error = p_error, response = p_response, latency_ms = p_latency_ms
    where t.tenant_id = p_tenant and t.delivery_id = p_delivery and t.number = p_number;
    select * into d from deliveries n where n.tenant_id = p_tenant and n.delivery_id = p_delivery;
    if e.taken_delivery is distinct from p_delivery or d.tries is distinct from p_number then
        return false;
    end if;
    -- A failure of the place that was left: it is tried again soon, at the new one, and is no failure of that. The old one may have asked
    -- for time (p_delay), or said that it wants no more; the new one has not.
    is_past := e.taken_epoch <> e.epoch and p_fate <> 'delivered';
    if is_past then
        p_fate := 'again';
        p_delay := null;
    end if;
    -- It was ordered again meanwhile: its failures count anew.
    if p_fate = 'spent' and d.failures < p_failures then
        p_fate := 'again';
    end if;
    update deliveries n
    set status = case p_fate when 'delivered' then 'delivered' when 'again' then 'pending' else 'failed' end,
        reason = case p_fate when 'spent' then 'tries_spent' when 'gone' then 'gone' end,
        failures = failures + (p_fate <> 'delivered' and not is_past)::integer,
        due_at = case p_fate when 'again' then clock_timestamp() + coalesce(p_delay, interval '5 s') end,
        ended_at = case when p_fate <> 'again' then p_now end
    where n.tenant_id = p_tenant and n.delivery_id = p_delivery;
    if not is_past then
        e.failing_since := case when p_fate <> 'delivered' then coalesce(e.failing_since, p_now) end;
    end if;
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
