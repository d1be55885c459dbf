-- A replay needs no plan: which items differ in the first date alone is stored with it (as in scan_strategies). Those that are due are not
-- counted: each is one question of many.
delete from due_replays;
alter table due_replays
    add column dates     integer not null check (dates > 0),
    add column date_step integer not null check (date_step > 0);
