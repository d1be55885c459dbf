//! Calls that were given up, and answers that come late.

use serde_json::json;

use super::order;
use crate::isolation::hand::Comes;
use crate::isolation::world::{Seen, World};
use farescan::contract::Api;

/// Claims of a process that died.
pub async fn play(world: &mut World) -> Seen {
    world.warm().await?;
    let scan = world
        .order(order(
            6,
            &json!({"retry": {"max_attempts": 2, "delay_seconds": 3600}}),
        ))
        .await?;
    let claims = world.claim(4).await?;
    world.begin(&claims[..3]).await?;
    world.give_up(&claims).await?;
    world.get(&format!("/v1/scans/{scan}")).await?;
    world
        .record_beside(&[(&claims[1], Comes::Rejected)])
        .await?;
    // A late answer makes the further try needless; the others are tried again.
    world.record(&[(&claims[0], Comes::Price(170))]).await?;
    world
        .arrange(
            "update scan_items set not_before = now() where tenant_id = $1 and state = 'delayed'",
        )
        .await?;
    world
        .ask("POST", &format!("/v1/scans/{scan}/pause"), None)
        .await?;
    world
        .arrange(
            "update scan_items set state = 'delayed', not_before = now() where tenant_id = $1 and state = 'held' and calls > 0",
        )
        .await?;
    world.release(Api::Flights).await?;
    world
        .ask("POST", &format!("/v1/scans/{scan}/resume"), None)
        .await?;
    let again = world.claim(9).await?;
    world.begin(&again).await?;
    world.give_up(&again[..2]).await?;
    world
        .record(
            &again
                .iter()
                .map(|claimed| (claimed, Comes::Price(160)))
                .collect::<Vec<_>>(),
        )
        .await?;
    world.get(&format!("/v1/scans/{scan}")).await?;
    Ok(())
}

/// Answers after the scan was stopped or cancelled.
pub async fn late(world: &mut World) -> Seen {
    world.warm().await?;
    let scan = world.order(order(4, &json!({}))).await?;
    let claims = world.claim(4).await?;
    world.begin(&claims[..3]).await?;
    world
        .ask("POST", &format!("/v1/scans/{scan}/pause"), None)
        .await?;
    world.give_up(&claims[..1]).await?;
    world.record(&[(&claims[1], Comes::Rejected)]).await?;
    world
        .ask("POST", &format!("/v1/scans/{scan}/resume"), None)
        .await?;
    let more = world.claim(4).await?;
    world.begin(&more[..1]).await?;
    world
        .ask("POST", &format!("/v1/scans/{scan}/cancel"), None)
        .await?;
    world.record(&[(&claims[2], Comes::Rejected)]).await?;
    world.give_up(&more[..1]).await?;
    world.record(&[(&more[0], Comes::Price(90))]).await?;
    world.record(&[(&claims[0], Comes::Price(95))]).await?;
    world.get(&format!("/v1/scans/{scan}")).await?;

    world
        .arrange("update lanes set paused_until = null, pause_reason = null where tenant_id = $1")
        .await?;
    // Lost, to be tried again, and cancelled before that: the answer is kept with its attempt alone.
    let scan = world
        .order(order(
            2,
            &json!({"retry": {"max_attempts": 2, "delay_seconds": 3600}}),
        ))
        .await?;
    let claims = world.claim(2).await?;
    world.begin(&claims).await?;
    world.give_up(&claims).await?;
    world
        .ask("POST", &format!("/v1/scans/{scan}/cancel"), None)
        .await?;
    world.record_old(&claims[0], Comes::Price(80)).await?;
    world
        .get(&format!("/v1/scans/{scan}/grid?rows=departure_date"))
        .await?;
    Ok(())
}
