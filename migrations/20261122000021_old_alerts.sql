-- What monitors leave behind is kept for a bounded time: alerts, and what became of slots, are found by their time, whoever's they are.
create index alerts_fired on alerts (fired_at);
create index monitor_slots_by_time on monitor_slots (slot);
