//! The matrix: every route with an id × one's own id, another caller's, a random one, malformed ones × what it can answer.
//!
//! The routes and their media types are read from `/openapi.json`, so a route without a case fails, and so does a case without its route.
//! Another's id answers exactly as a random one: the same status, body and headers but for the request's own id and the date, and
//! nothing moves: not a row of anybody's, not a call to the marketplace.

use std::collections::{BTreeMap, BTreeSet};

use farescan::contract::{Endpoint, Request, SearchStatus};
use farescan::history::{self, Observation, Subject};
use farescan::ids::{AlertId, ChannelId, DeliveryId, ItemId, MonitorId, ScanId};
use farescan::search::CallerKey;
use farescan::tenants;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::support::app::{HttpResponse, KEY, ring};
use crate::support::{SearchOutcome, TestService, array, fares, text};
use crate::webhooks::harness;

const OTHER: &str = "another-key-0123456789";

/// What a route's own id must name for it to be of use.
#[derive(Debug, Clone, Copy)]
enum Names {
    /// A scan that has ended.
    Ended,
    /// A scan that has not.
    Live,
    /// An item that was searched.
    Item,
    /// A monitor.
    Monitor,
    /// A monitor with a webhook.
    Webhook,
    /// A delivery to one.
    Delivery,
    /// The alerts of a rule.
    Alert,
    /// A channel.
    Channel,
}

/// One parameter of a route that is an id.
struct Case {
    route: &'static str,
    names: Names,
    /// Which of the path's parameters; the others hold an own scan.
    place: usize,
    query: &'static str,
    body: Option<fn() -> Value>,
    /// What one's own id is answered.
    own: u16,
}

const fn read(route: &'static str, names: Names) -> Case {
    Case {
        route,
        names,
        place: 0,
        query: "",
        body: None,
        own: 200,
    }
}

fn cases() -> Vec<Case> {
    vec![
        read("GET /v1/scans/{id}", Names::Live),
        Case {
            own: 204,
            ..read("DELETE /v1/scans/{id}", Names::Ended)
        },
        Case {
            body: Some(|| json!({"search_status": ["degraded"]})),
            own: 202,
            ..read("POST /v1/scans/{id}/retry", Names::Ended)
        },
        read("POST /v1/scans/{id}/pause", Names::Live),
        Case {
            body: Some(|| json!({"max_requests": 50})),
            ..read("POST /v1/scans/{id}/resume", Names::Live)
        },
        read("POST /v1/scans/{id}/cancel", Names::Live),
        Case {
            query: "?rows=departure_date",
            ..read("GET /v1/scans/{id}/grid", Names::Ended)
        },
        read("GET /v1/scans/{id}/compare/{other}", Names::Ended),
        Case {
            place: 1,
            ..read("GET /v1/scans/{id}/compare/{other}", Names::Ended)
        },
        read("GET /v1/scans/{id}/events", Names::Ended),
        Case {
            query: "?expand=answer",
            ..read("GET /v1/scans/{id}/items", Names::Ended)
        },
        Case {
            query: "?expand=answer",
            ..read("GET /v1/items/{id}", Names::Item)
        },
        read("GET /v1/scans/{id}/decisions", Names::Ended),
        read("GET /v1/items/{id}/attempts", Names::Item),
        read("GET /v1/deliveries/{id}", Names::Delivery),
        Case {
            own: 202,
            ..read("POST /v1/deliveries/{id}/resend", Names::Delivery)
        },
        Case {
            own: 202,
            ..read("POST /v1/monitors/{id}/test", Names::Webhook)
        },
        read("POST /v1/monitors/{id}/rotate-secret", Names::Webhook),
        read("POST /v1/monitors/{id}/enable-webhook", Names::Webhook),
        read("GET /v1/monitors/{id}", Names::Monitor),
        Case {
            body: Some(|| json!({"name": "of the matrix"})),
            ..read("PATCH /v1/monitors/{id}", Names::Monitor)
        },
        Case {
            own: 204,
            ..read("DELETE /v1/monitors/{id}", Names::Monitor)
        },
        Case {
            own: 202,
            ..read("POST /v1/monitors/{id}/run", Names::Monitor)
        },
        read("POST /v1/monitors/{id}/pause", Names::Monitor),
        read("POST /v1/monitors/{id}/resume", Names::Monitor),
        read("GET /v1/monitors/{id}/slots", Names::Monitor),
        Case {
            // One's own compares no markets.
            own: 400,
            ..read("GET /v1/monitors/{id}/parity", Names::Monitor)
        },
        read("GET /v1/monitors/{id}/alerts", Names::Monitor),
        read("GET /v1/alerts/{id}", Names::Alert),
        read("GET /v1/channels/{id}", Names::Channel),
        Case {
            body: Some(|| json!({"name": "of the matrix"})),
            ..read("PATCH /v1/channels/{id}", Names::Channel)
        },
        Case {
            own: 204,
            ..read("DELETE /v1/channels/{id}", Names::Channel)
        },
        Case {
            own: 202,
            ..read("POST /v1/channels/{id}/test", Names::Channel)
        },
        Case {
            // One's own has no address.
            own: 409,
            body: Some(|| json!({"code": "K7QX-2MPT"})),
            ..read("POST /v1/channels/{id}/confirm", Names::Channel)
        },
    ]
}

