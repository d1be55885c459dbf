-- What the history needs to be read by time, to be kept for a bounded time, and to say when it last looked.

-- By time ------------------------------------------------------------------------------------------------------------------

-- What was seen of a product, in the order of the lists: newest first, or bucket by bucket. The primary key has the dates before the
-- time, so a page of a route would read and sort all that was ever seen of it, and an export would do so for every page.
-- Making it takes about 1.2 s for a million observations; answers that come meanwhile wait, on disk if it takes longer.
create index observations_newest on observations (tenant_id, series, observed_at, item_id, number);

-- Looks --------------------------------------------------------------------------------------------------------------------

-- The last price of a date says nothing of what the last look brought. Both are in one row, written by one statement: the newest price,
-- if there ever was one, and the newest look, whatever it came to. Rows from before this migration have no look of their own until the
-- product is next looked at: their price is the last that is known of it.
alter table latest_prices
    alter column observed_at drop not null,
    alter column price drop not null,
    alter column item_id drop not null,
    add column looked_at timestamptz,
    add column look_status text,
    add column look_reason text,
    add column look_item_id uuid;
alter table latest_prices
    add constraint latest_prices_whole_price
        check ((price is null) = (observed_at is null) and (price is null) = (item_id is null)) not valid,
    add constraint latest_prices_whole_look
        check ((looked_at is null) = (look_status is null) and (looked_at is null) = (look_item_id is null)) not valid,
    add constraint latest_prices_look_status check (look_status in ('ok', 'empty', 'partial', 'degraded')) not valid;
alter table latest_prices validate constraint latest_prices_whole_price;
alter table latest_prices validate constraint latest_prices_whole_look;
alter table latest_prices validate constraint latest_prices_look_status;

-- Whether a time comes after the one that is known, if any is.
create function is_newer(p_new timestamptz, p_known timestamptz) returns boolean
language sql immutable as $$ select coalesce(p_new > coalesce(p_known, '-infinity'), false) $$;

-- Partitions ---------------------------------------------------------------------------------------------------------------

-- Partitions that this program takes away because they are too old. A row is there from before the first step (taking it off its table)
-- until after the last (dropping it), so that whoever comes after a process that died between them goes on. A table that an operator
-- has detached himself is not in it, and is never touched.
create table retiring_partitions (
    partition  text        primary key,
    parent     text        not null check (parent in ('answers', 'observations')),
    retired_at timestamptz not null
);

-- The partitions of a table that hold nothing from p_before on, oldest first. What counts is the bound, not the name.
create function partitions_before(p_parent text, p_before timestamptz)
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

-- Scans that ended long ago are found by their end.
create index scans_ended on scans (finished_at) where finished_at is not null;

-- As before, but a partition is made beside its table and then put to it: whoever reads the table, a backup of hours too, is not waited
-- for, and nobody waits behind that.
create or replace function make_partitions(of_time timestamptz, months_ahead integer) returns integer
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
        foreach parent in array array['answers', 'observations'] loop
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

-- As before, and where the gap was the last look at its date, the newest look that is left takes its place.
create or replace function forget_gap() returns trigger
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
        set looked_at = k.observed_at, look_status = k.search_status, look_reason = k.reason, look_item_id = k.item_id
        from (select) one
        left join lateral (
            select * from observations seen
            where seen.tenant_id = old.tenant_id and seen.series = gap.series and seen.first_date = gap.first_date
              and coalesce(seen.last_date, seen.first_date) = gap.last_date
            order by seen.observed_at desc limit 1) k on true
        where l.tenant_id = old.tenant_id and l.series = gap.series and l.first_date = gap.first_date and l.last_date = gap.last_date
          and l.look_item_id = old.item_id and l.looked_at = old.ended_at;
        delete from latest_prices bare
        where bare.tenant_id = old.tenant_id and bare.series = gap.series and bare.first_date = gap.first_date
          and bare.last_date = gap.last_date and bare.price is null and bare.looked_at is null;
    end if;
    return null;
end $$;
