-- Reuse: items that take an answer for which their caller has already paid (scans.md, rules 74 to 79).
--
-- Two equal searches must not both be bought. So whoever decides whether a search is bought, or gives its answer to those that wait for it,
-- first locks the search's key, before any row.
--
-- Rows are read by their keys and updated by their ctid, as begin.sql explains: joined freely, ten thousand items would be looked up among
-- ten thousand each.

-- What is sent of a search besides its product and dates (FETCH_OPTIONS in history/series.rs, with their defaults), and how many rows of its
-- answer are counted. A scan of flights has an upstream limit: then this, `strict`, and perhaps fewer filters are sent (Search::for_item).
-- Anything else is sent as its caller wrote it.
create or replace function sent_options(p_upstream_limit integer, p_upstream_filters boolean, p_body jsonb) returns jsonb
language sql immutable as $$
    select case when p_upstream_limit is null
                then jsonb_build_array(coalesce(p_body -> 'strict', 'false'), coalesce(p_body -> 'limit', '10'), coalesce(p_body -> 'limit', '10'),
                                       false)
                else jsonb_build_array(true, p_upstream_limit, least(p_upstream_limit, (p_body ->> 'limit')::integer),
                                       not p_upstream_filters and (p_body ? 'max_price' or coalesce(p_body ->> 'sort_type' = 'Price', false)))
           end || jsonb_build_array(coalesce(p_body -> 'use_ext_proxy', 'true'), p_body -> 'use_fallback')
$$;

-- Identifies a search of a scan: equal keys have equal answers.
create or replace function search_key(p_endpoint text, p_sent_options jsonb, p_series bytea, p_first_date date, p_last_date date) returns bytea
language sql stable as $$
    select substring(sha256(convert_to(jsonb_build_array(p_endpoint, encode(p_series, 'hex'), p_first_date, p_last_date,
                                                         p_sent_options)::text, 'UTF8')) for 16)
$$;

-- Locks search keys until the transaction ends.
create or replace function lock_search_keys(p_tenants uuid[], p_keys bytea[]) returns void
language sql as $$
    select pg_advisory_xact_lock(k.key)
    from (select distinct hashtextextended(concat('farescan.search ', x.tenant_id, encode(x.search_key, 'hex')), 0) as key
          from unnest(p_tenants, p_keys) as x (tenant_id, search_key)
          order by 1 offset 0) k
$$;

-- The newest answer that each of these searches may take, if there is one: the complete answer of an equal search of this caller, younger
-- than p_max_age, whoever bought it. Every reuse looks here. Newer answers that do not satisfy hide none. It reads the observations of the
-- first date, newest first: all of a month, of which none satisfies, are 13 ms for 100,000. With p_whole an answer must be there as it was
-- received, to be sent again. The result has the position of the search in the arrays, from 1, and the item and attempt of the answer.
create or replace function reusable_answers(p_now timestamptz, p_tenant uuid, p_max_age interval, p_endpoint text, p_whole boolean,
                                 p_sent_options jsonb[], p_series bytea[], p_first_dates date[], p_last_dates date[])
returns table (nth bigint, item_id uuid, number integer, attempt_id uuid, observed_at timestamptz)
language sql stable
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_sort = off set plan_cache_mode = force_generic_plan
as $$
    select x.nth, f.item_id, f.number, f.attempt_id, f.observed_at
    from unnest(p_sent_options, p_series, p_first_dates, p_last_dates) with ordinality as x (sent_options, series, first_date, last_date, nth)
    cross join lateral (
        select i.item_id, a.number, a.attempt_id, o.observed_at
        from observations o
        cross join lateral (select * from scan_items i
                            where i.tenant_id = p_tenant and i.item_id between o.item_id and o.item_id
                            order by i.item_id limit 1) i
        cross join lateral (select * from scans s
                            where s.tenant_id = p_tenant and s.scan_id between i.scan_id and i.scan_id
                            order by s.scan_id limit 1) s
        cross join lateral (select * from attempts a
                            where a.tenant_id = p_tenant and a.item_id = o.item_id and a.number between o.number and o.number
                            order by a.number limit 1) a
        where o.tenant_id = p_tenant and o.series = x.series and o.first_date between x.first_date and x.first_date
          and o.observed_at > p_now - p_max_age
          and coalesce(o.last_date, o.first_date) = x.last_date and o.search_status in ('ok', 'empty')
          and i.state = 'done' and i.search_status in ('ok', 'empty') and i.observed_at = o.observed_at and i.reused_from is null
          and s.endpoint = p_endpoint and sent_options(s.upstream_limit, s.upstream_filters, i.body) = x.sent_options
          and a.ended_at = o.observed_at
          -- The body may have been deleted. A scan needs none of an empty answer. A hotel's 404 has none: it is its outcome.
          and (exists (select from answers b
                       where b.tenant_id = p_tenant and b.item_id = i.item_id and b.number = a.number and b.observed_at = o.observed_at)
               or i.search_status = 'empty'
                  and (not p_whole
                       or a.http_status = 404
                          and exists (select from search_outcomes c
                                      where c.tenant_id = p_tenant and c.item_id = i.item_id and c.number = a.number)))
        order by o.first_date desc, o.observed_at desc limit 1
    ) f