/// Parameters of paths that are words of a list and no ids.
const WORDS: [&str; 1] = ["{api}"];

/// A route of the description with an id in its path, and the media types of its good answers.
fn described(description: &Value) -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::new();
    for (path, item) in description["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let good = operation["responses"]
                .as_object()
                .unwrap()
                .iter()
                .filter(|(status, _)| status.starts_with('2'));
            let media: BTreeSet<String> = good
                .filter_map(|(_, answer)| answer["content"].as_object())
                .flat_map(|content| content.keys().cloned())
                .collect();
            if path
                .split('/')
                .any(|part| part.starts_with('{') && !WORDS.contains(&part))
            {
                found.insert(
                    format!("{} {path}", method.to_uppercase()),
                    media.into_iter().collect(),
                );
            }
        }
    }
    found
}

/// Fills the path: `id` in one place, an own scan in the others.
fn filled(case: &Case, id: &str, own: &str) -> String {
    let (_, path) = case.route.split_once(' ').unwrap();
    let mut places = 0..;
    let parts = path.split('/').map(|part| match part.starts_with('{') {
        true if places.next() == Some(case.place) => id,
        true => own,
        false => part,
    });
    format!("{}{}", parts.collect::<Vec<_>>().join("/"), case.query)
}

async fn ask(service: &TestService, case: &Case, path: &str, media: &str) -> HttpResponse {
    let (method, _) = case.route.split_once(' ').unwrap();
    let mut request = service
        .request(method, path)
        .header("x-api-key", KEY)
        .header("accept", media);
    if let Some(body) = case.body {
        request = request.json(&body());
    }
    if method == "POST" {
        request = request.header("idempotency-key", "of-the-matrix");
    }
    if case.route.ends_with("/events") {
        request = request.header("last-event-id", "1");
    }
    service.send(request).await
}

/// An answer without what differs in each request, with the requested id replaced.
fn without_id(answer: &HttpResponse, id: &str) -> (u16, String, Vec<(String, String)>) {
    let header = |name: &str, value: &[u8]| {
        (
            name.to_owned(),
            String::from_utf8_lossy(value).replace(id, "<id>"),
        )
    };
    let is_own = |name: &str| matches!(name, "x-request-id" | "date");
    let headers = answer
        .headers
        .iter()
        .filter(|(name, _)| !is_own(name.as_str()));
    let mut headers: Vec<_> = headers
        .map(|(name, value)| header(name.as_str(), value.as_bytes()))
        .collect();
    headers.sort();
    let text = answer
        .text()
        .replace(id, "<id>")
        .replace(answer.header("x-request-id"), "<request>");
    (answer.status, text, headers)
}

/// Ids of the same thing, one of each caller.
struct Pair {
    own: String,
    others: String,
    random: String,
}

async fn order_as(service: &TestService, key: &str) -> String {
    let answer = service
        .post_as(key, "/v1/scans", &fares(2))
        .await
        .expect(202);
    text(&answer.json()["id"])
}

async fn watch_as(service: &TestService, key: &str) -> String {
    let answer = service
        .post_as(key, "/v1/monitors", &crate::monitors::monitor())
        .await
        .expect(201);
    text(&answer.json()["id"])
}

