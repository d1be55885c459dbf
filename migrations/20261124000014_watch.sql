-- Watches: strategies that spend a budget on each run where the answer may have changed (docs/decisions/0045).

alter table scan_strategies
    add column watch  text check (watch in ('cheapest', 'below', 'every_date')),
    add column below  numeric check (below >= 0),
    -- The max_requests with which the run was submitted.
    add column budget integer check (budget >= 1);

-- A question is now either of two, and has a batch and a currency.
do $$
declare
    name text;
begin
    select c.conname into strict name from pg_constraint c
    where c.conrelid = 'scan_strategies'::regclass and c.contype = 'c' and pg_get_constraintdef(c.oid) like '%max_risk IS NULL%';
    execute format('alter table scan_strategies drop constraint %I', name);
end $$;
alter table scan_strategies
    add check ((find is null) = (max_risk is null)),
    add check ((watch is null) = (budget is null) and (watch is not distinct from 'below') = (below is not null)),
    add check (find is null or watch is null),
    add check ((coalesce(find, watch) is null) = (currency is null) and (batch is null) = (currency is null));

-- Of the first decision of a watch: searches of before the run that did not complete, where that is newer than the answer.
alter table scan_decisions
    add column tried_positions integer[]     not null default '{}',
    add column tried_at        timestamptz[] not null default '{}';
