-- Circuits: while one is open, calls of its API wait, but for a probe now and then. claim.sql moves due lanes to the next probe.

-- Opens a circuit: calls of its API wait, but for a probe now and then.
create or replace function open_circuit(p_api text) returns void
language plpgsql as $$
begin
    update circuits
    set opened_at = clock_timestamp(), probe_at = clock_timestamp() + probe_every, probes = '{}', tally = default
    where api = p_api and opened_at is null;
    perform notify_scans_of_api(p_api);
end $$;

-- Closes a circuit. Lanes that waited for it are due again, each at its own pace.
create or replace function close_circuit(p_api text) returns void
language plpgsql as $$
begin
    update circuits set opened_at = null, probe_at = null, probes = '{}', tally = default where api = p_api;
    update lanes l set next_at = clock_timestamp()
    from (select w.tenant_id, w.api from lanes w
          where w.api = p_api and w.next_at > clock_timestamp() and w.paused_until is null
          for no key update skip locked) waiting
    where l.tenant_id = waiting.tenant_id and l.api = waiting.api;
    perform pg_notify('farescan_lane', '');
    perform notify_scans_of_api(p_api);
end $$;

-- Of claims to begin, the attempts that must wait because their circuit is open: all but one probe, if it is time for it.
create or replace function attempts_behind_circuit(p_workers bigint[], p_tenants uuid[], p_items uuid[], p_numbers integer[],
                                                   p_attempt_ids uuid[]) returns uuid[]
language plpgsql
set enable_sort = off
as $$
#variable_conflict use_column
declare
    circuit circuits;
    waiting uuid[];
    probe   uuid;
    held    uuid[] := '{}';
begin
    for circuit in select * from circuits c where c.opened_at is not null order by c.api loop
        select array_agg(x.attempt_id order by x.place), (array_agg(x.item_id order by x.place))[1] into waiting, probe
        from unnest(p_workers, p_tenants, p_items, p_numbers, p_attempt_ids) with ordinality
             as x (worker_id, tenant_id, item_id, number, attempt_id, place)
        cross join lateral (select * from scan_items i where i.tenant_id = x.tenant_id and i.item_id between x.item_id and x.item_id
                            order by i.item_id limit 1) i
        where i.api = circuit.api and i.state = 'claimed' and i.worker_id = x.worker_id and i.attempt = x.number;
        continue when waiting is null;
        update circuits c
        set probe_at = clock_timestamp() + c.probe_every, probes = (probe || c.probes)[1:30]
        where c.api = circuit.api and c.opened_at is not null and c.probe_at <= clock_timestamp();
        held := held || case when found then waiting[2:] else waiting end;
    end loop;
    return held;
end $$;