/// A monitor of each caller with a webhook, or a delivery to it.
async fn told_pair(service: &TestService, is_delivery: bool) -> Pair {
    let pool = service.pool();
    let mut ids = Vec::new();
    for key in [KEY, OTHER] {
        let monitor = watch_as(service, key).await.parse().unwrap();
        let tenant = harness::tenant(pool, key).await;
        harness::open_for(&ring(), pool, tenant, monitor, "http://hooks.test/").await;
        ids.push(if is_delivery {
            harness::enqueue(pool, tenant, monitor).await.to_string()
        } else {
            monitor.to_string()
        });
    }
    let [own, others] = ids.try_into().unwrap();
    Pair {
        own,
        others,
        random: if is_delivery {
            DeliveryId::new().to_string()
        } else {
            MonitorId::new().to_string()
        },
    }
}

/// The alert of a monitor that has run.
async fn alert_of(service: &TestService, key: &str) -> String {
    let body = crate::monitors::with(&json!({"alerts": [{"type": "price_below", "amount": 500}]}));
    let monitor = service.post_as(key, "/v1/monitors", &body).await.json();
    let slot: Timestamp = monitor["next_slot"].as_str().unwrap().parse().unwrap();
    service.tick(slot).await;
    service.complete_all(|_| SearchOutcome::Ok(200)).await;
    service.tick(slot).await;
    let alerts = service
        .get_as(
            key,
            &format!("/v1/monitors/{}/alerts", monitor["id"].as_str().unwrap()),
        )
        .await
        .json();
    alerts["data"][0]["id"]
        .as_str()
        .unwrap_or_else(|| panic!("{alerts}"))
        .to_owned()
}

async fn pair(service: &TestService, names: Names) -> Pair {
    if let Names::Monitor = names {
        let [own, others] = [watch_as(service, KEY).await, watch_as(service, OTHER).await];
        return Pair {
            own,
            others,
            random: MonitorId::new().to_string(),
        };
    }
    if let Names::Channel = names {
        let body =
            json!({"name": "phone", "kind": "ntfy", "url": "https://ntfy.example.com/fares"});
        let [own, others] = [
            service.post_as(KEY, "/v1/channels", &body).await,
            service.post_as(OTHER, "/v1/channels", &body).await,
        ];
        return Pair {
            own: own.created(201),
            others: others.created(201),
            random: ChannelId::new().to_string(),
        };
    }
    if let Names::Webhook | Names::Delivery = names {
        return told_pair(service, matches!(names, Names::Delivery)).await;
    }
    if let Names::Alert = names {
        let mut alerts = Vec::new();
        for key in [KEY, OTHER] {
            alerts.push(alert_of(service, key).await);
        }
        let [own, others] = alerts.try_into().unwrap();
        return Pair {
            own,
            others,
            random: AlertId::new().to_string(),
        };
    }
    let scans = [order_as(service, KEY).await, order_as(service, OTHER).await];
    if !matches!(names, Names::Live) {
        service
            .complete_all(|position| {
                if position == 0 {
                    SearchOutcome::Ok(200)
                } else {
                    SearchOutcome::Degraded("upstream_timeout")
                }
            })
            .await;
    }
    if let Names::Item = names {
        let mut items = Vec::new();
        for (scan, key) in scans.iter().zip([KEY, OTHER]) {
            let page = service
                .get_as(key, &format!("/v1/scans/{scan}/items"))
                .await
                .json();
            items.push(text(&page["data"][0]["id"]));
        }
        let [own, others] = items.try_into().unwrap();
        return Pair {
            own,
            others,
            random: ItemId::new().to_string(),
        };
    }
    let [own, others] = scans;
    Pair {
        own,
        others,
        random: ScanId::new().to_string(),
    }
}

/// What is no id, in many ways.
fn malformed(id: &str) -> Vec<String> {
    let digits = &id[4..];
    vec![
        "nonsense".to_owned(),
        digits.to_owned(),
        format!("xyz_{digits}"),
        format!("{}{}", &id[..4], digits.to_uppercase()),
        format!("{}0", id),
        id[..id.len() - 1].to_owned(),
        format!("{}%27%20or%20true%20--", &id[..4]),
        "%00".to_owned(),
        "%2e%2e".to_owned(),
    ]
}

