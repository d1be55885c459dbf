//! The canary: a key is sent through every carrier to every route, well and badly, while the marketplace behaves as badly as it can and
//! says the key back in headers and bodies. Everything is logged at trace, and Postgres logs every statement with its parameters. Then the
//! key is looked for, in every form in which it could lie somewhere: nothing of it may be found.
//!
//! The search is proved by planting: the same search finds a key that was put into each of the places.
//!
//! Not searched: the memory of the service, where a key must be while it is used, and encodings that the marketplace itself might make of
//! a key that it says back (security.md, rule 13; docs/decisions/0008).

mod finder;
mod places;
mod requests;
mod service;

use farescan::contract::Api;
use serde_json::{Value, json};

use self::finder::Finder;
use self::places::Places;
use self::requests::{Rounds, every_bad_body, every_carrier, every_manner, every_route};
use self::service::Service;
use crate::support::reply::Reply;
use crate::support::text;
use crate::support::upstream::{Call, ScriptedServer, fare};

/// How the marketplace answers; each has a key of its own, so that each caller has lanes of his own.
const MANNERS: [&str; 15] = [
    "good",
    "echo",
    "partial",
    "refused",
    "unprocessable",
    "rejected",
    "unsubscribed",
    "limited",
    "broken",
    "incomplete",
    "missing",
    "moved",
    "garbage",
    "reset",
    "hang",
];

/// A key for each manner. Their core is random; what follows has characters that are written otherwise in JSON and in URLs.
fn keys() -> Vec<String> {
    MANNERS
        .iter()
        .map(|manner| {
            format!(
                "{:016x}{:016x}{manner}/+\"%",
                rand::random::<u64>(),
                rand::random::<u64>()
            )
        })
        .collect()
}

fn answer(manner: &str, call: &Call) -> Reply {
    let key = &call.key;
    let said = json!({"message": format!("key {key} is what you sent"), "detail": [{"msg": key, "type": key}]});
    let rude = |status: u16| Reply::status(status).with_json(said.clone());
    let reply = match manner {
        "good" => return crate::support::upstream::default_reply(call),
        "echo" => {
            let mut row = fare(164, &call.body);
            row["airline"] = json!(key);
            row[key.as_str()] = json!(key);
            let hotel = json!({"name": key, "available": true, "price": 420, "properties": [{"name": key, "price": 1}], "rooms": [{"room_type": key,
                "price_as_number": 4}], "hotel_booking_id": key, "matched_name": key});
            Reply::json(
                if call
                    .endpoint
                    .is_some_and(|endpoint| endpoint.api() == Api::Flights)
                {
                    json!([row])
                } else {
                    hotel
                },
            )
        }
        "partial" => {
            Reply::json(json!([fare(120, &call.body)])).header("x-search-status", "partial")
        }
        "refused" => rude(400),
        "unprocessable" => rude(422),
        "rejected" => rude(401),
        "unsubscribed" => rude(403),
        "limited" => rude(429).header("retry-after", key),
        "broken" => rude(500),
        "incomplete" => Reply::search_incomplete(key),
        "missing" => rude(404),
        "moved" => {
            Reply::status(302).header("location", &format!("https://elsewhere.example/?key={key}"))
        }
        "garbage" => Reply::text(format!("<html>{key}</html>")).header("content-type", key),
        "reset" => return Reply::reset(),
        _ => return Reply::hang(),
    };
    let echoes = [
        "x-search-reason",
        "x-search-fallback",
        "x-plan-echo",
        "x-ratelimit-requests-limit",
        "x-request-id",
        "set-cookie",
    ];
    echoes
        .iter()
        .fold(reply, |reply, name| reply.header(name, key))
}

/// A marketplace whose behaviour the key selects.
async fn marketplace() -> ScriptedServer {
    let upstream = ScriptedServer::start().await;
    upstream.answer(|call| {
        let manner = MANNERS
            .iter()
            .find(|manner| call.key.contains(*manner))
            .copied()
            .unwrap_or("good");
        answer(manner, call)
    });
    upstream
}

