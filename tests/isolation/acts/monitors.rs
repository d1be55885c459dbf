//! Monitors: made, changed, stopped and deleted; their slots decided and judged.

use serde_json::{Value, json};

use super::{id, order};
use crate::isolation::hand::Comes;
use crate::isolation::world::{Seen, World};

/// A slot that comes now. Far from the next one of its schedule, whatever the day.
const DUE: &str = "update monitors set next_slot = date_trunc('minute', now()) where tenant_id = $1 and next_slot is not null";

pub fn body(name: &str) -> Value {
    json!({
        "name": name, "schedule": {"cron": "0 0 29 2 *", "timezone": "UTC"}, "max_requests_per_month": 50,
        "scan": {
            "endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR"},
            "sweep": {"departure_date": ["2030-01-01", "2030-01-02"]}
        },
        "alerts": [{"type": "price_below", "amount": 200}]
    })
}

/// The caller's word.
pub async fn play(world: &mut World) -> Seen {
    world.warm().await?;
    let first = id(&world.once("make", "/v1/monitors", body("first")).await?)?;
    world.once("make", "/v1/monitors", body("first")).await?;
    let second = id(&world.post("/v1/monitors", body("second")).await?)?;
    for query in ["", "?limit=1", "?status=active", "?status=paused"] {
        world.get(&format!("/v1/monitors{query}")).await?;
    }
    let path = format!("/v1/monitors/{first}");
    world
        .ask(
            "PATCH",
            &path,
            Some(json!({"name": "renamed", "max_requests_per_month": 20})),
        )
        .await?;
    world
        .ask(
            "PATCH",
            &path,
            Some(json!({"schedule": {"cron": "0 0 28 2 *", "timezone": "Asia/Tokyo"}})),
        )
        .await?;
    world.once("run", &format!("{path}/run"), json!({})).await?;
    world.once("run", &format!("{path}/run"), json!({})).await?;
    world.post(&format!("{path}/run"), json!({})).await?;
    world.finish(|_| Comes::Price(210)).await?;
    world.get(&path).await?;
    world.get(&format!("{path}/slots")).await?;
    world.get("/v1/usage?group=monitor").await?;
    world.get(&format!("/v1/scans?monitor_id={first}")).await?;
    for word in ["pause", "pause", "resume", "resume"] {
        world.ask("POST", &format!("{path}/{word}"), None).await?;
    }
    world
        .once("again", &format!("{path}/resume"), json!({}))
        .await?;
    world
        .once("again", &format!("{path}/resume"), json!({}))
        .await?;
    world.ask("DELETE", &path, None).await?;
    world.ask("DELETE", &path, None).await?;
    world.get(&format!("{path}/slots")).await?;
    world.get(&format!("/v1/monitors/{second}")).await?;
    Ok(())
}

