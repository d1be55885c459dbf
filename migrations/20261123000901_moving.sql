-- A caller's lanes pause while its rows move to another installation (docs/scaling.md, "Cells"). Nothing a caller does ends that pause.
alter table lanes drop constraint lanes_pause_reason_check;
alter table lanes add constraint lanes_pause_reason_check
    check (pause_reason in ('rate_limited', 'quota_exhausted', 'reserve_reached', 'key_rejected', 'not_subscribed', 'moving')) not valid;
alter table lanes validate constraint lanes_pause_reason_check;
