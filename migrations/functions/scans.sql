-- Scans: how they are shown, paused, ended and billed.

-- A scan as its caller sees it: beside its own row what its lane says, how many of its items are being searched, and until when its key is
-- held. Nothing of this is stored twice, so nothing can drift.
--
-- While a lane is paused its live scans are paused with the lane's reason, and while a circuit is open with upstream_down; a pause of the scan
-- itself outranks both.
create or replace view shown_scans as
select s.tenant_id, s.scan_id, s.endpoint, s.request, s.sweep, s.label, s.tags,
       case when stopped.reason is null then s.status else 'paused' end as status,
       coalesce(stopped.reason, s.status_reason) as status_reason,
       s.total, s.ok, s.empty, s.partial, s.degraded, s.failed, s.cancelled, busy.running,
       s.requests_spent, s.max_requests, s.best_price, s.best_currency, s.best_item_id,
       extract(epoch from l.emission)::double precision as seconds_per_search,
       g.expires_at as key_held_until,
       s.created_at, s.started_at, s.finished_at, s.monitor_id, extract(epoch from s.max_age)::integer as max_age_seconds, s.reused, s.joined,
       (select json_build_object('skipped', t.skipped, 'find', t.find, 'max_risk', t.max_risk, 'watch', t.watch, 'below', t.below,
                                 'currency', t.currency, 'known', t.known, 'decisions', t.decisions, 'risk', t.risk, 'ended_by', t.ended_by,
                                 'counted_questions', t.counted_questions, 'counted_missed', t.counted_missed,
                                 -- The scan's best price has the currency of its first answer, which may be another than was asked for, and
                                 -- it may be implausible.
                                 'best', (select json_build_object('item', i.item_id, 'date', i.first_date, 'price', i.best_price)
                                          from scan_items i
                                          where i.tenant_id = s.tenant_id
                                            and i.item_id = case when s.best_currency = t.currency and t.implausible = '{}' then s.best_item_id
                                                                 when s.best_currency is not null then
                                                                     (select o.item_id from scan_items o
                                                                      where o.tenant_id = s.tenant_id and o.scan_id = s.scan_id and o.state = 'done'
                                                                        and o.best_price is not null and o.currency = t.currency
                                                                        and o.position <> all (t.implausible)
                                                                      order by o.best_price, o.position limit 1)
                                                            end))
        from scan_strategies t where t.tenant_id = s.tenant_id and t.scan_id = s.scan_id) as strategy
from scans s
left join lanes l on l.tenant_id = s.tenant_id and l.api = s.api
left join key_grants g on g.tenant_id = s.tenant_id and g.grant_id = s.grant_id and g.wiped_at is null
left join lateral (
    select case when l.paused_until > clock_timestamp() then l.pause_reason
                when exists (select from circuits c where c.api = s.api and c.opened_at is not null) then 'upstream_down'
           end as reason
    where s.status in ('queued', 'running')
) stopped on true
-- The lane's few items in flight, by their own index; never the scan's thousands.
cross join lateral (
    select count(*) as running
    from scan_items i
    where s.finished_at is null and i.tenant_id = s.tenant_id and i.api = s.api and i.scan_id = s.scan_id
      and i.worker_id is not null and i.state = 'calling'
) busy;

-- Pauses a live scan and holds its items that were not sent; calls in flight complete. What a worker has seen may be outdated, so it is
-- checked again under the scan's lock: the budget for budget_spent; for key_expired the key, which must be gone, or still be the one that did
-- not open (its nonce). False: there was nothing to pause.
create or replace function pause_scan(p_tenant uuid, p_scan uuid, p_reason text, p_unopened bytea default null) returns boolean
language plpgsql as $$
declare
    lane_api text;
begin
    select s.api into lane_api from scans s where s.tenant_id = p_tenant and s.scan_id = p_scan;
    if not found then
        return false;
    end if;
    perform wake_lane(p_tenant, lane_api);
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
    update scan_items i set state = 'held', worker_id = null
    where i.tenant_id = p_tenant and i.scan_id = p_scan and i.state in ('pending', 'claimed', 'delayed');
    perform pg_notify('farescan_scan', p_scan::text);
    return true;
end $$;

-- What a deleted run had cost was billed all the same, and counts against its month.
create or replace function keep_requests_of_run() returns trigger
language plpgsql as $$
begin
    update monitor_slots s set deleted_requests = old.requests_spent
    where s.tenant_id = old.tenant_id and s.scan_id = old.scan_id;
    return old;
