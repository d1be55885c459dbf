-- Days of the history that have passed, packed.
--
-- A year of a route that is looked at for sixty departures is 21,900 observations; only to read them costs ten milliseconds. What adding
-- up needs of them is kept a second time, all of a product's day in one row: 365 rows instead. Observations stay what is true; a packed
-- day is made from them at any time, and is made again whenever one of them comes late or is taken away (docs/decisions/0020).

-- What was seen of a product in one day of UTC. `looks` is the program's own form (`history::look`).
create table observed_days (
    tenant_id uuid        not null,
    series    bytea       not null,
    begins_at timestamptz not null check (begins_at = date_trunc('day', begins_at, 'UTC')),
    looks     bytea       not null,
    primary key (tenant_id, series, begins_at)
) partition by range (begins_at);
-- Numbers of changing length: there is nothing to compress, and reading them is what they are for.
alter table observed_days alter column looks set storage external;

-- From this day on what was seen is to be read from the observations themselves; all before it is packed. Null: all is packed. What was
-- there before this migration is not, and is read as before until it is.
alter table series add column unpacked_since timestamptz default '1970-01-01 00:00:00+00';
alter table series alter column unpacked_since drop default;
create index series_unpacked on series (unpacked_since, tenant_id, series) where unpacked_since is not null;

-- Whoever puts observations in or takes some out, in whatever way, says from which day on they have to be read, in the same transaction.
-- He holds the series until he commits, so nobody packs a day while some of it is on its way; he waits only for who is packing it, and
-- who packs waits for nobody. In the order of the keys, as all that a recorder locks.
create function unpack_days() returns trigger
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
create trigger unpack_days_of_new after insert on observations
    referencing new table as changed for each statement execute function unpack_days();
create trigger unpack_days_of_gone after delete on observations
    referencing old table as changed for each statement execute function unpack_days();

-- Partitions of it come and go with those of the observations.
alter table retiring_partitions drop constraint retiring_partitions_parent_check;
alter table retiring_partitions add constraint retiring_partitions_parent_check
    check (parent in ('answers', 'observations', 'observed_days'));

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
select make_partitions(p.ends_at - interval '1 day', 0) from partitions_before('observations', 'infinity') p;
