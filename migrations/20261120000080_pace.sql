-- How a lane learns its pace, and how it keeps to its plan (docs/decisions/0010-how-a-lane-learns-its-pace.md).
--
-- Everything is in the lane's row, so all processes share it, and goes by the database's clock. What is decided is decided by functions
-- that are given the row and the time and give back the row (paced, slowed, told, calls_left, lane_places): nothing else knows the
-- rules, and tests drive them through time without waiting. The functions that take the lane's lock only read, ask them and write.
--
--   allowed   95 % of what the window headers say, else of the rate of the plan that the caller named, else what the lane began with
--   slowed    a 429 halves the pace; from the end of its pause on it grows by 5 % a minute until it is what is allowed. It grows as a
--             function of time: nobody writes anything for it.
--   bounded   by what the caller asked for
--
-- The burst is always the thirtieth part of the rate, so 95 % and a burst are together below what the plan allows.

alter table lanes
    -- What the lane began with, before anything was known of the plan.
    add column start_per_minute    double precision check (start_per_minute > 0),
    add column start_in_flight     integer check (start_in_flight >= 1),
    -- Places in flight, as learned: more while answers come back and the pace is not used up, half after a 429.
    add column learned_in_flight   integer check (learned_in_flight >= 1),
    -- What the window headers last said: so many requests in each minute, so many left of them until the reset.
    add column window_limit        bigint check (window_limit >= 0),
    add column window_remaining    bigint check (window_remaining >= 0),
    add column window_reset_at     timestamptz,
    -- The pace that a 429 left, and since when it grows again.
    add column slowed_to           double precision check (slowed_to > 0),
    add column slowed_at           timestamptz,
    -- The caller's own bounds; null: none. The rate is what the specification says of the plan (section 8).
    add column own_plan            text,
    add column own_plan_per_minute integer check (own_plan_per_minute >= 1),
    add column own_per_minute      integer check (own_per_minute >= 1),
    add column own_in_flight       integer check (own_in_flight >= 1),
    -- Requests of the plan that scans leave to the caller's own calls.
    add column keep_in_reserve     bigint not null default 0 check (keep_in_reserve >= 0),
    -- The caller has resumed a lane whose quota was used up: until then it goes on beyond the quota, at the plan's price.
    add column beyond_quota_until  timestamptz,
    -- Where the pace comes from.
    add column pace_source         text not null default 'start' check (pace_source in ('start', 'headers', 'after_429', 'caller')),
    add check ((slowed_to is null) = (slowed_at is null)),
    drop constraint lanes_pause_reason_check,
    add constraint lanes_pause_reason_check
        check (pause_reason in ('rate_limited', 'quota_exhausted', 'reserve_reached', 'key_rejected', 'not_subscribed')) not valid;
alter table lanes validate constraint lanes_pause_reason_check;
update lanes
set start_per_minute = 60 / extract(epoch from emission), start_in_flight = max_in_flight, learned_in_flight = max_in_flight;
alter table lanes
    alter column start_per_minute set not null,
    alter column start_in_flight set not null,
    alter column learned_in_flight set not null;

-- Makes a caller's lane with the pace of a plan that is not known yet; leaves the one that is there.
create or replace function make_lane(p_tenant uuid, p_api text, p_per_minute double precision, p_max_in_flight integer) returns void
language sql as $$
    insert into lanes (tenant_id, api, emission, burst, max_in_flight, start_per_minute, start_in_flight, learned_in_flight)
    values (p_tenant, p_api, make_interval(secs => 60 / p_per_minute), greatest(1, floor(p_per_minute / 30))::integer,
            p_max_in_flight, p_per_minute, p_max_in_flight, p_max_in_flight)
    on conflict do nothing
$$;

-- The rules: a row and a time in, a row out -------------------------------------------------------------------------------

-- The lane with the pace that holds at a time. Never 0: an allowance of 0 is none that a plan means.
create function paced(lane lanes, p_at timestamptz) returns lanes
language plpgsql immutable as $$
declare
    -- No plan is faster than a thousand a second, whatever its headers say.
    allowed double precision := least(60000, coalesce(0.95 * nullif(lane.window_limit, 0), 0.95 * lane.own_plan_per_minute,
                                                      lane.start_per_minute));
    pace    double precision := allowed;
    grown   double precision;
