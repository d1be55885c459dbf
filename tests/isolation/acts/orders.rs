//! Orders, their repetition and their limits; every way to read.

use serde_json::json;

use super::{id, order};
use crate::isolation::hand::Comes;
use crate::isolation::world::{Business, Seen, World};
use farescan::queue::hold::Cause;
use farescan::tenants::Keyring;
use farescan::tenants::rewrap::rewrap;

/// The first orders of a caller that nobody knows yet.
pub async fn play(world: &mut World) -> Seen {
    world
        .post("/v1/scans/preview", order(3, &json!({})))
        .await?;
    let first = order(
        4,
        &json!({"label": "first", "tags": ["a", "b"], "retry": {"max_attempts": 2, "delay_seconds": 60}}),
    );
    let scan = id(&world.once("life", "/v1/scans", first.clone()).await?)?;
    world.once("life", "/v1/scans", first).await?;
    world
        .once("life", "/v1/scans", order(2, &json!({})))
        .await?;
    // One at a time until the marketplace has accepted the key.
    world.post("/v1/scans", order(1, &json!({}))).await?;
    world
        .post("/v1/scans/preview", order(3, &json!({})))
        .await?;
    world.get("/v1/scans").await?;

    let claims = world.claim(2).await?;
    world.begin(&claims).await?;
    world.begin(&claims).await?;
    world.second_place(claims[0].claim).await?;
    world.open_key(&claims[0]).await?;
    world.get(&format!("/v1/scans/{scan}")).await?;
    world
        .record(&[
            (&claims[0], Comes::Price(200)),
            (&claims[1], Comes::Degraded),
        ])
        .await?;
    world.get(&format!("/v1/scans/{scan}")).await?;
    world
        .finish(|at| [Comes::Partial(150), Comes::Refused][at % 2])
        .await?;
    world.get(&format!("/v1/scans/{scan}")).await?;
    world
        .arrange(
            "update scan_items set not_before = now() where tenant_id = $1 and state = 'delayed'",
        )
        .await?;
    world.release(farescan::contract::Api::Flights).await?;
    world.finish(|_| Comes::Price(120)).await?;
    world.get(&format!("/v1/scans/{scan}")).await?;
    Ok(())
}

/// What can be read of two scans with every outcome.
pub async fn reading(world: &mut World) -> Seen {
    let outcomes = [
        Comes::Price(200),
        Comes::Empty,
        Comes::Degraded,
        Comes::Partial(150),
        Comes::Refused,
        Comes::Price(180),
    ];
    world.warm().await?;
    let scan = world
        .order(order(6, &json!({"label": "read", "tags": ["x"]})))
        .await?;
    world.finish(|at| outcomes[at % outcomes.len()]).await?;
    let other = world.order(order(6, &json!({}))).await?;
    let claims = world.claim(3).await?;
    world.begin_beside(&claims).await?;
    world
        .record_beside(&[
            (&claims[0], Comes::Price(190)),
            (&claims[1], Comes::Degraded),
        ])
        .await?;
    world.give_up(&claims[2..]).await?;

    let page = world.get("/v1/scans?limit=2").await?;
    world
        .get(&format!(
            "/v1/scans?limit=2&cursor={}",
            page["next_cursor"].as_str().unwrap_or_default()
        ))
        .await?;
    for query in [
        "status=incomplete",
        "endpoint=flights/oneway",
        "endpoint=flights/roundtrip",
        "tag=x",
        "tag=twin",
    ] {
        world.get(&format!("/v1/scans?{query}")).await?;
    }
    for query in [
        "",
        "?limit=2",
        "?state=failed",
        "?search_status=ok",
        "?reason=upstream_timeout",
        "?sort=price",
        "?expand=answer",
    ] {
        world.get(&format!("/v1/scans/{scan}/items{query}")).await?;
    }
    for sort in ["position", "price"] {
        let page = world
            .get(&format!("/v1/scans/{scan}/items?limit=2&sort={sort}"))
            .await?;
        let cursor = page["next_cursor"].as_str().unwrap_or_default();
        world
            .get(&format!(
                "/v1/scans/{scan}/items?limit=2&sort={sort}&cursor={cursor}"
            ))
            .await?;
    }
    let items = world
        .get(&format!("/v1/scans/{scan}/items?sort=price"))
        .await?;
    let item = id(&items["data"][0])?;
    for path in ["", "?expand=answer", "/attempts"] {
        world.get(&format!("/v1/items/{item}{path}")).await?;
    }
    world
        .get(&format!("/v1/scans/{scan}/grid?rows=departure_date"))
        .await?;
    world
        .get(&format!("/v1/scans/{scan}/compare/{other}"))
        .await?;
    world
        .get(&format!("/v1/scans/{other}/compare/{scan}"))
        .await?;

    exports(world, &scan).await?;
    strangers(world, &scan).await
}