/// Everything that an answer could have moved.
async fn state(service: &TestService) -> (String, usize) {
    (service.dump_database().await, service.upstream.count())
}

#[tokio::test(flavor = "multi_thread")]
async fn anothers_id_is_the_same_as_one_that_never_was_on_every_route() {
    let service = TestService::start().await;
    let described = described(
        &service
            .send(service.request("GET", "/openapi.json"))
            .await
            .json(),
    );
    let cases = cases();
    let covered: BTreeSet<_> = cases.iter().map(|case| case.route.to_owned()).collect();
    let routes: BTreeSet<_> = described.keys().cloned().collect();
    assert_eq!(
        covered, routes,
        "a route with an id has a case here, and a case has a route"
    );
    for route in described.keys() {
        let places = route.matches('{').count();
        assert_eq!(
            cases.iter().filter(|case| case.route == route).count(),
            places,
            "{route}: a case for each of its ids"
        );
    }
    // So that both are known, and may have more than one scan.
    order_as(&service, KEY).await;
    order_as(&service, OTHER).await;
    service.complete_all(|_| SearchOutcome::Ok(100)).await;

    let (mut requests, mut kinds) = (0, BTreeMap::<&str, usize>::new());
    for case in &cases {
        let mut media = described[case.route].clone();
        media.push("*/*".to_owned());
        for media in &media {
            let ids = pair(&service, case.names).await;
            let stand_in = order_as(&service, KEY).await;
            let before = state(&service).await;
            let random = ask(&service, case, &filled(case, &ids.random, &stand_in), media).await;
            assert_eq!(random.kind(), "404 not_found", "{} {media}", case.route);
            let random = without_id(&random, &ids.random);
            let mut wrong = malformed(&ids.others);
            // The client resolves it before it asks: that is `GET /v1/alerts`, one's own.
            wrong.retain(|id| !(id == "%2e%2e" && case.route == "GET /v1/monitors/{id}/alerts"));
            let all = std::iter::once(("another's", &ids.others))
                .chain(wrong.iter().map(|id| ("malformed", id)));
            *kinds.entry("random").or_default() += 1;
            for (kind, id) in all {
                let answer = ask(&service, case, &filled(case, id, &stand_in), media).await;
                if kind == "malformed" {
                    assert_eq!(
                        answer.kind(),
                        "404 not_found",
                        "{} {media}: {id}",
                        case.route
                    );
                } else {
                    assert_eq!(
                        without_id(&answer, id),
                        random,
                        "{} {media}: {kind} id {id}",
                        case.route
                    );
                }
                requests += 1;
                *kinds.entry(kind).or_default() += 1;
            }
            assert_eq!(
                state(&service).await,
                before,
                "{} {media}: something has moved",
                case.route
            );
            let (method, _) = case.route.split_once(' ').unwrap();
            let path = filled(case, &ids.own, &ids.own);
            let mut own = service
                .request(method, &path)
                .header("x-api-key", KEY)
                .header("accept", media);
            if let Some(body) = case.body {
                own = own.json(&body());
            }
            // Its body may be a stream without an end.
            let own = own.send().await.unwrap();
            assert_eq!(
                own.status().as_u16(),
                case.own,
                "{} {media}: one's own id",
                case.route
            );
            requests += 2;
            *kinds.entry("own").or_default() += 1;
        }
    }
    println!(
        "{} routes with {} ids, {requests} requests: {kinds:?}",
        described.len(),
        cases.len()
    );
}

