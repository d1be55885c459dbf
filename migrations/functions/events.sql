-- Events: what changed in a scan, in the order of the commits (docs/decisions/0006).
--
-- Every change that a caller can see takes event numbers of its scan: the scan's row is locked from then to the commit, so numbers are given
-- in the order of the commits. An event names the item that changed and no more: the item is read when the event is sent.
--
-- Triggers number the changes, so that no statement can forget it. They lock a scan after its items, as everything does. The pause of a lane
-- takes no number, because lanes are locked before items: its scans' listeners are only notified.

-- Numbers the items that a statement changed.
create or replace function number_item_events() returns trigger
language plpgsql
-- The two versions of thousands of items are joined by a hash; a plan that was made for one item would compare all with all.
set enable_nestloop = off
as $$
declare
    tenants uuid[];   -- one entry for each changed item
    scans   uuid[];
    items   uuid[];
begin
    -- A claim, the most frequent change, shows nowhere.
    if not exists (select from items_after a where a.state <> 'claimed') then
        return null;
    end if;
    select array_agg(c.tenant_id), array_agg(c.scan_id), array_agg(c.item_id) into tenants, scans, items
    from (select a.tenant_id, a.scan_id, a.item_id
          from items_after a join items_before b on b.tenant_id = a.tenant_id and b.item_id = a.item_id
          where (shown_item_state(a.state), a.search_status, a.reason, a.observed_at)
                is distinct from (shown_item_state(b.state), b.search_status, b.reason, b.observed_at)
          order by a.tenant_id, a.scan_id, a.position) c;
    if items is not null then
        perform take_event_numbers(tenants, scans, items);
    end if;
    return null;
end $$;

-- Gives changed items the next event numbers of their scans; the arrays are in the order of tenants, scans and positions.
create or replace function take_event_numbers(p_tenants uuid[], p_scans uuid[], p_items uuid[]) returns void
language plpgsql as $$
begin
    perform lock_scans(p_tenants, p_scans);
    perform change_scans(array(
        select row (x.tenant_id, x.scan_id, null, 0, 0, 0, 0, 0, 0, null, null, null, null, null, null, null, null, null, null,
                    array_agg(x.item_id order by x.nth))::ended_calls
        from unnest(p_tenants, p_scans, p_items) with ordinality as x (tenant_id, scan_id, item_id, nth)
        group by x.tenant_id, x.scan_id));
end $$;

-- Locks scans in the one order in which all do.
create or replace function lock_scans(p_tenants uuid[], p_scans uuid[]) returns void
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $$
begin
    perform from (select distinct x.tenant_id, x.scan_id from unnest(p_tenants, p_scans) as x (tenant_id, scan_id)
                  order by x.tenant_id, x.scan_id offset 0) x
    cross join lateral (select from scans s where s.tenant_id = x.tenant_id and s.scan_id between x.scan_id and x.scan_id
                        order by s.scan_id limit 1 for no key update) s;
end $$;

-- Changes scans, whose rows the caller has locked: counts, budget, best price, and the event numbers of their items, in one version of each
-- row. A second one in the same transaction would lock the rows that the scan refers to as well. looks_again: the best price must be looked
-- for, because its item was searched again, or the currency has come since the caller read it.
--
-- A row of events is appended to until it has a hundred numbers or so: one call at a time would otherwise cost two rows with their keys.
-- Listeners are notified at most twice a second, because commits that notify wait for each other and the writers' must not; a listener polls
-- again a second later, and so sees the rest.
create or replace function change_scans(p_changes ended_calls[])
returns table (scan scans, put_back uuid[], ended uuid[], looks_again boolean)
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_sort = off set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    t    timestamptz := clock_timestamp();
    work record;
begin
    for work in
        with found as materialized (
            select c.*, coalesce(cardinality(c.changed), 0) as numbers, s.row_id, s.looks_again, n.row_id as newest, n.next_id, n.length,
                   not s.looks_again and c.price is not null and (s.best_price is null or c.price < s.best_price) as is_better
            from unnest(p_changes) c
            cross join lateral (select s.ctid as row_id, s.best_price, s.events_from,
                                       coalesce(s.best_item_id = any (c.ended), false)
                                           or s.best_currency is distinct from c.known_currency as looks_again
                                from scans s
                                where s.tenant_id = c.tenant_id and s.scan_id between c.scan_id and c.scan_id
                                order by s.scan_id limit 1) s
            left join lateral (select e.ctid as row_id, cardinality(e.items) as length, e.first_id + cardinality(e.items) as next_id
                               from scan_events e
                               where c.changed is not null and e.tenant_id = c.tenant_id and e.scan_id between c.scan_id and c.scan_id
                                 and e.first_id > s.events_from
                               order by e.scan_id desc, e.first_id desc limit 1) n on true
        ), moved as (
            update scans s
            set ok = s.ok + f.ok, empty = s.empty + f.empty, partial = s.partial + f.partial, degraded = s.degraded + f.degraded,
                failed = s.failed + f.failed, requests_spent = s.requests_spent - f.unused,
                status = case when f.begun_at is null then s.status else 'running' end,
                started_at = coalesce(s.started_at, f.begun_at),
                best_price = case when f.is_better then f.price else s.best_price end,
                best_currency = case when f.is_better then f.currency else s.best_currency end,
                best_item_id = case when f.is_better then f.item_id else s.best_item_id end,
                event_count = s.event_count + f.numbers + (f.numbers > 0)::integer, has_events = s.has_events or f.numbers > 0,
                notified_at = case when f.numbers = 0 or s.notified_at between t - interval '500 milliseconds' and t then s.notified_at
                                   else t end
            from found f
            where s.ctid = f.row_id
            returning s as scan, s.event_count - f.numbers as first_id, f.*
        ), placed as materialized (
            select m.*, coalesce(m.length + m.first_id - m.next_id + m.numbers <= 128, false) as is_appended,
                   array(select x.item_id from unnest(m.changed) with ordinality as x (item_id, nth) order by x.nth desc) as newest_first
            from moved m where m.numbers > 0
        ), appended as (
            -- The numbers between are the scan's own.
            update scan_events e
            set items = p.newest_first || array_fill(null::uuid, array[(p.first_id - p.next_id)::integer]) || e.items
            from placed p
            where p.is_appended and e.ctid = p.newest
        ), entered as (
            insert into scan_events (tenant_id, scan_id, first_id, items)
            select p.tenant_id, p.scan_id, p.first_id, p.newest_first from placed p where not p.is_appended
        )
        select m.scan, m.put_back, m.ended, m.looks_again, m.numbers from moved m
    loop
        if work.numbers > 0 and (work.scan).notified_at = t then
            perform pg_notify('farescan_scan', (work.scan).scan_id::text);
        end if;
        scan := work.scan;
        put_back := work.put_back;
        ended := work.ended;
        looks_again := work.looks_again;
        return next;
    end loop;
