//! A marketplace that does not answer: its circuit opens, lets a probe through, and closes.

use serde_json::json;

use super::order;
use crate::isolation::hand::Comes;
use crate::isolation::world::{Seen, World};

pub async fn play(world: &mut World) -> Seen {
    world.warm().await?;
    let scan = world.order(order(4, &json!({}))).await?;
    let claims = world.claim(2).await?;
    world
        .run("open the circuit", "select open_circuit('flights')::text")
        .await?;
    world.begin(&claims[..1]).await?;
    // The lane waits for the probe.
    world.claim(2).await?;
    world.get(&format!("/v1/scans/{scan}")).await?;
    world
        .arrange(
            "update circuits set probe_at = now() where api = 'flights' and $1::uuid is not null",
        )
        .await?;
    world.begin(&claims[..1]).await?;
    world.begin(&claims[1..]).await?;
    world.second_place(claims[0].claim).await?;
    world
        .run("close the circuit", "select close_circuit('flights')::text")
        .await?;
    world
        .run(
            "open the other circuit",
            "select open_circuit('hotels')::text",
        )
        .await?;
    world
        .beside("update scan_items set api = 'hotels' where tenant_id = $1")
        .await?;
    world.second_place(claims[0].claim).await?;
    world.record(&[(&claims[0], Comes::Price(140))]).await?;
    world.finish(|_| Comes::Price(130)).await?;
    Ok(())
}