$$;

-- Ends those items of a scan for which a reusable answer exists, with a copy of that answer, its best price and its offer; returns their
-- number. Nothing is observed, so there is no observation. The caller holds the locks of the items and of the scan, and of the lane unless
-- the items are claimed. It read p_now before its transaction; the age counts from now on, after the locks. An answer that was recorded by a
-- process whose clock is ahead is of this moment.
create or replace function reuse_answers(p_now timestamptz, p_tenant uuid, p_scan uuid, p_items uuid[]) returns bigint
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_sort = off set plan_cache_mode = force_generic_plan
as $$
declare
    scan    scans;
    taken   uuid[];
    ok      bigint;
    empty   bigint;
    waiting bigint;
    locked  timestamptz := p_now + (clock_timestamp() - transaction_timestamp());
begin
    select * into scan from scans s where s.tenant_id = p_tenant and s.scan_id = p_scan;
    if scan.max_age is null or scan.status not in ('queued', 'running') then
        return 0;
    end if;
    with open as materialized (
        select i.item_id, i.row_id, i.attempt, i.body, r.row_id as search_row, r.series, r.first_date, r.last_date, r.waits
        from unnest(p_items) x (item_id)
        cross join lateral (select i.*, i.ctid as row_id from scan_items i
                            where i.tenant_id = p_tenant and i.item_id between x.item_id and x.item_id
                            order by i.item_id limit 1) i
        cross join lateral (select r.*, r.ctid as row_id from shared_searches r
                            where r.tenant_id = p_tenant and r.item_id between x.item_id and x.item_id
                            order by r.item_id limit 1) r
        where i.scan_id = p_scan and i.state in ('pending', 'claimed', 'delayed')
    ), found as materialized (
        select a.items[f.nth] as item_id, a.rows[f.nth] as row_id, a.search_rows[f.nth] as search_row, a.attempts[f.nth] + 1 as number,
               a.waits[f.nth] as waits, f.item_id as source, f.number as source_number, f.attempt_id, f.observed_at
        from (select array_agg(o.item_id) as items, array_agg(o.row_id) as rows, array_agg(o.search_row) as search_rows,
                     array_agg(o.attempt) as attempts, array_agg(o.waits) as waits,
                     array_agg(sent_options(scan.upstream_limit, scan.upstream_filters, o.body)) as sent_options, array_agg(o.series) as series, array_agg(o.first_date) as first_dates, array_agg(o.last_date) as last_dates
              from open o) a
        cross join lateral reusable_answers(locked, p_tenant, scan.max_age, scan.endpoint, false, a.sent_options, a.series,
                                            a.first_dates, a.last_dates) f
    ), answered as (
        insert into answers (tenant_id, item_id, number, observed_at, body)
        select p_tenant, f.item_id, f.number, f.observed_at, b.body
        from found f
        join answers b on b.tenant_id = p_tenant and b.item_id = f.source and b.number = f.source_number and b.observed_at = f.observed_at
    ), offered as (
        insert into item_offers (tenant_id, item_id, seller, board, link, band_low, band_high, verdict)
        select p_tenant, f.item_id, b.seller, b.board, b.link, b.band_low, b.band_high, b.verdict
        from found f join item_offers b on b.tenant_id = p_tenant and b.item_id = f.source
        on conflict (tenant_id, item_id) do update
            set seller = excluded.seller, board = excluded.board, link = excluded.link, band_low = excluded.band_low,
                band_high = excluded.band_high, verdict = excluded.verdict
    ), ended as (
        delete from shared_searches r using found f where r.tenant_id = p_tenant and r.ctid = f.search_row
    ), moved as (
        -- The next attempt number, under which the answer is stored.
        update scan_items i
        set state = 'done', attempt = f.number, worker_id = null, not_before = null, search_status = b.search_status, reason = b.reason,
            results = b.results, best_price = b.best_price, currency = b.currency, observed_at = f.observed_at, latency_ms = null,
            error = null, reused_item = f.source, reused_from = f.attempt_id, reused_at = greatest(locked, f.observed_at),
            joined = f.waits
        from found f
        cross join lateral (select * from scan_items b
                            where b.tenant_id = p_tenant and b.item_id between f.source and f.source
                            order by b.item_id limit 1) b
        where i.tenant_id = p_tenant and i.ctid = f.row_id
        returning i.item_id, i.search_status, f.waits
    )
    select array_agg(m.item_id), count(*) filter (where m.search_status = 'ok'), count(*) filter (where m.search_status = 'empty'),
           count(*) filter (where m.waits)
    into taken, ok, empty, waiting
    from moved m;
    if taken is null then
        return 0;
    end if;
    update scans s set reused = s.reused + cardinality(taken) - waiting, joined = s.joined + waiting
    where s.tenant_id = p_tenant and s.scan_id = p_scan;
    perform add_usage(array[scan_usage(p_tenant, p_scan, locked, p_reused => cardinality(taken))]);
    perform update_best_price(p_tenant, p_scan, taken);
    perform count_ended(p_now, p_tenant, p_scan, ok, empty, 0, 0, 0, 0, 0);
    return cardinality(taken);
