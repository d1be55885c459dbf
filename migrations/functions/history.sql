-- History: partitions, late answers, packed days.

-- Creates the partitions of a month and of so many after it; returns how many were missing.
create or replace function create_partitions(of_time timestamptz, months_ahead integer) returns integer
language plpgsql as $$
declare
    parent text;
    month  timestamp := date_trunc('month', of_time at time zone 'UTC');
    first  timestamptz;
    name   text;
    made   integer := 0;
begin
    perform pg_advisory_xact_lock(hashtextextended('farescan.partitions', 0));
    for i in 0 .. months_ahead loop
        first := (month + make_interval(months => i)) at time zone 'UTC';
        foreach parent in array array['answers', 'observations', 'observed_days'] loop
            name := parent || to_char(month + make_interval(months => i), '"_y"YYYY"m"MM');
            if to_regclass(name) is null then
                execute format('create table %I (like %I including defaults including constraints including storage)', name, parent);
                execute format('alter table %I attach partition %I for values from (%L) to (%L)', parent, name, first,
                               (month + make_interval(months => i + 1)) at time zone 'UTC');
                made := made + 1;
            end if;
        end loop;
    end loop;
    return made;
end $$;

-- The partitions of a table that hold nothing from p_before on, oldest first, by their bound and not by their name.
create or replace function partitions_before(p_parent text, p_before timestamptz)
returns table (partition text, ends_at timestamptz, is_pending boolean)
language sql stable as $$
    select p.partition, p.ends_at, p.is_pending
    from (select c.relname::text as partition, i.inhdetachpending as is_pending,
                 substring(pg_get_expr(c.relpartbound, c.oid) from 'TO \(''([^'']+)''\)')::timestamptz as ends_at
          from pg_inherits i join pg_class c on c.oid = i.inhrelid
          where i.inhparent = to_regclass(p_parent)) p
    where p.ends_at <= p_before
    order by p.ends_at
$$;

-- Analyzes the tables that have at least doubled since their statistics were taken; returns how many. Plans made while the tables were
-- empty read all of a caller's items for each call of a batch: 10,000 items then cost 10 s of CPU and more instead of 4, until autovacuum
-- comes a minute or more later. Later growth is left to autovacuum. A table that another session locks, or that this role does not own,
-- is skipped.
create or replace function analyze_grown_tables() returns integer
language plpgsql as $$
declare
    grown regclass;
    analyzed integer := 0;
begin
    for grown in
        select s.relid::regclass
        from pg_stat_user_tables s
        join pg_class c on c.oid = s.relid
        where c.relnamespace = (select relnamespace from pg_class where oid = 'lanes'::regclass)
          and s.n_mod_since_analyze > 500 and s.n_mod_since_analyze > c.reltuples
          and pg_has_role(c.relowner, 'usage')
    loop
        execute format('analyze (skip_locked) %s', grown);
        analyzed := analyzed + 1;
    end loop;
    return analyzed;
end $$;

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