/// What becomes of slots.
pub async fn slots(world: &mut World) -> Seen {
    world.warm().await?;
    let made = id(&world.post("/v1/monitors", body("ticks")).await?)?;
    let slots = format!("/v1/monitors/{made}/slots");
    world.arrange(DUE).await?;
    world.tick().await?;
    world.get(&slots).await?;
    world
        .arrange("update monitor_slots set slot = slot - interval '6 minutes' where tenant_id = $1")
        .await?;
    world.arrange(DUE).await?;
    // Its predecessor runs.
    world.tick().await?;
    world
        .finish(|at| [Comes::Price(190), Comes::Empty][at % 2])
        .await?;
    // It is judged.
    world.tick().await?;
    world.get(&slots).await?;
    let alerts = world.get(&format!("/v1/monitors/{made}/alerts")).await?;
    let alert = alerts["data"][0]["id"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    for query in [
        "",
        "?limit=1",
        "?type=price_below",
        "?type=stale",
        "?since=2026-01-01T00:00:00Z",
    ] {
        world.get(&format!("/v1/alerts{query}")).await?;
    }
    world.get(&format!("/v1/alerts?monitor_id={made}")).await?;
    world.get(&format!("/v1/alerts/{alert}")).await?;
    world
        .ask(
            "PATCH",
            &format!("/v1/monitors/{made}"),
            Some(json!({"alerts": [{"type": "price_below", "amount": 201}]})),
        )
        .await?;
    let page = world.get(&format!("{slots}?outcome=ran")).await?;
    let scan = page["data"][0]["scan_id"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    world
        .ask("DELETE", &format!("/v1/scans/{scan}"), None)
        .await?;
    world.get(&format!("/v1/monitors/{made}")).await?;
    world.get(&format!("{slots}?limit=1")).await?;
    world.arrange("update lanes set paused_until = 'infinity', pause_reason = 'key_rejected' where tenant_id = $1").await?;
    world
        .arrange(
            "update monitor_slots set slot = slot - interval '12 minutes' where tenant_id = $1",
        )
        .await?;
    world.arrange(DUE).await?;
    world.get(&format!("/v1/monitors/{made}")).await?;
    world.tick().await?;
    world
        .ask("POST", &format!("/v1/monitors/{made}/resume"), None)
        .await?;
    world
        .arrange("update monitors set max_requests_per_month = 3 where tenant_id = $1")
        .await?;
    // So far that none comes to where another was, in whatever order they are moved.
    world
        .arrange(
            "update monitor_slots set slot = slot - interval '30 minutes' where tenant_id = $1",
        )
        .await?;
    world.arrange(DUE).await?;
    world.tick().await?;
    world.get(&slots).await?;
    Ok(())
}

/// Monitors that only the twin has are what nobody has, and count for nothing.
pub async fn aliens(world: &mut World) -> Seen {
    world.warm().await?;
    let alien = world
        .foreign(
            "select monitor_id from isolation.own_monitors limit 1",
            "mon",
        )
        .await?;
    let path = format!("/v1/monitors/{alien}");
    for path in [
        path.clone(),
        format!("{path}/slots"),
        format!("/v1/scans?monitor_id={alien}"),
    ] {
        world.get(&path).await?;
    }
    world
        .ask("PATCH", &path, Some(json!({"name": "mine"})))
        .await?;
    for word in ["pause", "resume", "run"] {
        world.ask("POST", &format!("{path}/{word}"), None).await?;
    }
    world.ask("DELETE", &path, None).await?;
    world
        .beside(
            "insert into monitors select tenant_id, md5(n::text)::uuid, name, cron, timezone, scan, api, rules, \
             max_requests_per_month, paused, next_slot, not_before, grant_id, created_at, updated_at \
             from monitors cross join generate_series(1, 1000) n where tenant_id = $1",
        )
        .await?;
    world.post("/v1/monitors", body("first")).await?;
    Ok(())
}

/// The twin's scans have ended.
const ENDED: &str = "update scans set finished_at = now(), status = 'completed' where tenant_id = $1 and finished_at is null";

/// Runs that go on, have ended or wait to be judged are another's, however alike.
pub async fn runs(world: &mut World) -> Seen {
    const GOES_ON: &str = "with monitors as (update monitors set next_slot = '2999-01-01' where tenant_id = $1) \
        update scans set finished_at = null, status = 'running' where tenant_id = $1 and monitor_id is not null";
    world.warm().await?;
    let made = id(&world.post("/v1/monitors", body("runs")).await?)?;
    world.arrange(DUE).await?;
    world.beside(GOES_ON).await?;
    world.tick_alone().await?;
    world.beside(ENDED).await?;
    world.tick().await?;
    world.finish(|_| Comes::Price(190)).await?;
    // Another process is at the monitor.
    world.locked("select from monitors where tenant_id = $1 for update");
    world.tick().await?;
    // An earlier run waits to be judged.
    world
        .beside("update monitor_slots set slot = slot - interval '1 hour' where tenant_id = $1")
        .await?;
    world.tick_alone().await?;

    world
        .arrange("update monitor_slots set slot = slot - interval '3 hours' where tenant_id = $1")
        .await?;
    world.arrange(DUE).await?;
    world.beside(GOES_ON).await?;
    world.tick_alone().await?;
    world.finish(|_| Comes::Price(180)).await?;
    // An earlier run goes on: the later one is judged before it.
    world.order(order(1, &json!({}))).await?;
    world
        .arrange(
            "insert into monitor_slots (tenant_id, monitor_id, slot, kind, outcome, scan_id, decided_at) \
             select m.tenant_id, m.monitor_id, m.slot - interval '1 hour', m.kind, 'ran', s.scan_id, m.decided_at \
             from monitor_slots m join scans s on s.tenant_id = m.tenant_id and s.finished_at is null \
             where m.tenant_id = $1 and m.judged_at is null",
        )
        .await?;
    world.beside(ENDED).await?;
    world.tick_alone().await?;
    world.get(&format!("/v1/monitors/{made}/slots")).await?;
    Ok(())
}

/// A slot comes while the run before goes on: whether that is answered is said by one's own slots, runs and searches.
pub async fn overlaps(world: &mut World) -> Seen {
    world.warm().await?;
    let mut stale = body("stale");
    stale["alerts"] = json!([{"type": "stale", "runs": 1}]);
    let made = id(&world.post("/v1/monitors", stale).await?)?;
    world.arrange(DUE).await?;
    world.tick().await?;
    // Answered since the slot before; the twin's came later than the answer.
    world
        .arrange("update monitor_slots set slot = slot - interval '1 hour' where tenant_id = $1")
        .await?;
    world
        .arrange(
            "update scan_items i set state = 'done', search_status = 'ok', observed_at = now() - interval '30 minutes' \
             from scans s where s.tenant_id = $1 and s.monitor_id is not null \
             and i.tenant_id = s.tenant_id and i.scan_id = s.scan_id and i.position = 0",
        )
        .await?;
    world.arrange(DUE).await?;
    // Never due itself, as it is locked.
    world
        .beside(
            "with monitors as (update monitors set next_slot = '2999-01-01' where tenant_id = $1) \
             update monitor_slots set slot = slot + interval '50 minutes' where tenant_id = $1",
        )
        .await?;
    world.tick_alone().await?;
    world.get(&format!("/v1/monitors/{made}/slots")).await?;
    // Not answered since; the twin's run is.
    world
        .arrange(
            "update monitor_slots set slot = slot - interval '15 minutes' where tenant_id = $1",
        )
        .await?;
    world
        .arrange("update scan_items set observed_at = now() - interval '3 hours' where tenant_id = $1 and state = 'done'")
        .await?;
    world.arrange(DUE).await?;
    world
        .beside(
            "with monitors as (update monitors set next_slot = '2999-01-01' where tenant_id = $1) \
             update scan_items set state = 'done', search_status = 'ok', observed_at = now() where tenant_id = $1",
        )
        .await?;
    world.tick_alone().await?;
    world.get(&format!("/v1/monitors/{made}/slots")).await?;
    Ok(())
}

/// What judges a run, and what rules remember, is another's, however alike.
pub async fn judged(world: &mut World) -> Seen {
    world.warm().await?;
    let mut plain = body("without rules");
    plain.as_object_mut().unwrap().remove("alerts");
    let plain = id(&world.post("/v1/monitors", plain).await?)?;
    world
        .post(&format!("/v1/monitors/{plain}/run"), json!({}))
        .await?;
    // It goes on, and there is no rule that would look.
    world.beside(ENDED).await?;
    world.tick_alone().await?;
    world.finish(|_| Comes::Price(190)).await?;
    world.tick_alone().await?;
    world.get(&format!("/v1/monitors/{plain}/slots")).await?;

    let first = id(&world.post("/v1/monitors", body("first")).await?)?;
    world
        .post(&format!("/v1/monitors/{first}/run"), json!({}))
        .await?;
    world.finish(|_| Comes::Price(190)).await?;
    world.tick_alone().await?;
    // By the same rule, which remembers nothing yet; the twin's has fired.
    let second = id(&world.post("/v1/monitors", body("second")).await?)?;
    world
        .post(&format!("/v1/monitors/{second}/run"), json!({}))
        .await?;
    world.finish(|_| Comes::Price(190)).await?;
    world
        .beside(
            "insert into rule_states select r.tenant_id, m.monitor_id, r.rule, r.states \
             from rule_states r join monitors m on m.tenant_id = r.tenant_id where r.tenant_id = $1 on conflict do nothing",
        )
        .await?;
    world.tick_alone().await?;
    world.get("/v1/alerts").await?;

    // It searches something else now: what it runs is not judged any more.
    world
        .post(&format!("/v1/monitors/{second}/run"), json!({}))
        .await?;
    let mut scan = body("second")["scan"].take();
    scan["request"]["to_airport"] = json!("JFK");
    world
        .ask(
            "PATCH",
            &format!("/v1/monitors/{second}"),
            Some(json!({"scan": scan})),
        )
        .await?;
    world.get(&format!("/v1/monitors/{second}/slots")).await?;
    Ok(())
}