end $$;

create or replace trigger keep_requests_of_run before delete on scans
    for each row when (old.monitor_id is not null) execute function keep_requests_of_run();

-- Counts items that have ended, returns unused requests to the budget, and ends the scan with its last item.
create or replace function count_ended(p_now timestamptz, p_tenant uuid, p_scan uuid, p_ok bigint, p_empty bigint, p_partial bigint,
                            p_degraded bigint, p_failed bigint, p_cancelled bigint, p_unused bigint) returns scans
language plpgsql as $$
declare
    scan scans;
begin
    update scans s
    set ok = s.ok + p_ok, empty = s.empty + p_empty, partial = s.partial + p_partial, degraded = s.degraded + p_degraded,
        failed = s.failed + p_failed, cancelled = s.cancelled + p_cancelled, requests_spent = s.requests_spent - p_unused
    where s.tenant_id = p_tenant and s.scan_id = p_scan
    returning * into scan;
    return end_scan_if_done(p_now, scan);
end $$;

-- Settles the confirming searches of a scan that have ended in this transaction (monitors.md, rule 87): a complete answer stays, and the item
-- was searched, whatever answer it had taken before; otherwise the item has its earlier answer again. The counts and the best price follow.
-- The caller has updated the scan, and holds the locks of these items: whatever ends an item ends in end_scan_if_done, so no other transaction
-- can have left one.
create or replace function settle_confirmations(p_scan scans) returns scans
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_sort = off set plan_cache_mode = force_generic_plan
as $$
declare
    scan scans;
    kept uuid[];   -- items with their earlier answer
begin
    with ended as materialized (
        select i.item_id, i.row_id, i.state, i.search_status, i.joined, i.reused_from is not null as took, k.*,
               i.state = 'done' and i.search_status in ('ok', 'empty') as is_whole
        from unnest(p_scan.confirming) as x (item_id)
        cross join lateral (select i.*, i.ctid as row_id from scan_items i
                            where i.tenant_id = p_scan.tenant_id and i.item_id between x.item_id and x.item_id
                            order by i.item_id limit 1) i
        cross join lateral jsonb_to_record(i.earlier) as k (kept_status text, kept_reason text, kept_results integer, kept_price numeric,
                                                            kept_currency text, kept_at timestamptz, kept_latency integer,
                                                            kept_offer jsonb)
        where i.state in ('done', 'failed', 'cancelled')
    ), searched as (
        update scan_items i set earlier = null, joined = false, reused_item = null, reused_from = null, reused_at = null
        from ended e where e.is_whole and i.tenant_id = p_scan.tenant_id and i.ctid = e.row_id
    ), restored as (
        update scan_items i
        set earlier = null, state = 'done', search_status = e.kept_status, reason = e.kept_reason, results = e.kept_results,
            best_price = e.kept_price, currency = e.kept_currency, observed_at = e.kept_at, latency_ms = e.kept_latency, error = null
        from ended e where not e.is_whole and i.tenant_id = p_scan.tenant_id and i.ctid = e.row_id
    ), offered as (
        update item_offers o
        set seller = k.seller, board = k.board, link = k.link, band_low = k.band_low, band_high = k.band_high, verdict = k.verdict
        from ended e cross join lateral jsonb_populate_record(null::item_offers, e.kept_offer) k
        where not e.is_whole and e.kept_offer is not null and o.tenant_id = p_scan.tenant_id and o.item_id = e.item_id
    ), counted as (
        update scans s
        set ok = s.ok + c.ok, partial = s.partial + c.partial, degraded = s.degraded - c.degraded, failed = s.failed - c.failed,
            cancelled = s.cancelled - c.cancelled, reused = s.reused - c.reused, joined = s.joined - c.joined,
            confirming = nullif(array(select x from unnest(s.confirming) x where x <> all (c.items)), '{}')
        from (select array_agg(e.item_id) as items,
                     count(*) filter (where not e.is_whole and e.kept_status = 'ok') as ok,
                     count(*) filter (where not e.is_whole and e.kept_status = 'partial')
                         - count(*) filter (where e.state = 'done' and e.search_status = 'partial') as partial,
                     count(*) filter (where e.state = 'done' and e.search_status = 'degraded') as degraded,
                     count(*) filter (where e.state = 'failed') as failed,
                     count(*) filter (where e.state = 'cancelled') as cancelled,
                     count(*) filter (where e.is_whole and e.took and not e.joined) as reused,
                     count(*) filter (where e.is_whole and e.took and e.joined) as joined
              from ended e) c
        where c.items is not null and s.tenant_id = p_scan.tenant_id and s.scan_id = p_scan.scan_id
    )
    select array_agg(e.item_id) filter (where not e.is_whole) into kept from ended e;
    if kept is not null then
        perform update_best_price(p_scan.tenant_id, p_scan.scan_id, kept);
    end if;
    select * into scan from scans s where s.tenant_id = p_scan.tenant_id and s.scan_id = p_scan.scan_id;
    return scan;
