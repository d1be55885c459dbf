-- What the engine needs to go on whatever dies: circuits, the installation's number for spools, and late answers in the history.

-- The number of this database: the answers in a spool belong to it and to no other.
create table installation (
    one             boolean primary key default true check (one),
    installation_id uuid    not null default gen_random_uuid()
);
insert into installation default values;

-- Circuits ---------------------------------------------------------------------------------------------------------------
--
-- One for each of the marketplace's APIs, shared by all processes. The program counts (queue::circuit); while a circuit is open,
-- nothing of its API begins but a probe every now and then. What is pending waits in its lane, unspent.

create table circuits (
    api         text        primary key check (api in ('flights', 'hotels')),
    -- What the program has counted since it closed.
    tally       jsonb       not null default '{"in_a_row": 0, "steps": []}',
    opened_at   timestamptz,
    -- From when on the next probe may begin.
    probe_at    timestamptz,
    probe_every interval    not null default '10 s' check (probe_every > interval '0'),
    -- The items that were probes since it opened, newest first.
    probes      uuid[]      not null default '{}',
    check ((opened_at is null) = (probe_at is null))
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
insert into circuits (api) values ('flights'), ('hotels');

-- Whoever watches a live scan of the API looks at it again.
create function tell_scans_of_api(p_api text) returns void
language plpgsql as $$
begin
    perform pg_notify('farescan_scan', s.scan_id::text)
    from scans s where s.api = p_api and s.finished_at is null limit 10000;
end $$;

create function open_circuit(p_api text) returns void
language plpgsql as $$
begin
    update circuits
    set opened_at = clock_timestamp(), probe_at = clock_timestamp() + probe_every, probes = '{}', tally = default
    where api = p_api and opened_at is null;
    perform tell_scans_of_api(p_api);
end $$;

-- Closes a circuit. Lanes that waited for it look again, at their own pace.
create function close_circuit(p_api text) returns void
language plpgsql as $$
begin
    update circuits set opened_at = null, probe_at = null, probes = '{}', tally = default where api = p_api;
    update lanes l set next_at = clock_timestamp()
    from (select w.tenant_id, w.api from lanes w
          where w.api = p_api and w.next_at > clock_timestamp() and w.paused_until is null
          for no key update skip locked) waiting
    where l.tenant_id = waiting.tenant_id and l.api = waiting.api;
    perform pg_notify('farescan_lane', '');
    perform tell_scans_of_api(p_api);
end $$;

-- claim, but lanes that are due while their circuit is open wait for its next probe. When that is due, one of them is let through: which,
-- is left to chance, so that a caller whose calls alone fail cannot keep the circuit open for the others. Locks no lane that somebody
-- else has, so it waits for nobody.
create function claim_within_circuits(p_worker bigint, p_slots integer)
returns table (tenant_id uuid, api text, item_id uuid, scan_id uuid, number integer, endpoint text, body jsonb, upstream_filters boolean,
               upstream_limit integer, grant_id uuid, wait_ms integer)
language plpgsql as $$
#variable_conflict use_column
declare
    circuit circuits;
    t       timestamptz := clock_timestamp();
begin
    for circuit in select * from circuits c where c.opened_at is not null loop
        update lanes l
        set next_at = greatest(circuit.probe_at, t + circuit.probe_every / 10)
                      + random() * circuit.probe_every / 10
        from (select d.tenant_id, d.api from lanes d
              where d.api = circuit.api and d.next_at <= t
              order by d.next_at
              offset (circuit.probe_at <= t)::integer limit 1000
              for no key update skip locked) due
        where l.tenant_id = due.tenant_id and l.api = due.api;
    end loop;
    return query select * from claim(p_worker, p_slots);
end $$;

-- begin_calls, but of an API whose circuit is open one call at most: the probe, if it is time for it. The verdict of the others:
--   upstream_down  the circuit is open: give_up
create function begin_within_circuits(p_now timestamptz, p_workers bigint[], p_tenants uuid[], p_items uuid[], p_numbers integer[],
                                      p_attempt_ids uuid[])
returns table (item_id uuid, number integer, verdict text)
language plpgsql as $$
#variable_conflict use_column
declare
    circuit circuits;
    waiting uuid[];
    held    uuid[] := '{}';
begin
    for circuit in select * from circuits c where c.opened_at is not null order by c.api loop
        select array_agg(i.item_id) into waiting
        from unnest(p_tenants, p_items) as x (tenant_id, item_id)
        join scan_items i on i.tenant_id = x.tenant_id and i.item_id = x.item_id and i.api = circuit.api and i.state = 'claimed';
        if waiting is null then
            continue;
        end if;
        update circuits c
        set probe_at = clock_timestamp() + c.probe_every, probes = (waiting[1] || c.probes)[1:30]
        where c.api = circuit.api and c.opened_at is not null and c.probe_at <= clock_timestamp();
        held := held || case when found then waiting[2:] else waiting end;
    end loop;
    return query
    select b.item_id, b.number, b.verdict
    from (select array_agg(x.worker_id) as workers, array_agg(x.tenant_id) as tenants, array_agg(x.item_id) as items,
                 array_agg(x.number) as numbers, array_agg(x.attempt_id) as attempts
          from unnest(p_workers, p_tenants, p_items, p_numbers, p_attempt_ids)
               as x (worker_id, tenant_id, item_id, number, attempt_id)
          where not x.item_id = any (held)) free
    cross join lateral begin_calls(p_now, free.workers, free.tenants, free.items, free.numbers, free.attempts) b
    where free.items is not null;
    return query
    select x.item_id, x.number, 'upstream_down'
    from unnest(p_items, p_numbers) as x (item_id, number)
    where x.item_id = any (held);
end $$;

-- second_place, but none while the circuit is open: the second try would be billed and fail like the first.
create function second_place_within_circuits(p_tenant uuid, p_item uuid, p_number integer) returns boolean
language sql as $$
    select case when exists (select from scan_items i join circuits c on c.api = i.api
                             where i.tenant_id = p_tenant and i.item_id = p_item and c.opened_at is not null)
                then false
                else second_place(p_tenant, p_item, p_number) end
$$;

-- As before, and live scans of an API whose circuit is open are paused with upstream_down, unless their lane has a reason of its own.
create or replace view shown_scans as
select s.tenant_id, s.scan_id, s.endpoint, s.request, s.sweep, s.label, s.tags,
       case when stopped.reason is null then s.status else 'paused' end as status,
       coalesce(stopped.reason, s.status_reason) as status_reason,
       s.total, s.ok, s.empty, s.partial, s.degraded, s.failed, s.cancelled, busy.running,
       s.requests_spent, s.max_requests, s.best_price, s.best_currency, s.best_item_id,
       extract(epoch from l.emission)::double precision as seconds_per_search,
       g.expires_at as key_held_until,
       s.created_at, s.started_at, s.finished_at
from scans s
left join lanes l on l.tenant_id = s.tenant_id and l.api = s.api
left join key_grants g on g.tenant_id = s.tenant_id and g.grant_id = s.grant_id and g.wiped_at is null
left join lateral (
    select case when l.paused_until > clock_timestamp() then l.pause_reason
                when exists (select from circuits c where c.api = s.api and c.opened_at is not null) then 'upstream_down'
           end as reason
    where s.status in ('queued', 'running')
) stopped on true
-- The lane's few items in flight, by their own index; never the scan's thousands.
cross join lateral (
    select count(*) as running
    from scan_items i
    where s.finished_at is null and i.tenant_id = s.tenant_id and i.api = s.api and i.scan_id = s.scan_id
      and i.state in ('claimed', 'calling') and i.state = 'calling'
) busy;

-- Late answers -----------------------------------------------------------------------------------------------------------

-- A call that was given up has left a gap in the history. When its answer comes after all, the gap was none: every attempt leaves one
-- observation. give_up stamps both with one time, so the gap is found without an index of its own.
create function forget_gap() returns trigger
language plpgsql as $$
begin
    delete from observations o
    where o.tenant_id = old.tenant_id and o.observed_at = old.ended_at and o.item_id = old.item_id and o.number = old.number
      and o.reason = 'worker_lost' and o.price is null;
    return null;
end $$;

create trigger late_answer after update on attempts
for each row when (old.reason = 'worker_lost' and new.reason is distinct from 'worker_lost') execute function forget_gap();
