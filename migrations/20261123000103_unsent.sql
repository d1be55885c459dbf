-- A call may be put on record after the process has given up waiting for that: it was never sent.

-- Takes such calls of one lane off the record, with their places in the budget: their claims stand again as if they had never begun.
create function take_back(p_tenant uuid, p_api text, p_items uuid[], p_numbers integer[]) returns void
language plpgsql as $$
declare
    work record;
begin
    perform arm_lane(p_tenant, p_api);
    perform from scan_items i
    join unnest(p_items, p_numbers) as x (item_id, number) on i.item_id = x.item_id and i.attempt = x.number
    where i.tenant_id = p_tenant and i.state = 'calling'
    order by i.tenant_id, i.item_id for no key update of i;
    for work in
        with unsent as materialized (
            select i.item_id, i.scan_id, i.attempt
            from unnest(p_items, p_numbers) as x (item_id, number)
            join scan_items i on i.tenant_id = p_tenant and i.item_id = x.item_id and i.attempt = x.number and i.state = 'calling'
            -- One that has a second place was sent, whatever the process says.
            join attempts a on a.tenant_id = p_tenant and a.item_id = i.item_id and a.number = i.attempt
                           and a.ended_at is null and a.requests_spent = 1
        ), taken as (
            delete from attempts a using unsent u
            where a.tenant_id = p_tenant and a.item_id = u.item_id and a.number = u.attempt
        ), moved as (
            update scan_items i
            set state = 'claimed', calls = i.calls - 1, counted_calls = i.counted_calls - 1, requests_spent = i.requests_spent - 1
            from unsent u
            where i.tenant_id = p_tenant and i.item_id = u.item_id
        )
        select u.scan_id, count(*) as calls from unsent u group by u.scan_id order by u.scan_id
    loop
        update scans s set requests_spent = s.requests_spent - work.calls where s.tenant_id = p_tenant and s.scan_id = work.scan_id;
    end loop;
end $$;
