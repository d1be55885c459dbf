-- Plans that were made while the tables were empty find a call's item by the wrong index and read all of its caller's items for each of
-- a batch: 10,000 items then cost 10 s of CPU and more instead of 4. Autovacuum mends that once it comes by, which is a minute or more
-- after the first large scan. So whoever sweeps has the tables looked at that have at least doubled since their statistics were taken.
-- Later growth is autovacuum's. Gives how many it looked at; a table that another session is at, or that this role does not own, waits.
create function analyse_grown() returns integer
language plpgsql as $$
declare
    grown regclass;
    looked_at integer := 0;
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
        looked_at := looked_at + 1;
    end loop;
    return looked_at;
end $$;
