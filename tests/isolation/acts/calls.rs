//! Calls, seen closely: what is told of a claim, what a lane is told, whose price is the best, and answers after the end.

use farescan::contract::Api;
use farescan::ids::AttemptId;
use farescan::queue::hold::Cause;
use serde_json::json;

use super::order;
use crate::isolation::hand::Comes;
use crate::isolation::world::{Seen, World};

/// Claims and attempts that are another's are not one's own, however alike.
pub async fn begun(world: &mut World) -> Seen {
    world.warm().await?;
    world.order(order(3, &json!({}))).await?;
    let claims = world.claim(3).await?;
    world.begin_stale_beside(&claims[..1]).await?;
    let asked: Vec<_> = claims[..2]
        .iter()
        .map(|claimed| (claimed.claim, AttemptId::new()))
        .collect();
    world.begin_as(&asked).await?;
    world.begin_as(&asked).await?;
    // By this id the twin's call is on record.
    let of_the_twin: Vec<_> = asked
        .iter()
        .map(|(claim, _)| (*claim, AttemptId::from(claim.item.uuid())))
        .collect();
    world.begin_as(&of_the_twin).await?;
    world
        .record(&[(&claims[0], Comes::Price(120)), (&claims[1], Comes::Empty)])
        .await?;
    // The twin's calls go on.
    world.beside("update scan_items set state = 'calling', worker_id = 1 where tenant_id = $1 and state = 'done'").await?;
    world.begin_as(&asked).await?;
    Ok(())
}

/// The best price is one of the scan's own, also when the item that had it is asked again.
pub async fn best(world: &mut World) -> Seen {
    world.warm().await?;
    world.order(order(2, &json!({}))).await?;
    world
        .finish(|at| [Comes::Price(60), Comes::Price(50)][at % 2])
        .await?;
    let scan = world.order(order(3, &json!({}))).await?;
    world
        .finish(|at| [Comes::Price(200), Comes::Partial(100), Comes::Price(150)][at % 3])
        .await?;
    world
        .post(
            &format!("/v1/scans/{scan}/retry"),
            json!({"search_status": ["partial"]}),
        )
        .await?;
    let claims = world.claim(1).await?;
    world.begin(&claims).await?;
    // The twin's are cheaper, and no currency keeps them out.
    world
        .beside(
            "with scans as (update scans set best_currency = null where tenant_id = $1) \
             update scan_items set state = 'done', worker_id = null, best_price = 1, currency = 'USD' where tenant_id = $1",
        )
        .await?;
    world.record(&[(&claims[0], Comes::Empty)]).await?;
    world.get(&format!("/v1/scans/{scan}")).await?;
    Ok(())
}

/// An answer that comes after its scan has ended without it.
pub async fn after_the_end(world: &mut World) -> Seen {
    world.warm().await?;
    let scan = world.order(order(1, &json!({}))).await?;
    let claims = world.claim(1).await?;
    world.begin(&claims).await?;
    world.give_up(&claims).await?;
    world.get(&format!("/v1/scans/{scan}")).await?;
    // A newer call of the twin's takes nothing from it.
    world
        .beside("update attempts set number = number + 5 where tenant_id = $1")
        .await?;
    world.record(&[(&claims[0], Comes::Price(150))]).await?;
    world.get(&format!("/v1/scans/{scan}")).await?;
    world
        .get("/v1/history/flights?from_airport=TLV&to_airport=LHR")
        .await?;
    Ok(())
}

/// A scan whose key has expired pauses, and whoever watches a scan hears of its own lane alone.
pub async fn told(world: &mut World) -> Seen {
    world.warm().await?;
    let scan = world.order(order(3, &json!({}))).await?;
    let claims = world.claim(2).await?;
    world.begin(&claims).await?;
    // Another caller's lane has news; nobody takes the lock of a lane that has none.
    world
        .beside("update lanes set full_up = true where tenant_id = $1")
        .await?;
    world.locked("select from lanes where tenant_id = $1 for update");
    world.tell_nothing(Api::Flights, &claims[0]).await?;
    world.listen().await?;
    world.record(&[(&claims[0], Comes::Rejected)]).await?;
    world.heard().await?;
    world
        .arrange("update key_grants set expires_at = now() - interval '1 minute' where tenant_id = $1 and wiped_at is null")
        .await?;
    // The twin's has not, and is no reason to think that the key could not be opened.
    world.open_key(&claims[0]).await?;
    world.hold(&scan, Cause::KeyGone).await?;
    world.get(&format!("/v1/scans/{scan}")).await?;
    Ok(())
}
