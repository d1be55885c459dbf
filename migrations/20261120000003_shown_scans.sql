-- A scan as its caller sees it: beside its own row what its lane says, how many of its items are being searched, and until when its
-- key is held. Nothing of this is stored twice, so nothing can drift.
--
-- While a lane is stopped its live scans are paused with the lane's reason; a pause of the scan itself outranks it.
create view shown_scans as
select s.tenant_id, s.scan_id, s.endpoint, s.request, s.sweep, s.label, s.tags,
       case when stopped.reason is null then s.status else 'paused' end as status,
       coalesce(stopped.reason, s.status_reason) as status_reason,
       s.total, s.ok, s.empty, s.partial, s.degraded, s.failed, s.cancelled, busy.running,
       s.requests_spent, s.max_requests, s.best_price, s.best_currency, s.best_item_id,
       extract(epoch from l.emission)::double precision as seconds_per_search,
       g.expires_at as key_held_until,
       s.created_at, s.started_at, s.finished_at
from scans s
left join lanes l on l.tenant_id = s.tenant_id and l.api = s.api
left join key_grants g on g.tenant_id = s.tenant_id and g.grant_id = s.grant_id and g.wiped_at is null
left join lateral (
    select l.pause_reason as reason where s.status in ('queued', 'running') and l.paused_until > clock_timestamp()
) stopped on true
-- The lane's few items in flight, by their own index; never the scan's thousands.
cross join lateral (
    select count(*) as running
    from scan_items i
    where s.finished_at is null and i.tenant_id = s.tenant_id and i.api = s.api and i.scan_id = s.scan_id
      and i.state in ('claimed', 'calling') and i.state = 'calling'
) busy;
