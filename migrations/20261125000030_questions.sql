-- Questions are answered by bounds in place of a model of prices, and two phases are gone (docs/decisions/0049).

-- The view reads columns that go; it is created anew with the functions.
drop view if exists shown_scans;

-- What waited for a second phase is searched, as in any scan without a strategy. Its lane is woken.
update scan_items i set state = case when s.status = 'paused' then 'held' else 'pending' end
from scan_strategies t join scans s on s.tenant_id = t.tenant_id and s.scan_id = t.scan_id
where t.find is null and t.watch is null and s.finished_at is null
  and i.tenant_id = t.tenant_id and i.scan_id = t.scan_id and i.state = 'deferred';
update lanes l set next_at = least(l.next_at, clock_timestamp())
where l.paused_until is distinct from 'infinity'
  and exists (select from scan_strategies t join scans s on s.tenant_id = t.tenant_id and s.scan_id = t.scan_id
              where t.find is null and t.watch is null and s.finished_at is null and t.tenant_id = l.tenant_id and s.api = l.api);
delete from scan_strategies where find is null and watch is null;
update unexpanded_scans set strategy = null where (strategy::jsonb) ? 'coarse_step';
update unexpanded_scans set strategy = '{"watch": "cheapest"}' where (strategy::jsonb) ->> 'watch' = 'every_date';

-- Monitors: two phases become the question that they were for. What cannot be a question is searched in full, without a limit of a run
-- that could not cover it.
update monitors set scan = jsonb_set(scan::jsonb, '{strategy}', '{"watch": "cheapest"}')::json
where (scan::jsonb) #>> '{strategy,watch}' = 'every_date';
update monitors
set scan = case when coalesce((scan::jsonb) #> '{sweep,samples}', '1') = '1' and (scan::jsonb) #> '{sweep,currency}' is null
                then jsonb_set(scan::jsonb, '{strategy}', '{"find": "cheapest"}')
                else scan::jsonb - 'strategy' - 'max_requests' end::json
where jsonb_typeof((scan::jsonb) -> 'strategy') = 'object' and (scan::jsonb) -> 'strategy' ? 'coarse_step';

-- What decisions said before, in the words of now.
create function pg_temp.reason_of_now(reason text) returns text immutable language sql as $$
    select case reason when 'first_phase' then 'every_fourth'
                       when 'sentinels' then 'cheapest_again'
                       when 'second_phase' then 'lowest_bound'
                       when 'likeliest_cheaper' then 'lowest_bound'
                       when 'likeliest_below' then 'lowest_bound'
                       when 'likeliest_changed' then 'lowest_bound'
                       when 'burst' then 'lowest_bound'
                       when 'phases_ended' then 'nothing_better'
                       when 'risk_accepted' then 'nothing_better'
                       else reason end $$;
update scan_decisions set reason = pg_temp.reason_of_now(reason) where reason <> pg_temp.reason_of_now(reason);
update scan_strategies set ended_by = pg_temp.reason_of_now(ended_by) where ended_by <> pg_temp.reason_of_now(ended_by);
update scan_strategies set watch = 'cheapest' where watch = 'every_date';

alter table scan_decisions
    -- Positions whose found prices are implausible, as far as that was asked.
    add column implausible integer[] not null default '{}';

alter table scan_strategies
    -- How bounds are made, and what was counted of such questions (null: too little); chosen by the first decision.
    add column percent_a_day     smallint check (percent_a_day between 0 and 255),
    add column is_patient        boolean,
    add column counted_questions integer check (counted_questions > 0),
    add column counted_missed    integer check (counted_missed between 0 and counted_questions),
    add column implausible       integer[] not null default '{}',
    drop column coarse_step,
    drop column refine,
    drop column combinations,
    drop column batch,
    drop column rates,
    drop column pairs;
-- Items that differ in the first date alone: so many dates, so many positions apart.
alter table scan_strategies rename column inner_items to date_step;
alter table scan_strategies
    alter column currency set not null,
    drop constraint scan_strategies_watch_check,
    add constraint scan_strategies_watch_check check (watch in ('cheapest', 'below')),
    add check ((find is null) <> (watch is null)),
    add check ((percent_a_day is null) = (is_patient is null) and (counted_questions is null) = (counted_missed is null));
-- A question in the middle goes on with what is usual.
update scan_strategies set percent_a_day = 6, is_patient = true where decisions > 0;

-- Scans that are played again once they have ended, to count how often a setting misses the cheapest.
create table due_replays (
    tenant_id uuid not null,
    scan_id   uuid not null,
    primary key (tenant_id, scan_id),
    foreign key (tenant_id, scan_id) references scans on delete cascade
);

-- Of so many questions of a caller so many were missed, by what was known before and how bounds are made.
create table question_counts (
    tenant_id     uuid     not null references tenants on delete cascade,
    api           text     not null check (api in ('flights', 'hotels')),
    known         text     not null,
    percent_a_day smallint not null check (percent_a_day between 0 and 255),
    is_patient    boolean  not null,
    questions     integer  not null check (questions > 0),
    missed        integer  not null check (missed between 0 and questions),
    primary key (tenant_id, api, known, percent_a_day, is_patient)
);
