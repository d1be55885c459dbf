-- One more search before a rule of a monitor fires (monitors.md, rules 85 to 89).

-- The items of an ended run that are searched once more, and have not ended since; null: none are.
alter table scans add column confirming uuid[];

-- The answer that such an item had before, until its search has ended; and whether an item had waited for the answer that it took.
alter table scan_items
    add column earlier jsonb,
    add column joined  boolean not null default false;

-- The prices of a run that were searched once more, as they were found first; and how often a rule did not fire for lack of a second answer.
alter table monitor_slots
    add column confirmation jsonb,
    add column unconfirmed  integer not null default 0 check (unconfirmed >= 0);