end $$;

-- Decides which of the claims need no call, and returns them: their item takes an answer, or waits until an equal search that is called has
-- ended (at most a minute, if no sweep finds it before). The caller holds the locks of the claims' search keys, items and scans.
create or replace function share_answers(p_now timestamptz, p_claims claim_to_begin[])
returns table (item_id uuid, number integer, attempt_id uuid)
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_sort = off set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    claims claim_to_begin[];
    behind uuid[];   -- an equal search is in flight
    work   record;
begin
    -- What is in flight is read before the answers: a call that is recorded in between has its answer there.
    select array_agg(c), coalesce(array_agg(c.item_id) filter (where busy.is_there), '{}') into claims, behind
    from unnest(p_claims) c
    cross join lateral (select * from shared_searches r
                        where r.tenant_id = c.tenant_id and r.item_id between c.item_id and c.item_id
                        order by r.item_id limit 1) r
    left join lateral (select true as is_there
                       from (select k.item_id from shared_searches k
                             where k.tenant_id = r.tenant_id and k.search_key between r.search_key and r.search_key
                             order by k.search_key) k
                       cross join lateral (select i.state from scan_items i
                                           where i.tenant_id = r.tenant_id and i.item_id between k.item_id and k.item_id
                                           order by i.item_id limit 1) i
                       where k.item_id <> r.item_id and i.state = 'calling'
                       limit 1) busy on true
    where c.state = 'claimed';
    for work in
        select c.tenant_id, c.scan_id, array_agg(c.item_id) as items from unnest(claims) c
        where not c.item_id = any (behind)
        group by c.tenant_id, c.scan_id order by c.tenant_id, c.scan_id
    loop
        perform reuse_answers(p_now, work.tenant_id, work.scan_id, work.items);
    end loop;
    return query
    with open as materialized (
        select c.item_id, i.row_id, r.row_id as search_row, r.waits, c.item_id = any (behind) as is_behind
        from unnest(claims) c
        cross join lateral (select r.*, r.ctid as row_id from shared_searches r
                            where r.tenant_id = c.tenant_id and r.item_id between c.item_id and c.item_id
                            order by r.item_id limit 1) r
        cross join lateral (select i.state, i.ctid as row_id from scan_items i
                            where i.tenant_id = c.tenant_id and i.item_id between c.item_id and c.item_id
                            order by i.item_id limit 1) i
        where i.state = 'claimed'
    ), waiting as (
        update scan_items i set state = 'delayed', worker_id = null, not_before = clock_timestamp() + interval '1 minute'
        from open o where o.is_behind and i.ctid = o.row_id
    ), marked as (
        update shared_searches r set waits = o.is_behind
        from open o where r.ctid = o.search_row and o.waits <> o.is_behind
    )
    select c.item_id, c.number, c.attempt_id from unnest(claims) c
    where not exists (select from open o where o.item_id = c.item_id and not o.is_behind);
end $$;

-- The rows of these search keys, and their items.
create or replace function items_of_searches(p_tenant uuid, p_keys bytea[]) returns table (item_id uuid, row_id tid, waits boolean)
language sql stable
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_sort = off set plan_cache_mode = force_generic_plan
as $$
    select r.item_id, r.row_id, r.waits
    from (select distinct k.search_key from unnest(p_keys) as k (search_key)) k
    cross join lateral (select r.item_id, r.ctid as row_id, r.waits from shared_searches r
                        where r.tenant_id = p_tenant and r.search_key between k.search_key and k.search_key
                        order by r.search_key) r
