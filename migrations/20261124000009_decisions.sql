-- Strategies that decide more than once, and their decisions (docs/decisions/0042).

-- With `find`, the phases are those of a question without stored prices.
alter table scan_strategies
    add column find      text check (find in ('cheapest')),
    add column max_risk  double precision check (max_risk >= 0 and max_risk < 1),
    -- How many items a decision searches, and the currency of their prices.
    add column batch     integer check (batch >= 1),
    add column currency  text,
    add column decisions integer not null default 0,
    -- What the last decision declared, and the stored prices that the first one knew.
    add column risk      double precision check (risk between 0 and 1),
    add column known     integer,
    add column ended_by  text,
    -- How often prices change, by the counts of ChangeRates, and how many pairs of own prices are among them; null before the first decision.
    add column rates     double precision[],
    add column pairs     integer,
    -- Nothing is left to decide. False again when a retry has changed what a question found.
    add column settled   boolean not null default false,
    add check ((find is null) = (max_risk is null) and (find is null) = (batch is null) and (find is null) = (currency is null));
update scan_strategies set settled = skipped is not null or deferred = 0;
drop index scan_strategies_in_first_phase;
create index scan_strategies_undecided on scan_strategies (tenant_id, scan_id) where not settled;

-- A decision of a strategy, stored in the transaction that makes its items claimable. With the decisions before it, it holds all that it was
-- made from.
create table scan_decisions (
    tenant_id        uuid        not null,
    scan_id          uuid        not null,
    number           integer     not null check (number >= 1),
    decided_at       timestamptz not null,
    reason           text        not null,
    -- The positions to search, in this order; none: the end.
    searches         integer[]   not null,
    risk             double precision check (risk between 0 and 1),
    best_position    integer,
    best_price       numeric,
    -- Items with a stored price; items that had been searched; how many may be searched in all (null: any number).
    known            integer     not null,
    searched         integer     not null,
    may_search       integer,
    -- What is known since the decision before. The stored answers (only of the first decision; null: no offer) with their times, the answers
    -- of this scan (null: no offer), and the items that were searched without an answer.
    stored_positions integer[]     not null,
    stored_prices    numeric[]     not null,
    stored_at        timestamptz[] not null,
    found_positions  integer[]     not null,
    found_prices     numeric[]     not null,
    unanswered       integer[]     not null,
    primary key (tenant_id, scan_id, number),
    foreign key (tenant_id, scan_id) references scans on delete cascade,
    check ((best_position is null) = (best_price is null))
);
