-- A scan pauses for its key only while it has none: a call that found the key expired may say so after the caller has resumed the scan
-- with a fresh one, and the sweep may have looked before.

drop function hold_scan(uuid, uuid, text);

-- Pauses a live scan and holds what of it has not been sent; what is calling runs on. What a worker has seen may be over by now, so it
-- is looked at again under the scan's lock: the budget for budget_spent; for key_expired the key, which must be gone, or still be the one
-- that did not open (its nonce). False: there was nothing to pause.
create function hold_scan(p_tenant uuid, p_scan uuid, p_reason text, p_unopened bytea default null) returns boolean
language plpgsql as $$
declare
    lane_api text;
begin
    select s.api into lane_api from scans s where s.tenant_id = p_tenant and s.scan_id = p_scan;
    if not found then
        return false;
    end if;
    perform arm_lane(p_tenant, lane_api);
    perform from scan_items i
    where i.tenant_id = p_tenant and i.scan_id = p_scan and i.state in ('pending', 'claimed', 'delayed')
    order by i.item_id for no key update;
    perform from scans s where s.tenant_id = p_tenant and s.scan_id = p_scan for no key update;
    update scans s set status = 'paused', status_reason = p_reason
    where s.tenant_id = p_tenant and s.scan_id = p_scan and s.status in ('queued', 'running')
      and (p_reason <> 'budget_spent' or s.requests_spent >= s.max_requests)
      and (p_reason <> 'key_expired' or not exists (
              select from key_grants g
              where g.tenant_id = s.tenant_id and g.grant_id = s.grant_id and g.wiped_at is null
                and g.expires_at > clock_timestamp() and g.nonce is distinct from p_unopened));
    if not found then
        return false;
    end if;
    update scan_items i set state = 'held', worker_id = null, not_before = null
    where i.tenant_id = p_tenant and i.scan_id = p_scan and i.state in ('pending', 'claimed', 'delayed');
    perform pg_notify('farescan_scan', p_scan::text);
    return true;
end $$;
