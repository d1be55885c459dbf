-- Monitors: notifications of slots and runs.

-- Notifies the processes that tick of a slot or held alerts that come sooner than they know, and of a run that can be evaluated.
create or replace function notify_monitors() returns trigger
language plpgsql as $$
begin
    perform pg_notify('farescan_monitor', '');
    return null;
end $$;

create or replace trigger notify_new_monitor after insert on monitors
    for each row when (new.next_slot is not null) execute function notify_monitors();

create or replace trigger notify_earlier_slot after update of next_slot on monitors
    for each row when (new.next_slot < coalesce(old.next_slot, 'infinity')) execute function notify_monitors();

create or replace trigger notify_held_alerts after update of notify_at on monitors
    for each row when (new.notify_at < coalesce(old.notify_at, 'infinity')) execute function notify_monitors();

create or replace trigger notify_ended_run after update of finished_at on scans
    for each row when (new.monitor_id is not null and old.finished_at is null and new.finished_at is not null)
    execute function notify_monitors();
