//! The caller's word over scans, budgets, and lanes that stop.

use serde_json::json;

use super::order;
use crate::isolation::hand::Comes;
use crate::isolation::world::{Noticed, Seen, World};
use farescan::queue::hold::Cause;
use farescan::search::PlanQuota;

/// Pause, resume, retry, cancel, delete.
pub async fn play(world: &mut World) -> Seen {
    world.warm().await?;
    let scan = world
        .order(order(
            5,
            &json!({"retry": {"max_attempts": 2, "delay_seconds": 3600}}),
        ))
        .await?;
    let claims = world.claim(3).await?;
    world.begin(&claims[..2]).await?;
    world.record(&[(&claims[0], Comes::Degraded)]).await?;
    for word in ["pause", "pause"] {
        world
            .ask("POST", &format!("/v1/scans/{scan}/{word}"), None)
            .await?;
    }
    // Its answer comes while the scan is paused.
    world.record(&[(&claims[1], Comes::Price(210))]).await?;
    world
        .once("again", &format!("/v1/scans/{scan}/resume"), json!({}))
        .await?;
    world
        .once("again", &format!("/v1/scans/{scan}/resume"), json!({}))
        .await?;
    world
        .finish(|at| [Comes::Degraded, Comes::Price(190), Comes::Refused][at % 3])
        .await?;
    world
        .arrange(
            "update scan_items set not_before = now() where tenant_id = $1 and state = 'delayed'",
        )
        .await?;
    world.release(farescan::contract::Api::Flights).await?;
    world.finish(|_| Comes::Degraded).await?;

    let retry = json!({"search_status": ["degraded", "failed"]});
    world
        .once("retry", &format!("/v1/scans/{scan}/retry"), retry.clone())
        .await?;
    world
        .once("retry", &format!("/v1/scans/{scan}/retry"), retry)
        .await?;
    world
        .ask("POST", &format!("/v1/scans/{scan}/pause"), None)
        .await?;
    world
        .ask("POST", &format!("/v1/scans/{scan}/resume"), None)
        .await?;
    let claims = world.claim(1).await?;
    world.begin(&claims).await?;
    world
        .ask("DELETE", &format!("/v1/scans/{scan}"), None)
        .await?;
    world
        .ask("POST", &format!("/v1/scans/{scan}/cancel"), None)
        .await?;
    world
        .ask("POST", &format!("/v1/scans/{scan}/cancel"), None)
        .await?;
    // An answer that was paid for is kept after the cancel.
    world.record(&[(&claims[0], Comes::Price(100))]).await?;
    world.get(&format!("/v1/scans/{scan}")).await?;
    world
        .ask("DELETE", &format!("/v1/scans/{scan}"), None)
        .await?;
    world.get(&format!("/v1/scans/{scan}")).await?;
    Ok(())
}

/// Budgets, places in flight, a key that is rejected, a plan that is used up.
pub async fn pace(world: &mut World) -> Seen {
    world.warm().await?;
    world
        .arrange("update lanes set max_in_flight = 3 where tenant_id = $1")
        .await?;
    let scan = world.order(order(6, &json!({"max_requests": 6}))).await?;
    let claims = world.claim(2).await?;
    world.begin(&claims).await?;
    world.second_place(claims[0].claim).await?;
    world.second_place(claims[1].claim).await?;
    world.claim(5).await?;
    let plan = PlanQuota {
        limit: Some(100),
        remaining: Some(20),
        reset_seconds: Some(3600),
        ..PlanQuota::default()
    };
    world
        .record_with(
            &[
                (&claims[0], Comes::Price(300)),
                (&claims[1], Comes::Rejected),
            ],
            plan,
        )
        .await?;
    world.get(&format!("/v1/scans/{scan}")).await?;
    world
        .post("/v1/scans/preview", order(3, &json!({})))
        .await?;
    world.claim(5).await?;
    world
        .ask("POST", &format!("/v1/scans/{scan}/resume"), None)
        .await?;
    world.finish(|_| Comes::Price(280)).await?;
    world.hold(&scan, Cause::BudgetSpent).await?;
    world.get(&format!("/v1/scans/{scan}")).await?;
    world
        .post(
            &format!("/v1/scans/{scan}/resume"),
            json!({"max_requests": 9}),
        )
        .await?;
    world.finish(|_| Comes::Price(270)).await?;
    let scan = world.order(order(5, &json!({}))).await?;
    let claims = world.claim(1).await?;
    world.begin(&claims).await?;
    world.record(&[(&claims[0], Comes::Degraded)]).await?;
    let claims = world.claim(1).await?;
    world.hold(&scan, Cause::KeyGone).await?;
    let Some(claimed) = claims.first() else {
        return Err(Noticed("nothing was claimed".to_owned()));
    };
    world.wipe_expired(claimed).await?;
    world.hold(&scan, Cause::KeyGone).await?;
    world.begin(&claims).await?;
    // A retry brings a key, so it ends the pause.
    world
        .post(
            &format!("/v1/scans/{scan}/retry"),
            json!({"search_status": ["degraded"]}),
        )
        .await?;
    world
        .ask("POST", &format!("/v1/scans/{scan}/resume"), None)
        .await?;
    // A claimer comes to a lane that is paused.
    world
        .arrange(
            "update lanes set next_at = now(), paused_until = '2998-01-01', pause_reason = 'rate_limited' where tenant_id = $1",
        )
        .await?;
    world.claim(1).await?;
    world.arrange("update lanes set next_at = now(), paused_until = null, pause_reason = null where tenant_id = $1").await?;
    world.finish(|_| Comes::Empty).await?;
    world.get(&format!("/v1/scans/{scan}")).await?;
    Ok(())
}
