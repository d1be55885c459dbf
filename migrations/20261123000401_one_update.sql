-- The deliverer updates each row once in a transaction. Postgres checks the foreign keys of a row that the same transaction has written before,
-- changed or not: a second update of a webhook locked its monitor behind it, which is the wrong order (webhooks::MonitorLock), and a deletion of
-- the monitor at that moment was a deadlock.

-- As before, with one update of each row; a delivery that was lost with its process is taken at the next look.
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
    takes boolean;
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
        takes := coalesce(e.taken_delivery is null and d.due_at <= clock_timestamp() and busy < p_of_one, false);
        update webhook_endpoints w
        set taken_until = case when takes then clock_timestamp() + p_lease end,
            taken_delivery = case when takes then d.delivery_id end,
            taken_epoch = case when takes then w.epoch else w.taken_epoch end,
            next_at = case when takes then clock_timestamp() + p_lease
                           when d.due_at <= clock_timestamp() and busy >= p_of_one then clock_timestamp() + interval '1 s'
                           else d.due_at end
        where w.tenant_id = e.tenant_id and w.monitor_id = e.monitor_id;
        continue when not takes;
        update deliveries n set tries = d.tries + 1 where n.tenant_id = e.tenant_id and n.delivery_id = d.delivery_id;
        insert into delivery_tries (tenant_id, delivery_id, number, started_at)
        values (e.tenant_id, d.delivery_id, d.tries + 1, p_now);
        taken := taken + 1;
        return query select e.tenant_id, e.monitor_id, d.delivery_id, d.tries + 1, d.failures, d.most_tries, d.body, e.url,
                            e.secret_ids;
    end loop;
end $$;