$$;

-- Deletes what is known of searches that have ended, so that a key has few rows, however often it was searched. The last statement of its
-- transaction: it locks rows that the deletion of a scan locks after lane and items.
create or replace function delete_ended_searches(p_tenant uuid, p_keys bytea[]) returns void
language sql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_sort = off set plan_cache_mode = force_generic_plan
as $$
    delete from shared_searches r
    using items_of_searches(p_tenant, p_keys) x
    cross join lateral (select i.state from scan_items i
                        where i.tenant_id = p_tenant and i.item_id between x.item_id and x.item_id
                        order by i.item_id limit 1) i
    where r.tenant_id = p_tenant and r.ctid = x.row_id and i.state in ('done', 'failed', 'cancelled', 'skipped')
$$;

-- Gives the answers of recorded calls to the equal searches that have not begun, whether they wait for them or not; without a reusable answer
-- those that wait become due. The calls are of one lane.
create or replace function settle_shared_searches(p_now timestamptz, p_tenant uuid, p_api text, p_items uuid[]) returns bigint
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_sort = off set plan_cache_mode = force_generic_plan
as $$
declare
    keys  bytea[] := array(select r.search_key from unnest(p_items) x (item_id)
                           cross join lateral (select r.search_key from shared_searches r
                                               where r.tenant_id = p_tenant and r.item_id between x.item_id and x.item_id
                                               order by r.item_id limit 1) r);
    open  uuid[];
    work  record;
    moved bigint := 0;
begin
    perform lock_search_keys(array_fill(p_tenant, array[cardinality(keys)]), keys);
    if not exists (select from items_of_searches(p_tenant, keys) x
                   cross join lateral (select i.state from scan_items i
                                       where i.tenant_id = p_tenant and i.item_id between x.item_id and x.item_id
                                       order by i.item_id limit 1) i
                   where i.state in ('pending', 'delayed')) then
        perform delete_ended_searches(p_tenant, keys);
        return 0;
    end if;
    perform wake_lane(p_tenant, p_api);
    open := array(select i.item_id
                  from (select x.item_id from items_of_searches(p_tenant, keys) x order by x.item_id offset 0) x
                  cross join lateral (select i.item_id from scan_items i
                                      where i.tenant_id = p_tenant and i.item_id between x.item_id and x.item_id
                                        and i.state in ('pending', 'delayed')
                                      order by i.item_id limit 1 for no key update) i);
    for work in
        select i.scan_id, array_agg(i.item_id) as items from scan_items i
        where i.tenant_id = p_tenant and i.item_id = any (open) group by i.scan_id order by i.scan_id
    loop
        perform from scans s where s.tenant_id = p_tenant and s.scan_id = work.scan_id for no key update;
        moved := moved + reuse_answers(p_now, p_tenant, work.scan_id, work.items);
    end loop;
    update scan_items i set not_before = clock_timestamp()
    where i.tenant_id = p_tenant and i.state = 'delayed'
      and i.item_id = any (array(select x.item_id from items_of_searches(p_tenant, keys) x where x.waits and x.item_id = any (open)));
    perform delete_ended_searches(p_tenant, keys);
    return moved;
end $$;

-- Items that wait although no equal search is called any more: its process died before it gave them the answer, or a row was locked. At most
-- p_limit, by lane; lanes that are given are left out.
create or replace function forgotten_waits(p_limit integer, p_except_tenants uuid[], p_except_apis text[])
returns table (tenant_id uuid, api text, items uuid[])
language sql stable
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_sort = off set plan_cache_mode = force_generic_plan
as $$
    select f.tenant_id, f.api, array_agg(f.item_id)
    from (select r.tenant_id, i.api, r.item_id
          from shared_searches r
          cross join lateral (select i.api, i.state, i.not_before from scan_items i
                              where i.tenant_id = r.tenant_id and i.item_id between r.item_id and r.item_id
                              order by i.item_id limit 1) i
          where r.waits and i.state = 'delayed' and i.not_before > clock_timestamp()
            and not exists (select from unnest(p_except_tenants, p_except_apis) x (tenant_id, api)
                            where x.tenant_id = r.tenant_id and x.api = i.api)
            and not exists (select from items_of_searches(r.tenant_id, array[r.search_key]) k
                            cross join lateral (select e.state from scan_items e
                                                where e.tenant_id = r.tenant_id and e.item_id between k.item_id and k.item_id
                                                order by e.item_id limit 1) e
                            where e.state = 'calling')
          limit p_limit) f
    group by f.tenant_id, f.api
    order by f.tenant_id, f.api
$$;