/// Items and prices as files, and what changed as a stream.
async fn exports(world: &mut World, scan: &str) -> Seen {
    for media in ["text/csv", "application/x-ndjson"] {
        let accept = [("accept", media)];
        for query in ["", "?sort=price", "?search_status=ok", "?expand=answer"] {
            world
                .ask_with(
                    "GET",
                    &format!("/v1/scans/{scan}/items{query}"),
                    &accept,
                    None,
                )
                .await?;
        }
        world
            .ask_with(
                "GET",
                "/v1/history/flights?from_airport=TLV&to_airport=LHR",
                &accept,
                None,
            )
            .await?;
    }
    world
        .ask_with(
            "GET",
            &format!("/v1/scans/{scan}/events"),
            &[("last-event-id", "0")],
            None,
        )
        .await?;
    world
        .ask_with(
            "GET",
            &format!("/v1/scans/{scan}/events"),
            &[("last-event-id", "3")],
            None,
        )
        .await?;
    Ok(())
}

/// What only the twin has is what nobody has, also for a caller who has no lane of its kind.
pub async fn stranger(world: &mut World) -> Seen {
    let scan = world.order(super::history::hotels()).await?;
    world.finish(|_| Comes::Price(400)).await?;
    strangers(world, &scan).await
}

/// The master key is changed while a scan runs.
pub async fn keys(world: &mut World) -> Seen {
    world.warm().await?;
    world.order(order(2, &json!({}))).await?;
    let claims = world.claim(1).await?;
    let pool = world.pool.clone();
    let ring = Keyring::parse(&format!(
        "next:{},test:{}",
        "66".repeat(32),
        "5a".repeat(32)
    ))
    .unwrap();
    world
        .work_on(Business::All, "rewrap", async {
            Ok::<_, sqlx::Error>(rewrap(&pool, &ring).await?.strangers)
        })
        .await?;
    world.open_key_with(&ring, &claims[0]).await
}

async fn strangers(world: &mut World, scan: &str) -> Seen {
    let alien = world
        .foreign(
            "select scan_id from isolation.own_scans order by scan_id limit 1",
            "scn",
        )
        .await?;
    let piece = world
        .foreign(
            "select item_id from isolation.own_attempts order by item_id limit 1",
            "itm",
        )
        .await?;
    for path in [
        "",
        "/items",
        "/items?sort=price",
        "/grid?rows=departure_date",
        "/events",
    ] {
        world.get(&format!("/v1/scans/{alien}{path}")).await?;
    }
    for media in ["text/csv", "application/x-ndjson"] {
        world
            .ask_with(
                "GET",
                &format!("/v1/scans/{alien}/items"),
                &[("accept", media)],
                None,
            )
            .await?;
    }
    world.hold(&alien, Cause::BudgetSpent).await?;
    world
        .get(&format!("/v1/scans/{scan}/compare/{alien}"))
        .await?;
    world
        .get(&format!("/v1/scans/{alien}/compare/{scan}"))
        .await?;
    for path in ["", "?expand=answer", "/attempts"] {
        world.get(&format!("/v1/items/{piece}{path}")).await?;
    }
    for word in ["pause", "resume", "cancel"] {
        world
            .ask("POST", &format!("/v1/scans/{alien}/{word}"), None)
            .await?;
    }
    world
        .post(
            &format!("/v1/scans/{alien}/retry"),
            json!({"search_status": ["degraded"]}),
        )
        .await?;
    world
        .ask("DELETE", &format!("/v1/scans/{alien}"), None)
        .await?;
    Ok(())
}
