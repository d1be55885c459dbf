-- How a lane learns its pace and keeps to its plan (docs/decisions/0010; engine.md).
--
-- A lane's row holds everything, so all processes share it, and it goes by the database's clock. The first part has the rules: functions
-- that get a row and a time and return the row. Tests drive them through time without waiting. The second part takes the lane's lock,
-- applies a rule and stores the row.
--
--   allowed   95 % of what the window headers say, else of the rate of the plan that the caller named, else the lane's first pace
--   slowed    a 429 halves the pace; from the end of its pause on it grows until it is what is allowed: by a fifth of what is missing a
--             minute where the plan is known, however often it was halved, else by 5 % a minute. It grows as a function of time: nothing is
--             written for it.
--   limited   by what the caller asked for
--
-- The burst is the thirtieth part of the rate, so 95 % and a burst are together below what the plan allows.

-- The lane with the pace that holds at a time. Never 0: no plan means an allowance of 0.
create or replace function with_pace(lane lanes, p_at timestamptz) returns lanes
language plpgsql immutable as $$
declare
    -- No plan is faster than a thousand a second, whatever its headers say.
    allowed double precision := least(60000, coalesce(0.95 * nullif(lane.window_limit, 0), 0.95 * lane.own_plan_per_minute,
                                                      lane.start_per_minute));
    pace    double precision := allowed;
    minutes double precision;
    grown   double precision;
begin
    lane.pace_source := case when lane.window_limit > 0 then 'headers'
                             when lane.own_plan_per_minute is not null then 'caller'
                             else 'start' end;
    if lane.slowed_at is not null then
        minutes := least(greatest(extract(epoch from p_at - lane.slowed_at) / 60, 0), 400);
        grown := lane.slowed_to * power(1.05, minutes);
        if lane.pace_source <> 'start' then
            grown := greatest(grown, lane.slowed_to + (allowed - lane.slowed_to) * minutes / 5);
        end if;
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

-- How many calls the pace allows at a time (GCRA).
--
-- Stable, as its arithmetic with times is: declared immutable it would not be inlined, and planned anew for each call.
create or replace function calls_within_pace(lane lanes, p_at timestamptz) returns integer
language sql stable as $$
    select floor(extract(epoch from p_at + lane.burst * lane.emission - greatest(lane.arrival, p_at))
                 / extract(epoch from lane.emission) + 1e-6)::integer
$$;

-- The lane after a 429: half the pace from the end of the pause on. Calls that were in flight together meet one limit and halve it
-- once: not again until a call has been claimed after the pause.
create or replace function after_429(lane lanes, p_until timestamptz, p_at timestamptz) returns lanes
language plpgsql immutable as $$
declare
    pace double precision;
begin
    lane := with_pace(lane, p_at);
    if lane.slowed_at is null or lane.arrival > lane.slowed_at then
        pace := 60 / extract(epoch from lane.emission);
        lane.slowed_to := greatest(least(1, pace), pace / 2);
        lane.slowed_at := greatest(p_until, lane.arrival);
        lane.learned_in_flight := greatest(lane.start_in_flight, lane.learned_in_flight / 2);
    end if;
    return with_pace(lane, p_at);
end $$;

-- The lane with what the plan and window headers said. Answers come in another order than they were counted in, so within one period
-- the lowest remainder counts; a remainder that calls in flight cannot explain starts a new period.
create or replace function with_plan_headers(lane lanes, news lane_update, p_at timestamptz) returns lanes
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

-- The lane after an update.
create or replace function lane_updated(lane lanes, news lane_update, p_at timestamptz) returns lanes
language plpgsql immutable as $$
begin
    lane := with_pace(with_plan_headers(lane, news, p_at), p_at);
    if lane.pause_reason in ('quota_exhausted', 'reserve_reached') and news.plan_remaining is not null
       and lane.plan_remaining > lane.keep_in_reserve
    then
        -- The plan has started a new period, or is a larger one.
        lane.paused_until := null;
        lane.pause_reason := null;
        lane.next_at := p_at;
    elsif news.plan_remaining = 0 and lane.plan_remaining = 0 and lane.beyond_quota_until > p_at is not true then
        lane := with_pause(lane, 'quota_exhausted', coalesce(lane.plan_reset_at, 'infinity'));
    end if;
    if news.limited_seconds is not null then
        lane := with_pause(lane, 'rate_limited', p_at + make_interval(secs => news.limited_seconds));
    end if;

    if lane.full_up and news.answered > 0 then
        -- An answer came, every permit was in use and the pace was not used up: the permits are too few. They double in the time of a
        -- search until the pace is used up.
        if lane.pace_source <> 'start' and calls_within_pace(lane, p_at) >= least(news.answered + 1, lane.burst) then
            lane.learned_in_flight := greatest(lane.learned_in_flight,
                least(lane.learned_in_flight + news.answered, ceil(30 / extract(epoch from lane.emission)), 1000));
            lane := with_pace(lane, p_at);
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