begin
    lane.pace_source := case when lane.window_limit > 0 then 'headers'
                             when lane.own_plan_per_minute is not null then 'caller'
                             else 'start' end;
    if lane.slowed_at is not null then
        grown := lane.slowed_to * power(1.05, least(greatest(extract(epoch from p_at - lane.slowed_at) / 60, 0), 400));
        if grown < allowed then
            pace := grown;
            lane.pace_source := 'after_429';
        else
            lane.slowed_to := null;
            lane.slowed_at := null;
        end if;
    end if;
    if lane.own_per_minute <= pace then
        pace := lane.own_per_minute;
        lane.pace_source := 'caller';
    end if;
    lane.emission := make_interval(secs => 60 / pace);
    lane.burst := greatest(1, floor(pace / 30));
    -- By Little's law that is enough for searches of 30 seconds each.
    lane.max_in_flight := least(lane.learned_in_flight, greatest(lane.start_in_flight, ceil(pace / 2)), lane.own_in_flight);
    return lane;
end $$;

-- The lane after a 429: half the pace from the end of the pause on. Calls that were in flight together meet one limit and halve it once:
-- not again until a call has been claimed after the pause.
create function slowed(lane lanes, p_until timestamptz, p_at timestamptz) returns lanes
language plpgsql immutable as $$
declare
    pace double precision;
begin
    lane := paced(lane, p_at);
    if lane.slowed_at is null or lane.arrival > lane.slowed_at then
        pace := 60 / extract(epoch from lane.emission);
        lane.slowed_to := greatest(least(1, pace), pace / 2);
        lane.slowed_at := greatest(p_until, lane.arrival);
        lane.learned_in_flight := greatest(lane.start_in_flight, lane.learned_in_flight / 2);
    end if;
    return paced(lane, p_at);
end $$;

-- How many calls the pace has places for at a time (GCRA).
create function lane_places(lane lanes, p_at timestamptz) returns integer
language sql immutable as $$
    select floor(extract(epoch from p_at + lane.burst * lane.emission - greatest(lane.arrival, p_at))
                 / extract(epoch from lane.emission) + 1e-6)::integer
$$;

-- How many more calls the plan and its window have room for while p_in_flight are under way; null: nothing is known that bounds them.
-- A call that is under way may or may not be counted in what the headers said, so all of them are taken off. Once a quota that was used
-- up has begun anew, one call asks first: marketplaces round their reset, and without it a lane's worth of calls would be refused.
create function calls_left(lane lanes, p_in_flight integer, p_at timestamptz) returns bigint
language sql immutable as $$
    select least(
        case when lane.plan_remaining is null or lane.beyond_quota_until > p_at then null
             when lane.plan_reset_at is null or lane.plan_reset_at > p_at
                 then lane.plan_remaining - lane.keep_in_reserve - p_in_flight
             when lane.plan_remaining <= lane.keep_in_reserve then 1 - p_in_flight
        end,
        case when lane.window_reset_at > p_at then lane.window_remaining - p_in_flight end)
$$;

-- The lane, stopped for the reason, unless a longer pause holds already.
create function stopped(lane lanes, p_reason text, p_until timestamptz) returns lanes
language plpgsql immutable as $$
begin
    if lane.paused_until is null or lane.paused_until < p_until then
        lane.paused_until := p_until;
        lane.pause_reason := p_reason;
        lane.next_at := nullif(p_until, 'infinity');
    end if;
    return lane;
end $$;

-- What a lane is told: by finished calls of scans, and of synchronous calls after the fact. Null: the marketplace did not say.
create type lane_news as (
    tenant_id            uuid,
    api                  text,
    answered             integer,           -- calls of scans that have ended
    charged              integer,           -- billed requests of synchronous calls
    limited_seconds      double precision,  -- a synchronous call met a 429 that lasts so long
    plan_limit           bigint,
    plan_remaining       bigint,
    plan_reset_seconds   double precision,
    window_limit         bigint,
    window_remaining     bigint,
    window_reset_seconds double precision
);

