-- Calls that are recorded as returned make their items pending again, so their lane has to be due: whoever claims may have found nothing
-- left in it meanwhile, and nobody else would ever look. To be called before record_calls in its transaction, because lanes are locked
-- before items; those that record_calls is to stop are locked with the others, in one order.
create function arm_returned(p_calls jsonb) returns void
language plpgsql as $$
declare
    work record;
begin
    for work in
        select i.tenant_id, i.api, bool_or(c.ending = 'returned') as returned
        from jsonb_populate_recordset(null::finished_call, p_calls) c
        join scan_items i on i.tenant_id = c.tenant_id and i.item_id = c.item_id
        where c.ending = 'returned' or c.pause_reason is not null
        group by i.tenant_id, i.api
        order by i.tenant_id, i.api
    loop
        perform from lanes l where l.tenant_id = work.tenant_id and l.api = work.api for no key update;
        if work.returned then
            perform arm_lane(work.tenant_id, work.api);
        end if;
    end loop;
end $$;
