-- A question that ends as soon as one price is below a given one (scans.md, rule 80).

alter table scan_strategies drop constraint scan_strategies_find_check;
-- The checks without a name of their own, by what they say.
do $$
declare
    name text;
begin
    select c.conname into strict name from pg_constraint c
    where c.conrelid = 'scan_strategies'::regclass and c.contype = 'c' and pg_get_constraintdef(c.oid) like '%budget IS NULL%';
    execute format('alter table scan_strategies drop constraint %I', name);
end $$;
alter table scan_strategies
    add constraint scan_strategies_find_check check (find in ('cheapest', 'below')),
    add check ((watch is null) = (budget is null)),
    add check ((coalesce(find, watch) is not distinct from 'below') = (below is not null));