-- Whether news would change the lane in a way that matters: nobody takes a lane's lock to write what is known. What is left of a plan
-- is written once a second, and at once when it comes near its end.
create function is_news(lane lanes, news lane_news, p_at timestamptz) returns boolean
language sql immutable as $$
    select coalesce(
        lane.full_up and news.answered > 0
        or news.charged > 0
        or news.limited_seconds is not null
        or news.plan_limit <> coalesce(lane.plan_limit, -1)
        or news.window_limit <> coalesce(lane.window_limit, -1)
        or coalesce(news.plan_limit, news.plan_remaining, news.window_limit) is not null
           and (lane.plan_seen_at is null or lane.plan_seen_at < p_at - interval '1 second' or lane.pause_reason is not null)
        or news.plan_remaining <> coalesce(lane.plan_remaining, -1)
           and news.plan_remaining - lane.keep_in_reserve < 2 * (lane.max_in_flight + lane.burst + 1 / extract(epoch from lane.emission))
        or news.window_remaining <> coalesce(lane.window_remaining, -1)
           and news.window_remaining < 2 * (lane.max_in_flight + lane.burst + 1 / extract(epoch from lane.emission)),
        false)
$$;

-- The lane with what the plan and window headers said. Answers come in another order than they were counted in, so within one period
-- the least that was left counts; more than calls in flight can explain is a new period.
create function with_headers(lane lanes, news lane_news, p_at timestamptz) returns lanes
language plpgsql immutable as $$
declare
    reset timestamptz := p_at + make_interval(secs => news.plan_reset_seconds);
    anew  boolean;
begin
    if coalesce(news.plan_limit, news.plan_remaining, news.window_limit) is null then
        return lane;
    end if;
    lane.plan_seen_at := p_at;
    if news.plan_remaining is not null then
        anew := lane.plan_remaining is null or lane.plan_reset_at <= p_at or news.plan_limit <> lane.plan_limit
                or news.plan_remaining > lane.plan_remaining + lane.max_in_flight
                or lane.beyond_quota_until is not null and news.plan_remaining > 0;
        lane.plan_remaining := case when anew then news.plan_remaining else least(lane.plan_remaining, news.plan_remaining) end;
        lane.plan_reset_at := case when anew then reset else least(lane.plan_reset_at, reset) end;
    else
        lane.plan_reset_at := coalesce(reset, lane.plan_reset_at);
    end if;
    lane.plan_limit := coalesce(news.plan_limit, lane.plan_limit);
    if lane.plan_remaining > 0 then
        lane.beyond_quota_until := null;
    end if;

    if news.window_limit is not null then
        reset := p_at + make_interval(secs => coalesce(news.window_reset_seconds, 60));
        anew := lane.window_reset_at is null or lane.window_reset_at <= p_at or news.window_limit <> lane.window_limit
                or news.window_remaining > lane.window_remaining + lane.max_in_flight;
        lane.window_remaining := case when anew then news.window_remaining else least(lane.window_remaining, news.window_remaining) end;
        lane.window_reset_at := case when anew then reset else least(lane.window_reset_at, reset) end;
        lane.window_limit := news.window_limit;
    end if;
    return lane;
end $$;

-- The lane after news.
create function told(lane lanes, news lane_news, p_at timestamptz) returns lanes
language plpgsql immutable as $$
begin
    lane := paced(with_headers(lane, news, p_at), p_at);
    if lane.pause_reason in ('quota_exhausted', 'reserve_reached') and news.plan_remaining is not null
       and lane.plan_remaining > lane.keep_in_reserve
    then
        -- The plan has begun anew, or is a larger one.
        lane.paused_until := null;
        lane.pause_reason := null;
        lane.next_at := p_at;
    elsif news.plan_remaining = 0 and lane.plan_remaining = 0 and lane.beyond_quota_until > p_at is not true then
        lane := stopped(lane, 'quota_exhausted', coalesce(lane.plan_reset_at, 'infinity'));
    end if;
    if news.limited_seconds is not null then
        lane := stopped(lane, 'rate_limited', p_at + make_interval(secs => news.limited_seconds));
    end if;

    if lane.full_up and news.answered > 0 then
        -- An answer came, every place was taken and the pace was not used up: it is the places that are too few. So they double in the
        -- time of a search until the pace is used up. A burst that is whole has run over.
        if lane.pace_source <> 'start' and lane_places(lane, p_at) >= least(news.answered + 1, lane.burst) then
            lane.learned_in_flight := greatest(lane.learned_in_flight,
                least(lane.learned_in_flight + news.answered, ceil(30 / extract(epoch from lane.emission)), 1000));
            lane := paced(lane, p_at);
        end if;
        lane.full_up := false;
        if lane.paused_until is null then
            lane.next_at := p_at;
        end if;
    end if;

    if news.charged > 0 then
        lane.arrival := least(greatest(lane.arrival, p_at) + news.charged * lane.emission,
                              p_at + lane.burst * lane.emission + interval '1 minute');
    end if;
    return lane;
