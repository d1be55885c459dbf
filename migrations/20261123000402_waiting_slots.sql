-- Why the slot of a monitor is looked at again later, beside when (`not_before`): its caller has too much underway (room), or the run before
-- it has not ended because nobody was there to end it (run). Rows from before have `not_before` alone: room.
alter table monitors add column waits_for text check (waits_for in ('room', 'run'));