end $$;

-- Ends a scan whose items have all ended: its status is decided, its key wiped, its listeners notified. A late answer may still make an
-- incomplete scan a completed one. The caller has updated the scan in this transaction.
create or replace function end_scan_if_done(p_now timestamptz, scan scans) returns scans
language plpgsql as $$
declare
    good boolean;
begin
    if scan.confirming is not null then
        scan := settle_confirmations(scan);
    end if;
    good := scan.partial + scan.degraded + scan.failed = 0;
    if scan.ok + scan.empty + scan.partial + scan.degraded + scan.failed + scan.cancelled < scan.total then
        return scan;
    end if;
    if scan.finished_at is null then
        update scans s
        set status = case when s.status = 'cancelled' then s.status when good then 'completed' else 'incomplete' end,
            status_reason = null, finished_at = p_now
        where s.tenant_id = scan.tenant_id and s.scan_id = scan.scan_id
        returning * into scan;
        update key_grants g set nonce = '', ciphertext = '', wiped_at = p_now
        where g.tenant_id = scan.tenant_id and g.grant_id = scan.grant_id and g.wiped_at is null;
        perform pg_notify('farescan_scan', scan.scan_id::text);
    elsif scan.status = 'incomplete' and good then
        update scans s set status = 'completed'
        where s.tenant_id = scan.tenant_id and s.scan_id = scan.scan_id
        returning * into scan;
    end if;
    return scan;
end $$;

-- Items that were put back follow the status of their scan, which may have changed meanwhile: held under a pause, cancelled under a
-- cancel. The caller holds the locks of the items and of the scan.
create or replace function follow_scan_status(p_now timestamptz, p_scan scans, p_items uuid[]) returns void
language plpgsql as $$
declare
    moved bigint;
begin
    if p_scan.status in ('queued', 'running') then
        return;
    end if;
    update scan_items i
    set state = case when p_scan.status = 'paused' then 'held' else 'cancelled' end,
        not_before = case when p_scan.status = 'paused' then i.not_before end
    where i.tenant_id = p_scan.tenant_id and i.item_id = any (p_items) and i.state in ('pending', 'delayed');
    get diagnostics moved = row_count;
    if p_scan.status <> 'paused' and moved > 0 then
        perform count_ended(p_now, p_scan.tenant_id, p_scan.scan_id, 0, 0, 0, 0, 0, moved, 0);
    end if;
end $$;

-- Updates the best price of a scan with items that have ended.
create or replace function update_best_price(p_tenant uuid, p_scan uuid, p_items uuid[]) returns void
language plpgsql
set enable_seqscan = off set enable_sort = off set plan_cache_mode = force_generic_plan
as $$
declare
    known text;
    best  record;
begin
    -- The item of the best price was searched again, so its price may be gone: look at all of them.
    update scans s set best_price = null, best_currency = null, best_item_id = null
    where s.tenant_id = p_tenant and s.scan_id = p_scan and s.best_item_id = any (p_items);
    if found then
        select i.item_id, i.best_price, i.currency into best
        from scan_items i
        where i.tenant_id = p_tenant and i.scan_id = p_scan and i.best_price is not null and i.state = 'done'
        order by i.best_price, i.position limit 1;
    else
        select s.best_currency into known from scans s where s.tenant_id = p_tenant and s.scan_id = p_scan;
        select i.item_id, i.best_price, i.currency into best
        from unnest(p_items) as x (item_id)
        cross join lateral (select * from scan_items i where i.tenant_id = p_tenant and i.item_id between x.item_id and x.item_id
                            order by i.item_id limit 1) i
        where i.best_price is not null and i.state = 'done' and (known is null or i.currency is not distinct from known)
        order by i.best_price, i.position limit 1;
    end if;
    update scans s set best_price = best.best_price, best_currency = best.currency, best_item_id = best.item_id
    where s.tenant_id = p_tenant and s.scan_id = p_scan and best.item_id is not null
      and (s.best_price is null or best.best_price < s.best_price);
end $$;