/// A scan with each key; gives one scan and one of its items.
async fn scans(service: &Service, keys: &[String], rounds: &mut Rounds) -> [String; 2] {
    let order = json!({
        "endpoint": "flights/oneway",
        "request": {"from_airport": "TLV", "to_airport": "LHR"},
        "sweep": {"departure_date": ["2030-01-01", "2030-01-02", "2030-01-03"]},
        "retry": {"max_attempts": 2, "delay_seconds": 1}
    });
    let mut named = [
        "scn_00000000000000000000000000000000".to_owned(),
        "itm_00000000000000000000000000000000".to_owned(),
    ];
    for (key, manner) in keys.iter().zip(MANNERS) {
        let ordered = rounds
            .json(service, "POST", "/v1/scans", key, Some(&order))
            .await;
        let Some(id) = ordered["id"].as_str() else {
            panic!("{manner}: {ordered}")
        };
        let settled = |scan: &Value| {
            let waits = scan["status"] == "running" && scan["items"]["pending"] != 0;
            !waits && scan["status"] != "queued" && scan["items"]["running"] == 0
        };
        rounds
            .until(service, &format!("/v1/scans/{id}"), key, manner, settled)
            .await;
        let items = rounds
            .json(
                service,
                "GET",
                &format!("/v1/scans/{id}/items?expand=answer"),
                key,
                None,
            )
            .await;
        let item = text(&items["data"][0]["id"]);
        rounds
            .json(
                service,
                "GET",
                &format!("/v1/items/{item}/attempts"),
                key,
                None,
            )
            .await;
        rounds
            .json(
                service,
                "GET",
                &format!("/v1/scans/{id}/grid?rows=departure_date"),
                key,
                None,
            )
            .await;
        if manner == "good" {
            named = [id.to_owned(), item];
        }
    }
    named
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_nowhere_but_where_it_must_be() {
    let keys = keys();
    let finder = Finder::of(&keys).await;
    let upstream = marketplace().await;
    let place = crate::support::db::world_readable_folder();
    let mut rounds = Rounds::default();
    let mut places = Places::default();

    let service = Service::start(&upstream, place.path(), "json").await;
    service.log_every_statement().await;
    let named = scans(&service, &keys, &mut rounds).await;
    every_manner(&service, &named, &keys, &mut rounds).await;
    every_bad_body(&service, &named, &keys[0], &mut rounds).await;
    every_route(&service, &named, &keys[0], &mut rounds).await;
    places.metrics(&service).await;
    places.processes(&service);
    let service = service.restart(&upstream, "text").await;
    every_manner(&service, &named, &keys, &mut rounds).await;
    every_carrier(&service, &named, &keys[0], &mut rounds).await;
    places.metrics(&service).await;
    places.database(&service).await;
    service.take_database_away().await;
    every_route(&service, &named, &keys[0], &mut rounds).await;
    service.bring_database_back().await;
    let service = service.restart(&upstream, "json").await;
    places.database(&service).await;
    places.processes(&service);
    places.answers(&rounds);
    places.logs(&service);
    places.folder(&service).await;

    let hits = places.search(&finder);
    println!(
        "{} requests, {} calls to the marketplace, {} keys in {} forms; {} bytes in {} places:\n{places}{} hits",
        rounds.requests,
        upstream.count(),
        keys.len(),
        finder.forms(),
        places.bytes(),
        places.count(),
        hits.len()
    );
    assert!(
        rounds.requests > 1000 && places.bytes() > 1_000_000,
        "there was something to look for, and where"
    );
    assert!(hits.is_empty(), "{hits:#?}");

    // Planted in each place, it is found there: the search can fail.
    let planted = &keys[0];
    service.plant(planted).await;
    rounds.plant(&service, planted).await;
    let thief = service.plant_process(planted);
    let mut places = Places::default();
    places.metrics(&service).await;
    places.processes_of(thief.id());
    places.database(&service).await;
    places.answers(&rounds);
    places.logs(&service);
    places.folder(&service).await;
    drop(thief);
    let found = places.search(&finder).join("\n");
    for place in [
        "answers",
        "log",
        "table planted",
        "data",
        "postgres.log",
        "cmdline",
        "environ",
        "stored answers",
    ] {
        assert!(
            found.contains(place),
            "a planted key is not found in {place}: {found}"
        );
    }
}
