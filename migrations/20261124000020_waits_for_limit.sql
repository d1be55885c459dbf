-- What a due slot waits for: `limit`, the account's limit of unfinished work, or `run`, its monitor's previous run.

alter table monitors drop constraint monitors_waits_for_check;
update monitors set waits_for = 'limit' where waits_for = 'room';
alter table monitors add constraint monitors_waits_for_check check (waits_for in ('limit', 'run'));