-- Whether an update says something new about a plan of which little is left: the next claim must know it.
create or replace function nears_plan_end(lane lanes, news lane_update) returns boolean
language sql immutable as $$
    select coalesce(
        news.plan_remaining <> coalesce(lane.plan_remaining, -1)
        and news.plan_remaining - lane.keep_in_reserve < 2 * (lane.max_in_flight + lane.burst + 1 / extract(epoch from lane.emission)),
        false)
$$;

-- Whether an update changes the lane in a way that matters: otherwise nobody takes the lane's lock. What is left of a plan is written
-- once a second, and at once near its end. Stable, so that it is inlined, as calls_within_pace.
create or replace function changes_lane(lane lanes, news lane_update, p_at timestamptz) returns boolean
language sql stable as $$
    select coalesce(
        lane.full_up and news.answered > 0
        -- A concurrent claim may have counted the call as in flight and wait for its end. Near the end of the plan no other call
        -- would wake the lane.
        or news.answered > 0 and calls_within_plan(lane, 0, p_at) <= 2 * lane.max_in_flight
        or news.charged > 0
        or news.limited_seconds is not null
        or news.plan_limit <> coalesce(lane.plan_limit, -1)
        or news.window_limit <> coalesce(lane.window_limit, -1)
        or coalesce(news.plan_limit, news.plan_remaining, news.window_limit) is not null
           and (lane.plan_seen_at is null or lane.plan_seen_at < p_at - interval '1 second' or lane.pause_reason is not null)
        or nears_plan_end(lane, news)
        or news.window_remaining <> coalesce(lane.window_remaining, -1)
           and news.window_remaining < 2 * (lane.max_in_flight + lane.burst + 1 / extract(epoch from lane.emission)),
        false)
$$;

-- How many more calls the plan and its window allow while p_in_flight are in flight; null: nothing is known that limits them. A call in
-- flight may or may not be counted in what the headers said, so all of them are subtracted. After the reset of a quota that was used up one
-- call goes first: marketplaces round their reset, and without it a lane's worth of calls would be refused.
create or replace function calls_within_plan(lane lanes, p_in_flight integer, p_at timestamptz) returns bigint
language sql immutable as $$
    select least(
        case when lane.plan_remaining is null or lane.beyond_quota_until > p_at then null
             when lane.plan_reset_at is null or lane.plan_reset_at > p_at
                 then lane.plan_remaining - lane.keep_in_reserve - p_in_flight
             when lane.plan_remaining <= lane.keep_in_reserve then 1 - p_in_flight
        end,
        case when lane.window_reset_at > p_at then lane.window_remaining - p_in_flight end)
$$;

-- The lane, paused for the reason, unless a longer pause holds already.
create or replace function with_pause(lane lanes, p_reason text, p_until timestamptz) returns lanes
language plpgsql immutable as $$
begin
    if lane.paused_until is null or lane.paused_until < p_until then
        lane.paused_until := p_until;
        lane.pause_reason := p_reason;
        lane.next_at := nullif(p_until, 'infinity');
    end if;
    return lane;
end $$;

-- Under the lane's lock --------------------------------------------------------------------------------------------------------

-- Creates a caller's lane with the pace of an unknown plan; leaves one that exists.
create or replace function create_lane(p_tenant uuid, p_api text, p_per_minute double precision, p_max_in_flight integer) returns void
language sql as $$
    insert into lanes (tenant_id, api, emission, burst, max_in_flight, start_per_minute, start_in_flight, learned_in_flight)
    values (p_tenant, p_api, make_interval(secs => 60 / p_per_minute), greatest(1, floor(p_per_minute / 30))::integer,
            p_max_in_flight, p_per_minute, p_max_in_flight, p_max_in_flight)
    on conflict do nothing
$$;

-- Stores a lane whose row is locked.
create or replace function store_lane(lane lanes) returns void
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

