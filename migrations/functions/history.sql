-- History: late answers, packed days.

-- Whether a time comes after the known one, if there is one.
create or replace function is_newer(p_new timestamptz, p_known timestamptz) returns boolean
language sql immutable as $$ select coalesce(p_new > coalesce(p_known, '-infinity'), false) $$;

-- A lost call left an observation without a price. When its answer comes late, that observation is deleted; where it was the newest sample
-- of its date, the newest one that is left takes its place.
create or replace function delete_lost_sample() returns trigger
language plpgsql as $$
declare
    gap record;
begin
    delete from observations o
    where o.tenant_id = old.tenant_id and o.observed_at = old.ended_at and o.item_id = old.item_id and o.number = old.number
      and o.reason = 'worker_lost' and o.price is null
    returning o.series, o.first_date, coalesce(o.last_date, o.first_date) as last_date into gap;
    if found then
        update latest_prices l
        set sampled_at = k.observed_at, sample_status = k.search_status, sample_reason = k.reason, sample_item_id = k.item_id
        from (select) one
        left join lateral (
            select * from observations seen
            where seen.tenant_id = old.tenant_id and seen.series = gap.series and seen.first_date = gap.first_date
              and coalesce(seen.last_date, seen.first_date) = gap.last_date
            order by seen.observed_at desc limit 1) k on true
        where l.tenant_id = old.tenant_id and l.series = gap.series and l.first_date = gap.first_date and l.last_date = gap.last_date
          and l.sample_item_id = old.item_id and l.sampled_at = old.ended_at;
        delete from latest_prices bare
        where bare.tenant_id = old.tenant_id and bare.series = gap.series and bare.first_date = gap.first_date
          and bare.last_date = gap.last_date and bare.price is null and bare.sampled_at is null;
    end if;
    return null;
end $$;

create or replace trigger late_answer after update on attempts
    for each row when (old.reason = 'worker_lost' and new.reason is distinct from 'worker_lost') execute function delete_lost_sample();

-- Marks from which day on a series must be read from its observations, in the transaction that inserts or deletes some of them. It holds
-- the series' row until the commit, so no day is packed while some of it is uncommitted; it waits only for a process that packs the series,
-- which waits for nobody. Rows are locked in the order of their keys.
create or replace function mark_unpacked() returns trigger
language plpgsql as $$
declare
    touched record;
begin
    for touched in
        select c.tenant_id, c.series, c.day, s.unpacked_since
        from (select tenant_id, series, date_trunc('day', min(observed_at), 'UTC') as day
              from changed group by 1, 2 order by 1, 2) c
        cross join lateral (
            select p.unpacked_since from series p
            where p.tenant_id = c.tenant_id and p.series = c.series for key share) s
    loop
        if touched.unpacked_since is null or touched.unpacked_since > touched.day then
            update series s set unpacked_since = touched.day
            where s.tenant_id = touched.tenant_id and s.series = touched.series
              and (s.unpacked_since is null or s.unpacked_since > touched.day);
        end if;
    end loop;
    return null;
end $$;

create or replace trigger unpack_days_of_new after insert on observations
    referencing new table as changed for each statement execute function mark_unpacked();

create or replace trigger unpack_days_of_gone after delete on observations
    referencing old table as changed for each statement execute function mark_unpacked();

-- A hotel or destination is found by its name whatever its case and the spaces around it; an id or an airport as it is. The index
-- series_by_place has the same expression.
create or replace function place_key(p_endpoint text, p_place text) returns text
language sql immutable parallel safe as $$
    select case when p_endpoint in ('hotels/by-name', 'hotels/search') then lower(btrim(p_place) collate "C") else p_place end
$$;
