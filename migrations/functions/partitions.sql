-- Monthly partitions of answers, observations and packed days.

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
                if parent = 'answers' then
                    execute format('alter table %I alter body set statistics 0', name);
                end if;
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
