-- Tenants: which tenant a key belongs to.

-- A key that is known under an older key of the keyring becomes known under the primary, the first of p_key_ids. One statement, so that a
-- look-up outside a transaction can call it. Reads again under the locks: a key that was rotated meanwhile must not come back. Returns whose
-- key it is.
create or replace function renew_fingerprint(p_locks bigint[], p_key_ids text[], p_fingerprints bytea[], p_now timestamptz) returns uuid
language plpgsql as $$
declare
    one   bigint;
    owner uuid;
begin
    foreach one in array p_locks loop
        perform pg_advisory_xact_lock(one);
    end loop;
    select k.tenant_id into owner
    from tenant_keys k join unnest(p_key_ids, p_fingerprints) as x (key_id, fingerprint)
                         on k.key_id = x.key_id and k.fingerprint = x.fingerprint
    order by k.created_at limit 1;
    if owner is not null then
        insert into tenant_keys (key_id, fingerprint, tenant_id, created_at)
        values (p_key_ids[1], p_fingerprints[1], owner, p_now)
        on conflict do nothing;
    end if;
    return owner;
end $$;

-- Processes keep in memory whose searches are stored (gateway.md, rule 60). The payload is the caller.
create or replace function notify_account_settings() returns trigger
language plpgsql as $$
begin
    if tg_op = 'DELETE' then
        perform pg_notify('farescan_account', old.tenant_id::text);
    else
        perform pg_notify('farescan_account', new.tenant_id::text);
    end if;
    return null;
end $$;

create or replace trigger notify_first_recording after insert on account_settings
    for each row when (new.record_searches) execute function notify_account_settings();
create or replace trigger notify_changed_recording after update on account_settings
    for each row when (new.record_searches <> old.record_searches) execute function notify_account_settings();
create or replace trigger notify_last_recording after delete on account_settings
    for each row when (old.record_searches) execute function notify_account_settings();
