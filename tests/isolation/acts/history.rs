//! What was seen, of fares and rates, and taking it out.

use farescan::history::days::pack_passed;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::order;
use crate::isolation::hand::Comes;
use crate::isolation::world::{Seen, World};

pub async fn play(world: &mut World) -> Seen {
    world.warm().await?;
    let older = world.order(order(3, &json!({}))).await?;
    world
        .finish(|at| [Comes::Price(200), Comes::Price(210), Comes::Empty][at % 3])
        .await?;
    let newer = world.order(order(2, &json!({}))).await?;
    world
        .finish(|at| [Comes::Price(190), Comes::Degraded][at % 2])
        .await?;
    world.order(hotels()).await?;
    world
        .finish(|at| [Comes::Price(420), Comes::Price(430)][at % 2])
        .await?;

    let route = "from_airport=TLV&to_airport=LHR";
    let page = world
        .get(&format!("/v1/history/flights?{route}&limit=2"))
        .await?;
    let cursor = page["next_cursor"].as_str().unwrap_or_default();
    world
        .get(&format!(
            "/v1/history/flights?{route}&limit=2&cursor={cursor}"
        ))
        .await?;
    world
        .get(&format!(
            "/v1/history/flights/latest?{route}&departure_from=2030-01-01&departure_to=2030-01-31"
        ))
        .await?;
    world
        .get("/v1/history/hotels?hotel_name=Grand%20Hotel")
        .await?;
    world.get("/v1/history/hotels/latest?hotel_name=Grand%20Hotel&checkin_from=2030-01-01&checkin_to=2030-01-31").await?;
    world
        .get(&format!("/v1/history/flights/series?{route}&bucket=week"))
        .await?;
    world
        .get("/v1/history/hotels/series?hotel_name=Grand%20Hotel&bucket=week")
        .await?;
    let dates = "departure_from=2030-01-01&departure_to=2030-01-05&rows=departure_date";
    world
        .get(&format!("/v1/history/flights/grid?{route}&{dates}"))
        .await?;
    let dates = "checkin_from=2030-01-01&checkin_to=2030-01-09&rows=checkin_date&columns=nights";
    world
        .get(&format!(
            "/v1/history/hotels/grid?hotel_name=Grand%20Hotel&{dates}"
        ))
        .await?;

    world
        .ask("DELETE", &format!("/v1/scans/{newer}?history=true"), None)
        .await?;
    world
        .get(&format!(
            "/v1/history/flights/latest?{route}&departure_from=2030-01-01&departure_to=2030-01-31"
        ))
        .await?;
    world
        .ask("DELETE", &format!("/v1/scans/{older}?history=true"), None)
        .await?;
    world.get(&format!("/v1/history/flights?{route}")).await?;
    Ok(())
}

/// What nobody looked at, and looks that are left when a gap was none, are another's, however alike.
pub async fn gaps(world: &mut World) -> Seen {
    const BARE: &str = "update latest_prices set price = null, observed_at = null, item_id = null, looked_at = null, \
        look_status = null, look_reason = null, look_item_id = null where tenant_id = $1";
    world.warm().await?;
    let scan = world.order(order(1, &json!({}))).await?;
    world.finish(|_| Comes::Price(200)).await?;
    world.beside(BARE).await?;
    world
        .ask("DELETE", &format!("/v1/scans/{scan}?history=true"), None)
        .await?;

    world.order(order(2, &json!({}))).await?;
    let claims = world.claim(2).await?;
    world.begin(&claims).await?;
    world.give_up(&claims).await?;
    // An answer that comes late and shows nothing: of that date no look is left, but for the twin's.
    world.record(&[(&claims[0], Comes::Refused)]).await?;
    world.beside(BARE).await?;
    world.record(&[(&claims[1], Comes::Refused)]).await?;
    world
        .get("/v1/history/flights?from_airport=TLV&to_airport=LHR")
        .await?;
    Ok(())
}

/// Days that are over are packed: each caller's own, from what he saw, and the days of the other stay as they are.
pub async fn days(world: &mut World) -> Seen {
    // The twin's are packed, so that a pass is none of its business; and it has seen more since.
    const PACKED: &str =
        "with moved as (update observations set observed_at = observed_at + interval '3 days' where tenant_id = $1)
        update series set unpacked_since = null where tenant_id = $1";
    let series = "/v1/history/flights/series?from_airport=TLV&to_airport=LHR";
    world.warm().await?;
    for price in [200, 190] {
        world.order(order(2, &json!({}))).await?;
        world.finish(|_| Comes::Price(price)).await?;
        world.beside(PACKED).await?;
        let pool = world.pool.clone();
        let tomorrow = Timestamp::now() + SignedDuration::from_hours(24);
        world
            .work("pack", async { pack_passed(&pool, tomorrow).await })
            .await?;
        world.get(series).await?;
    }
    Ok(())
}

pub fn hotels() -> serde_json::Value {
    json!({
        "endpoint": "hotels/by-name",
        "request": {"hotel_name": "Grand Hotel", "checkout_date": "2030-01-10"},
        "sweep": {"checkin_date": ["2030-01-05", "2030-01-06"]}
    })
}
