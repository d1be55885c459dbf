//! Scans in two phases.

use serde_json::json;

use super::order;
use crate::isolation::hand::Comes;
use crate::isolation::world::{Seen, World};

pub async fn play(world: &mut World) -> Seen {
    world.warm().await?;
    let strategy = json!({"strategy": {"coarse_step": 4, "refine": 1}});
    let prices = |at: usize| {
        [
            Comes::Price(300),
            Comes::Price(120),
            Comes::Price(250),
            Comes::Euros(50),
        ][at % 4]
    };
    let scan = world.order(order(13, &strategy)).await?;
    world.second_phase().await?;
    world.finish(prices).await?;
    world.get(&format!("/v1/scans/{scan}")).await?;
    world.second_phase().await?;
    world.get("/v1/scans").await?;
    world.get(&format!("/v1/scans/{scan}")).await?;
    world.finish(|_| Comes::Price(110)).await?;
    world.get(&format!("/v1/scans/{scan}")).await?;

    world
        .ask_with(
            "GET",
            &format!("/v1/scans/{scan}/events"),
            &[("last-event-id", "0")],
            None,
        )
        .await?;

    // Nothing to go by: the first phase is all.
    let empty = world.order(order(9, &strategy)).await?;
    world.finish(|_| Comes::Empty).await?;
    world.second_phase().await?;
    world.get(&format!("/v1/scans/{empty}")).await?;

    let cancelled = world.order(order(9, &strategy)).await?;
    world
        .ask("POST", &format!("/v1/scans/{cancelled}/cancel"), None)
        .await?;
    world.second_phase().await?;
    world.get(&format!("/v1/scans/{cancelled}")).await?;
    Ok(())
}