end $$;

-- Under the lane's lock -----------------------------------------------------------------------------------------------------

-- Writes a lane that the caller has locked.
create function keep_lane(lane lanes) returns void
language sql as $$
    update lanes l
    set emission = lane.emission, burst = lane.burst, max_in_flight = lane.max_in_flight, pace_source = lane.pace_source,
        learned_in_flight = lane.learned_in_flight, slowed_to = lane.slowed_to, slowed_at = lane.slowed_at,
        arrival = lane.arrival, virtual_time = lane.virtual_time, next_at = lane.next_at, full_up = lane.full_up,
        paused_until = lane.paused_until, pause_reason = lane.pause_reason,
        plan_limit = lane.plan_limit, plan_remaining = lane.plan_remaining, plan_reset_at = lane.plan_reset_at,
        plan_seen_at = lane.plan_seen_at, beyond_quota_until = lane.beyond_quota_until,
        window_limit = lane.window_limit, window_remaining = lane.window_remaining, window_reset_at = lane.window_reset_at,
        own_plan = lane.own_plan, own_plan_per_minute = lane.own_plan_per_minute, own_per_minute = lane.own_per_minute,
        own_in_flight = lane.own_in_flight, keep_in_reserve = lane.keep_in_reserve
    where l.tenant_id = lane.tenant_id and l.api = lane.api
$$;

-- Stops a lane for so many seconds, or until a resume (null). The longer pause wins. One for the rate slows the lane too.
create or replace function pause_lane(p_tenant uuid, p_api text, p_reason text, p_seconds double precision) returns void
language plpgsql as $$
declare
    t     timestamptz;
    until timestamptz;
    lane  lanes;
begin
    select * into lane from lanes l where l.tenant_id = p_tenant and l.api = p_api for no key update;
    if not found then
        return;
    end if;
    t := clock_timestamp();
    until := coalesce(t + make_interval(secs => p_seconds), 'infinity');
    if p_reason = 'rate_limited' then
        lane := slowed(lane, until, t);
    end if;
    perform keep_lane(stopped(lane, p_reason, until));
end $$;

drop function tell_lanes(timestamptz, uuid[], text[], bigint[], bigint[], double precision[]);

-- Tells lanes their news (a JSON array of lane_news, one for each lane). In a transaction of its own after the record's, so that
-- recording takes no lane's lock. Gives how many lanes had waited for a call to end.
create function tell_lanes(p_news jsonb) returns bigint
language plpgsql as $$
declare
    news  record;
    lane  lanes;
    freed bigint := 0;
begin
    for news in
        select n as said
        from jsonb_populate_recordset(null::lane_news, p_news) n
        join lanes l on l.tenant_id = n.tenant_id and l.api = n.api
        where is_news(l, n, clock_timestamp())
        order by n.tenant_id, n.api
    loop
        select * into lane from lanes l
        where l.tenant_id = (news.said).tenant_id and l.api = (news.said).api for no key update;
        -- Another process may have told it meanwhile.
        if found and is_news(lane, news.said, clock_timestamp()) then
            freed := freed + (lane.full_up and (news.said).answered > 0)::integer;
            perform keep_lane(told(lane, news.said, clock_timestamp()));
        end if;
    end loop;
    return freed;
end $$;

-- Sets the caller's own bounds of a lane, all of them (null: none), and has a claimer look at it. They hold for every call that is
-- claimed from now on. What is known of a named plan counts until the marketplace says what the plan is.
create function bound_lane(p_tenant uuid, p_api text, p_plan text, p_plan_per_minute integer, p_plan_limit bigint,
                           p_per_minute integer, p_in_flight integer, p_reserve bigint) returns void
