-- Statistics for the query planner.

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