/// Ids that ride elsewhere than in a path.
#[tokio::test(flavor = "multi_thread")]
async fn anothers_cursor_and_anothers_idempotency_key_tell_nothing_of_him() {
    let service = TestService::start().await;
    for key in [KEY, OTHER] {
        service.post_as(key, "/v1/scans", &fares(3)).await;
        service
            .complete_all(|position| SearchOutcome::Ok(100 + u32::try_from(position).unwrap()))
            .await;
        service.post_as(key, "/v1/scans", &fares(3)).await;
        service
            .complete_all(|position| SearchOutcome::Ok(200 + u32::try_from(position).unwrap()))
            .await;
    }
    let own = ids(&service.get_as(KEY, "/v1/scans").await.json());
    let others = ids(&service.get_as(OTHER, "/v1/scans").await.json());
    let route = "/v1/history/flights?from_airport=TLV&to_airport=LHR";
    let lists = [
        ("/v1/scans?".to_owned(), "/v1/scans?".to_owned()),
        (
            format!("/v1/scans/{}/items?", own[0]),
            format!("/v1/scans/{}/items?", others[0]),
        ),
        (
            format!("/v1/scans/{}/items?sort=price&", own[0]),
            format!("/v1/scans/{}/items?sort=price&", others[0]),
        ),
        (format!("{route}&"), format!("{route}&")),
        ("/v1/deliveries?".to_owned(), "/v1/deliveries?".to_owned()),
    ];
    for key in [KEY, OTHER] {
        keep_prices(&service, key).await;
        let tenant = harness::tenant(service.pool(), key).await;
        let (monitor, _) = harness::webhook(service.pool(), tenant, "http://hooks.test/").await;
        for _ in 0..2 {
            harness::enqueue(service.pool(), tenant, monitor).await;
        }
    }
    let before = state(&service).await;
    for (mine, his) in &lists {
        let page = service.get_as(OTHER, &format!("{his}limit=1")).await.json();
        let cursor = page["next_cursor"]
            .as_str()
            .unwrap_or_else(|| panic!("{his}: {page}"));
        let answer = service
            .get_as(KEY, &format!("{mine}limit=50&cursor={cursor}"))
            .await;
        assert_eq!(answer.status, 200, "{mine}");
        let whole = service.get_as(KEY, &format!("{mine}limit=50")).await.json();
        let seen = array(&answer.json()["data"]).clone();
        assert!(
            !seen.is_empty(),
            "{mine}: the cursor names a place in one's own list"
        );
        assert!(
            seen.iter().all(|row| array(&whole["data"]).contains(row)),
            "{mine}: rows of one's own list alone"
        );
    }
    assert_eq!(state(&service).await, before);

    let body = json!({"endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "CDG"}, "sweep": {"departure_date": ["2030-02-01"]}});
    let once = |key: &'static str, body: Value| {
        let request = service
            .request("POST", "/v1/scans")
            .header("x-api-key", key)
            .header("idempotency-key", "the-same")
            .json(&body);
        service.send(request)
    };
    let his = once(OTHER, body.clone()).await;
    let mine = once(KEY, body.clone()).await;
    assert_eq!(
        (his.status, mine.status, mine.header("idempotent-replayed")),
        (202, 202, "")
    );
    assert_ne!(his.json()["id"], mine.json()["id"], "an order of one's own");
    // Nor does it stand in the way of another order.
    service.complete_all(|_| SearchOutcome::Empty).await;
    let third = service
        .request("POST", "/v1/scans")
        .header("x-api-key", "a-third-key-0123456789")
        .header("idempotency-key", "the-same");
    assert_eq!(service.send(third.json(&fares(1))).await.status, 202);
}

/// What a scan of the route saw, twice, a minute apart: another caller's cursor lies between or after one's own.
async fn keep_prices(service: &TestService, key: &str) {
    let body = json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2030-01-01"});
    let request = Request::check(Endpoint::FlightsOneway, body.as_object().unwrap())
        .unwrap()
        .request;
    let mut tx = farescan::db::begin(service.pool()).await.unwrap();
    let now = Timestamp::now();
    let tenant = tenants::store::find(&mut tx, &ring(), &CallerKey::new(key), now)
        .await
        .unwrap()
        .unwrap();
    let seen = |minutes: i64| Observation {
        tenant,
        item: ItemId::new(),
        number: 1,
        subject: Subject::of(&request).unwrap(),
        observed_at: now - SignedDuration::from_mins(minutes),
        best: None,
        results: Some(0),
        status: SearchStatus::Empty,
        reason: Some(key.to_owned()),
    };
    history::insert(&mut tx, &[seen(1), seen(2)]).await.unwrap();
    tx.commit().await.unwrap();
}

fn ids(page: &Value) -> Vec<String> {
    array(&page["data"])
        .iter()
        .map(|row| text(&row["id"]))
        .collect()
}