end $$;

-- A statement whose function numbers its changes itself, with change_scans, says so, in `farescan.numbers_items`, and only while it runs.
create or replace trigger number_items after update on scan_items
    referencing old table as items_before new table as items_after
    for each statement when (current_setting('farescan.numbers_items', true) is distinct from 'on')
    execute function number_item_events();

-- Numbers a change of the scan itself.
create or replace function number_scan_event() returns trigger
language plpgsql as $$
begin
    new.event_count := new.event_count + 1;
    perform pg_notify('farescan_scan', new.scan_id::text);
    return new;
end $$;

create or replace trigger number_scan before update on scans
    for each row
    when ((old.status, old.status_reason, old.started_at, old.finished_at, old.total, old.max_requests)
          is distinct from (new.status, new.status_reason, new.started_at, new.finished_at, new.total, new.max_requests)
          -- After the end nothing else would show what a late answer cost or found.
          or old.finished_at is not null
             and (old.requests_spent, old.best_price, old.best_item_id)
                 is distinct from (new.requests_spent, new.best_price, new.best_item_id))
    execute function number_scan_event();

-- The state of an item as its caller sees it: the several ways of waiting are one.
create or replace function shown_item_state(p_state text) returns text
language sql immutable as $$
    select case when p_state in ('pending', 'claimed', 'delayed', 'held', 'deferred') then 'pending' else p_state end
$$;

create or replace function notify_scan_deleted() returns trigger
language plpgsql as $$
begin
    perform pg_notify('farescan_scan', old.scan_id::text);
    return null;
end $$;

create or replace trigger notify_scan_deleted after delete on scans for each row execute function notify_scan_deleted();

create or replace function notify_scans_of_lane() returns trigger
language plpgsql as $$
begin
    perform pg_notify('farescan_scan', s.scan_id::text) from scans s
    where s.tenant_id = new.tenant_id and s.api = new.api and s.finished_at is null;
    return null;
end $$;

create or replace trigger notify_scans_of_lane after update on lanes
    for each row
    when ((old.paused_until, old.pause_reason) is distinct from (new.paused_until, new.pause_reason))
    execute function notify_scans_of_lane();

-- Notifies the listeners of an API's live scans.
create or replace function notify_scans_of_api(p_api text) returns void
language plpgsql as $$
begin
    perform pg_notify('farescan_scan', s.scan_id::text)
    from scans s where s.api = p_api and s.finished_at is null limit 10000;
end $$;

-- Deletes the events of scans that ended before a time, at most p_limit rows; returns how many. The scan says that a number is too old
-- before its first row is deleted.
create or replace function delete_old_events(p_before timestamptz, p_limit bigint) returns bigint
language plpgsql as $$
declare
    dropped bigint;
begin
    update scans s set events_from = s.event_count
    from (select o.tenant_id, o.scan_id from scans o
          where o.has_events and o.finished_at < p_before and o.events_from < o.event_count
          order by o.finished_at limit p_limit for no key update skip locked) old
    where s.tenant_id = old.tenant_id and s.scan_id = old.scan_id;

    delete from scan_events e
    where e.ctid = any (array(
        select x.ctid from scans s
        join scan_events x on x.tenant_id = s.tenant_id and x.scan_id = s.scan_id and x.first_id < s.events_from
        where s.has_events and s.finished_at < p_before
        order by s.finished_at limit p_limit));
    get diagnostics dropped = row_count;

    update scans s set has_events = false
    from (select o.tenant_id, o.scan_id from scans o
          where o.has_events and o.finished_at < p_before
            and not exists (select from scan_events x where x.tenant_id = o.tenant_id and x.scan_id = o.scan_id)
          order by o.finished_at limit p_limit for no key update skip locked) bare
    where s.tenant_id = bare.tenant_id and s.scan_id = bare.scan_id;
    return dropped;
end $$;