language plpgsql as $$
declare
    lane lanes;
begin
    select * into lane from lanes l where l.tenant_id = p_tenant and l.api = p_api for no key update;
    lane.own_plan := p_plan;
    lane.own_plan_per_minute := p_plan_per_minute;
    lane.own_per_minute := p_per_minute;
    lane.own_in_flight := p_in_flight;
    lane.keep_in_reserve := coalesce(p_reserve, 0);
    if lane.plan_seen_at is null then
        lane.plan_limit := p_plan_limit;
    end if;
    -- If the reserve is reached still, the next claim finds out.
    if lane.pause_reason = 'reserve_reached' then
        lane.paused_until := null;
        lane.pause_reason := null;
    end if;
    perform keep_lane(paced(lane, clock_timestamp()));
    perform arm_lane(p_tenant, p_api);
end $$;

-- Takes at most p_slots items for a worker: due lanes in the order of their due time, each at most its share of the slots, its pace
-- (GCRA), its places in flight and what is left of its plan. A lane that the slots did not suffice for keeps its due time and so comes
-- first at the next visit. Items come in the order of their turns. The last row has no item but wait_ms, the milliseconds until a visit
-- is next of use (at most 1000), or -1: the worker's lease is gone, take a new one.
create or replace function claim(p_worker bigint, p_slots integer)
returns table (tenant_id uuid, api text, item_id uuid, scan_id uuid, number integer, endpoint text, body jsonb, upstream_filters boolean,
               upstream_limit integer, grant_id uuid, wait_ms integer)
language plpgsql
-- The planner takes a tenth of the rows for a LIMIT it does not know and then prefers scans and sorts that grow with the backlog.
set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    lane     lanes;
    t        timestamptz;
    free     integer := p_slots;
    share    integer;
    in_use   integer;
    may      bigint;
    wanted   bigint;
    left_of  bigint;
    look     bigint;
    taken    uuid[];
    got      integer;
    last     bigint;