-- Sets the caller's own limits of a lane, all of them (null: none), and wakes it. They hold for every later claim. What is known of a
-- named plan counts until the marketplace says what the plan is.
create or replace function set_lane_limits(p_tenant uuid, p_api text, p_plan text, p_plan_per_minute integer, p_plan_limit bigint,
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
    -- If the reserve is still reached, the next claim pauses the lane again.
    if lane.pause_reason = 'reserve_reached' then
        lane.paused_until := null;
        lane.pause_reason := null;
    end if;
    perform store_lane(with_pace(lane, clock_timestamp()));
    perform wake_lane(p_tenant, p_api);
end $$;

-- Locks the lane, as everything that makes items pending must, and has a worker poll it. Returns the virtual time, where the sequence of
-- new items starts: turn = virtual time + position * stride (1 for interactive scans, 9 for scheduled ones).
create or replace function wake_lane(p_tenant uuid, p_api text) returns bigint
language plpgsql as $$
declare
    start bigint;
begin
    update lanes
    set next_at = case when paused_until = 'infinity' then null
                       else least(next_at, greatest(clock_timestamp(), arrival - (burst - 1) * emission, paused_until)) end
    where tenant_id = p_tenant and api = p_api
    returning virtual_time into start;
    if not found then
        raise exception 'there is no % lane of tenant %', p_api, p_tenant;
    end if;
    perform pg_notify('farescan_lane', '');   -- equal notifications of one transaction are one
    return start;
end $$;

-- wake_lane for a new scan of p_items items: returns where its sequence starts (docs/decisions/0025).
create or replace function reserve_sequence(p_tenant uuid, p_api text, p_items integer, p_stride bigint) returns bigint
language plpgsql as $$
declare
    start double precision := wake_lane(p_tenant, p_api);
begin
    select greatest(start, l.next_start) into start from lanes l where l.tenant_id = p_tenant and l.api = p_api;
    update lanes l set next_start = start + p_stride::double precision / greatest(p_items, 1)
    where l.tenant_id = p_tenant and l.api = p_api;
    return floor(start);
end $$;

-- Pauses a lane for so many seconds, or until a resume (null). The longer pause wins. A rate limit slows the lane too.
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
        lane := after_429(lane, until, t);
    end if;
    perform store_lane(with_pause(lane, p_reason, until));
end $$;

-- pause_lane, counted from when the refusal came: a refusal that was recorded late pauses only for what is left.
create or replace function pause_lane_since(p_tenant uuid, p_api text, p_reason text, p_seconds double precision, p_since timestamptz) returns void
language plpgsql as $$
declare
    t     timestamptz := clock_timestamp();
    until timestamptz := coalesce(p_since + make_interval(secs => p_seconds), 'infinity');
    lane  lanes;
begin
    if until <= t then
        return;
    end if;
    select * into lane from lanes l where l.tenant_id = p_tenant and l.api = p_api for no key update;
    if p_reason = 'rate_limited' then
        lane := after_429(lane, until, t);
    end if;
    perform store_lane(with_pause(lane, p_reason, until));
end $$;

-- Stores what is left of plans near their end, first in the transaction that records the calls (a JSON array of lane_update, one
-- for each lane): a claim subtracts the calls in flight from what is left, so between a call's record and the update of its lane the call
-- would count nowhere, and the reserve could be spent. A window is left out: to go beyond it costs a 429 and no money, and a fast lane is
-- always near its end. Lanes that record_calls will lock (to_lock) are locked here, in the same order.
create or replace function store_plans_near_end(p_news jsonb) returns void
language plpgsql as $$
declare
    news record;
    lane lanes;
begin
    for news in
        select n as said
        from jsonb_array_elements(p_news) entry
        cross join lateral jsonb_populate_record(null::lane_update, entry) n
        join lanes l on l.tenant_id = n.tenant_id and l.api = n.api
        where (entry -> 'to_lock')::boolean or nears_plan_end(l, n)
        order by n.tenant_id, n.api
    loop
        select * into lane from lanes l
        where l.tenant_id = (news.said).tenant_id and l.api = (news.said).api for no key update;
        if found and nears_plan_end(lane, news.said) then
            perform store_lane(with_pace(with_plan_headers(lane, news.said, clock_timestamp()), clock_timestamp()));
        end if;
    end loop;
end $$;

-- Applies updates to lanes (a JSON array of lane_update, one for each lane), in a transaction of its own after the record's, so that
-- recording seldom takes a lane's lock. Returns how many lanes had waited for a call to end.
create or replace function update_lanes(p_news jsonb) returns bigint
language plpgsql as $$
declare
    -- A variable, so that changes_lane is inlined.
    t     timestamptz := clock_timestamp();
    news  record;
    lane  lanes;
    freed bigint := 0;
begin
    for news in
        select n as said
        from jsonb_populate_recordset(null::lane_update, p_news) n
        join lanes l on l.tenant_id = n.tenant_id and l.api = n.api
        where changes_lane(l, n, t)
        order by n.tenant_id, n.api
    loop
        select * into lane from lanes l
        where l.tenant_id = (news.said).tenant_id and l.api = (news.said).api for no key update;
        t := clock_timestamp();
        -- Another process may have applied the same meanwhile.
        if found and changes_lane(lane, news.said, t) then
            freed := freed + (lane.full_up and (news.said).answered > 0)::integer;
            perform store_lane(lane_updated(lane, news.said, t));
        end if;
    end loop;
    return freed;
end $$;