begin
    if not exists (select from workers w where w.worker_id = p_worker and not w.dead and w.lease_until > clock_timestamp()) then
        wait_ms := -1;
        return next;
        return;
    end if;
    select ceil(p_slots::numeric / greatest(count(*), 1)) into share
    from (select from lanes l where l.next_at <= clock_timestamp() limit 20) due;

    for lane in
        select * from lanes l where l.next_at <= clock_timestamp() order by l.next_at limit 32 for no key update skip locked
    loop
        exit when free <= 0;
        t := clock_timestamp();
        if lane.paused_until > t then
            update lanes l set next_at = nullif(lane.paused_until, 'infinity')
            where l.tenant_id = lane.tenant_id and l.api = lane.api;
            continue;
        end if;
        if lane.slowed_at is not null then
            lane := paced(lane, t);
        end if;
        -- Bounded above, so that a clock that jumped back cannot stop the lane for long.
        lane.arrival := least(greatest(lane.arrival, t), t + lane.burst * lane.emission + interval '1 minute');
        select count(*) into in_use
        from (select from scan_items i
              where i.tenant_id = lane.tenant_id and i.api = lane.api and i.state in ('claimed', 'calling')
              limit lane.max_in_flight) busy;
        left_of := calls_left(lane, in_use, t);
        may := least(lane_places(lane, t), lane.max_in_flight - in_use, left_of, share);
        wanted := least(may, free);
        got := 0;
        last := lane.virtual_time;
        look := lane.virtual_time;
        while wanted > 0 loop
            with moved as (
                update scan_items i
                set state = 'claimed', attempt = i.attempt + 1, worker_id = p_worker, claimed_at = t
                where i.state = 'pending' and i.ctid = any (array(
                    select p.ctid from scan_items p
                    where p.tenant_id = lane.tenant_id and p.api = lane.api and p.state = 'pending' and p.turn >= look
                    order by p.turn, p.item_id limit wanted))
                returning i.item_id, i.turn
            )
            -- Sorted inside the aggregate: a sort of the plan's own, forbidden above, would make all plans look alike.
            select array_agg(m.item_id order by m.turn, m.item_id), count(*), greatest(lane.virtual_time, max(m.turn))
            into taken, got, last from moved m;
            -- Before the lane counts as empty, look below the low-water mark too: nothing should be there, and nothing may be lost.
            exit when got > 0 or look = 0;
            look := 0;
        end loop;
        if got > 0 then
            -- Item by item, in the order of their turns: joined freely, the planner begins with all scans of the tenant.
            return query
            select m.tenant_id, m.api, m.item_id, m.scan_id, m.attempt, s.endpoint, m.body, s.upstream_filters, s.upstream_limit,
                   s.grant_id, null::integer
            from unnest(taken) x (item_id)
            cross join lateral (select * from scan_items i where i.tenant_id = lane.tenant_id and i.item_id = x.item_id offset 0) m
            cross join lateral (select * from scans s where s.tenant_id = m.tenant_id and s.scan_id = m.scan_id offset 0) s;
        end if;

        lane.arrival := lane.arrival + got * lane.emission;
        lane.virtual_time := last;
        lane.paused_until := null;
        lane.pause_reason := null;
        in_use := in_use + got;
        -- Nothing more before one of its calls has ended: all places are taken, or all that is left of the plan is under way.
        lane.full_up := in_use >= lane.max_in_flight or coalesce(left_of - got <= 0, false) and in_use > 0;
        if wanted > 0 and got = 0 then
            lane.next_at := null;
        elsif lane.full_up then
            lane.next_at := t + interval '1 second';
        elsif left_of <= 0 then
            if lane.window_reset_at > t and lane.window_remaining <= 0 then
                lane.next_at := lane.window_reset_at;
            else
                lane := stopped(lane, case when lane.plan_remaining = 0 then 'quota_exhausted' else 'reserve_reached' end,
                                coalesce(lane.plan_reset_at, 'infinity'));
            end if;
        elsif got < may and got = free then
            -- Cut short by the slots alone: due as before.
        else
            lane.next_at := greatest(t, lane.arrival - (lane.burst - 1) * lane.emission);
        end if;
        update lanes l
        set arrival = lane.arrival, virtual_time = lane.virtual_time, full_up = lane.full_up, next_at = lane.next_at,
            paused_until = lane.paused_until, pause_reason = lane.pause_reason, emission = lane.emission, burst = lane.burst,
            max_in_flight = lane.max_in_flight, pace_source = lane.pace_source, slowed_to = lane.slowed_to, slowed_at = lane.slowed_at
        where l.tenant_id = lane.tenant_id and l.api = lane.api;
        free := free - got;
    end loop;

    wait_ms := coalesce(
        (select least(1000, ceil(greatest(0, extract(epoch from l.next_at - clock_timestamp()) * 1000)))::integer
         from lanes l where l.next_at is not null order by l.next_at limit 1), 1000);
    return next;
end $$;

-- Makes the due retries of one lane pending again; gives how many. They queue up anew, spread as a scan of so many items is: a thousand
-- of them do not go before another scan's five.
create or replace function release_delayed(p_now timestamptz, p_tenant uuid, p_api text, p_limit integer) returns bigint
language plpgsql as $$
declare
    start bigint := arm_lane(p_tenant, p_api);
    work  record;
    scan  scans;
    moved bigint := 0;
begin
    for work in
        with due as (
            select i.item_id, i.scan_id, i.position from scan_items i
            where i.tenant_id = p_tenant and i.api = p_api and i.state = 'delayed' and i.not_before <= clock_timestamp()
            order by i.item_id limit p_limit
            for no key update
        ), placed as (
            select d.item_id, (row_number() over (partition by d.scan_id order by d.position) - 1)
                              * case s.priority when 'scheduled' then 9 else 1 end as place
            from due d join scans s on s.tenant_id = p_tenant and s.scan_id = d.scan_id
        ), released as (
            update scan_items i set state = 'pending', turn = start + p.place, not_before = null
            from placed p
            where i.tenant_id = p_tenant and i.item_id = p.item_id
            returning i.scan_id, i.item_id
        )
        select r.scan_id, array_agg(r.item_id) as items from released r group by r.scan_id order by r.scan_id
    loop
        moved := moved + cardinality(work.items);
        select * into scan from scans s where s.tenant_id = p_tenant and s.scan_id = work.scan_id for no key update;
        perform follow_scan(p_now, scan, work.items);
    end loop;
    return moved;
end $$;
