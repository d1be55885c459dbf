//! An account with something on every page: prices of weeks, scans in every state, a monitor that
//! fired.

use farescan::contract::Endpoint;
use jiff::{SignedDuration, ToSpan as _, civil::Date, tz::TimeZone};
use serde_json::{Value, json};

use crate::history::fixture::HistoryFixture;
use crate::support::app::{KEY, ring};
use crate::support::reply::{Gate, Reply};
use crate::support::upstream::{Call, default_reply, fare, pair};
use crate::support::{TestService, text};
use crate::webhooks::harness;
use crate::worker::fixture::RunningWorker;

/// The ids of what is on the pages.
pub struct Filled {
    service: HistoryFixture,
    worker: RunningWorker,
    gate: Gate,
    /// Three months of fares with some dates that did not complete.
    pub fares: String,
    /// A hotel by night and market.
    pub markets: String,
    /// Round trips by departure and nights.
    pub stays: String,
    /// It waits for the marketplace.
    pub running: String,
    pub paused: String,
    pub monitor: String,
    /// It compares markets; it ran twice, by these scans.
    pub parity: String,
    pub runs: [String; 2],
    pub alert: String,
    pub delivery: String,
    /// An item that did not complete, and one with offers.
    pub items: [String; 2],
    pub names: Names,
}

/// What the person named.
pub struct Names {
    pub label: String,
    pub tag: String,
    pub monitor: String,
    pub channel: String,
    pub hotel: String,
}

impl Names {
    fn ordinary() -> Self {
        Self {
            label: "Spring in London".to_owned(),
            tag: "spring".to_owned(),
            monitor: "London in a week".to_owned(),
            channel: "my phone".to_owned(),
            hotel: "Hotel Arts, Barcelona".to_owned(),
        }
    }

    /// A text repeated up to 200 characters, or as many as the field takes.
    pub fn of(text: &str) -> Self {
        let long = |most: usize| text.chars().cycle().take(most).collect();
        Self {
            label: long(200),
            tag: long(50),
            monitor: long(200),
            channel: long(100),
            hotel: long(200),
        }
    }
}

impl std::ops::Deref for Filled {
    type Target = TestService;

    fn deref(&self) -> &TestService {
        &self.service
    }
}

/// A fare as fares are: dearer at weekends and around the middle of a month, and never smooth.
fn price_of(date: Date, salt: i64) -> u64 {
    let days = i64::from(date.day_of_year());
    let weekend = match date.weekday().to_monday_zero_offset() {
        3 | 6 => 34,
        4 | 5 => 52,
        _ => 0,
    };
    let season = (days * 11 + salt * 7) % 45 - (i64::from(date.day()) - 15).abs();
    u64::try_from(168 + weekend + season + salt % 13).unwrap()
}

fn date_of(call: &Call, field: &str) -> Option<Date> {
    call.body[field].as_str()?.parse().ok()
}

const AIRLINES: [&str; 4] = ["EL AL", "British Airways", "Wizz Air", "Virgin Atlantic"];

/// The answer of a marketplace with a plan; fares are `dearer` by so much.
pub fn reply(call: &Call, dearer: u64) -> Reply {
    let ok = |body: Value| {
        let reply = Reply::json(body).header("x-search-status", "ok");
        reply
            .header("x-ratelimit-requests-limit", "15000")
            .header("x-ratelimit-requests-remaining", "11240")
            .header("x-ratelimit-requests-reset", "1036800")
    };
    if let Some(checkin) = date_of(call, "checkin_date") {
        let market = call.body["proxy_country"].as_str().unwrap_or("us");
        let gap = match market {
            "de" => 24,
            "gb" => 41,
            "jp" => -18,
            "br" => 12,
            _ => 0,
        };
        let mut body: Value = json!({
            "name": "Hotel Arts Barcelona", "available": true, "review_score": 8.9, "review_count": 1204,
            "room_type": "Deluxe Double Room", "image_url": null, "link": "https://hotels.example/arts", "nights": 3,
            "adults": 2, "children": null,
        });
        let price = i64::try_from(price_of(checkin, 3)).unwrap() + 180 + gap;
        body["price"] = json!(price);
        body["price_string"] = json!(format!("${price}"));
        return ok(body);
    }
    let Some(date) = date_of(call, "departure_date") else {
        return default_reply(call);
    };
    if let Some(back) = date_of(call, "return_date") {
        let nights = (back - date).get_days();
        return ok(json!([pair(
            price_of(date, 5) + price_of(back, 2) - u64::try_from(nights * 3).unwrap(),
            &call.body
        )]));
    }
    match date.day() {
        9 | 23 if date.month() % 2 == 0 => Reply::search_incomplete("blocked_page"),
        16 => Reply::json(json!([])).header("x-search-status", "empty"),
        _ => {
            let offers = (0..4_u64).map(|rank| {
                let mut offer = fare(price_of(date, 1) + dearer + rank * 27, &call.body);
                offer["airline"] = json!(
                    AIRLINES[(usize::try_from(rank).unwrap()
                        + usize::from(date.day().unsigned_abs()))
                        % 4]
                );
                offer["stops"] = json!(rank % 2);
                offer
            });
            ok(offers.collect())
        }
    }
}

impl Filled {
    pub async fn open() -> Self {
        Self::named(Names::ordinary()).await
    }

    pub async fn named(names: Names) -> Self {
        let service = HistoryFixture::open().await;
        let gate = Gate::closed();
        service.upstream.answer(|call| reply(call, 0));
        let today = service.now.to_zoned(TimeZone::UTC).date();
        let first = today.first_of_month().saturating_add(2.months());
        history(&service, today).await;
        let worker = service.start_worker(6);
        let fares = scan(
            &service,
            &json!({
                "endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR", "currency": "USD"},
                "sweep": {"departure_date": {"from": first, "to": first.saturating_add(3.months()).saturating_sub(1.day())}},
                "label": names.label, "tags": [names.tag]
            }),
        )
        .await;
        let markets = scan(
            &service,
            &json!({
                "endpoint": "hotels/by-name", "request": {"hotel_name": names.hotel},
                "sweep": {"checkin_date": {"from": first, "to": first.saturating_add(6.days())}, "nights": [3],
                          "proxy_country": ["us", "de", "gb", "jp", "br"]}
            }),
        )
        .await;
        let stays = scan(
            &service,
            &json!({
                "endpoint": "flights/roundtrip", "request": {"from_airport": "TLV", "to_airport": "CDG"},
                "sweep": {"departure_date": {"from": first, "to": first.saturating_add(9.days())}, "nights": [5, 6, 7, 8, 9, 10]}
            }),
        )
        .await;
        let (parity, runs) = markets_monitor(&service, &names).await;
        let (monitor, alert) = monitor(&service, &names).await;
        let delivery = text(&service.page("/v1/deliveries").await[0]["id"]);
        let wait = gate.clone();
        service.upstream.answer(move |call| {
            let is_late = date_of(call, "departure_date").is_some_and(|date| date.day() > 8);
            let reply = reply(call, 0);
            if is_late {
                reply.gated_by(&wait)
            } else {
                reply
            }
        });
        let (running, paused) = live_scans(&service, first).await;
        let items = service.items(&fares).await;
        let with = |status: &str| {
            let found = items.iter().find(|item| item["search_status"] == status);
            text(&found.unwrap()["id"])
        };
        let items = [with("degraded"), with("ok")];
        Self {
            service,
            worker,
            gate,
            fares,
            markets,
            stays,
            running,
            paused,
            monitor,
            parity,
            runs,
            alert,
            delivery,
            items,
            names,
        }
    }

    pub async fn close(self) {
        self.gate.open();
        self.service.wait_until_ended(&self.running).await;
        self.worker.stop().await;
    }
}

async fn scan(service: &TestService, body: &Value) -> String {
    let id = service.submit(body).await;
    service.wait_until_ended(&id).await;
    id
}

/// Five weeks of daily observations of a route.
async fn history(service: &HistoryFixture, today: Date) {
    let mut observations = Vec::new();
    for departure in 20..60 {
        let date = today.saturating_add(departure.days());
        for days_ago in 1..36 {
            let trend = (days_ago - 12_i64).abs() * 2 + (days_ago * departure) % 9;
            let price = i64::try_from(price_of(date, 1)).unwrap() + trend;
            let price = (days_ago % 11 != 4).then_some(price);
            let minutes = -days_ago * 24 * 60 - departure;
            observations.push(service.fare(&date.to_string(), minutes, price));
        }
    }
    service.insert(&observations).await;
}

/// Runs a monitor once, at its next slot.
async fn run(service: &TestService, monitor: &str) {
    let slot = service.next_slot(monitor).await;
    service.tick(slot).await;
    let live = "select count(*) from scans where finished_at is null";
    service.wait_for_count(live, 0).await;
    service.tick(slot + SignedDuration::from_secs(1)).await;
}

/// A monitor of a hotel in three markets, and the scans of its two runs.
async fn markets_monitor(service: &TestService, names: &Names) -> (String, [String; 2]) {
    let body = json!({
        "name": names.monitor, "schedule": {"cron": "0 5 * * mon", "timezone": "UTC"},
        "scan": {
            "endpoint": "hotels/by-name", "request": {"hotel_name": names.hotel},
            "sweep": {"checkin_date": {"from": "+30d", "to": "+31d"}, "nights": [3], "proxy_country": ["us", "de", "gb"], "samples": 3}
        },
        "alerts": [{"type": "parity_gap_percent", "percent": 90, "baseline": "us"}]
    });
    let id = service.create_monitor(&body).await;
    for _ in 0..2 {
        run(service, &id).await;
    }
    let newest = service.page("/v1/scans?limit=2").await;
    (id, [text(&newest[1]["id"]), text(&newest[0]["id"])])
}

/// A monitor with a webhook, a channel and six runs, of which the last fired an alert.
async fn monitor(service: &TestService, names: &Names) -> (String, String) {
    let channel = json!({"name": names.channel, "kind": "ntfy", "url": "https://ntfy.example.com/fares-3f9a2c71d0"});
    let channel = service.post("/v1/channels", &channel).await.created(201);
    let body = json!({
        "name": names.monitor, "channels": [channel], "schedule": {"cron": "0 6 * * *", "timezone": "Europe/London"},
        "scan": {
            "endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR"},
            "sweep": {"departure_date": {"from": "+7d", "to": "+13d"}}
        },
        "alerts": [{"type": "price_below", "amount": 190}, {"type": "new_low", "days": 30}],
        "max_requests_per_month": 900
    });
    let id = service.create_monitor(&body).await;
    let tenant = harness::tenant(service.pool(), KEY).await;
    let monitor = id.parse().unwrap();
    harness::open_for(
        &ring(),
        service.pool(),
        tenant,
        monitor,
        "http://hooks.test/",
    )
    .await;
    for dearer in [58, 40, 46, 30, 38, 4] {
        service
            .upstream
            .on(Endpoint::FlightsOneway)
            .answer(move |call| reply(call, dearer));
        run(service, &id).await;
    }
    let alert = text(&service.alerts(&id).await[0]["id"]);
    (id, alert)
}

/// A scan that waits for the marketplace after eight answers, and one that is paused.
async fn live_scans(service: &TestService, first: Date) -> (String, String) {
    let body = json!({
        "endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "JFK"},
        "sweep": {"departure_date": {"from": first, "to": first.saturating_add(20.days())}}
    });
    let running = service.submit(&body).await;
    let sent = |calls: &[Call]| {
        let sent = calls.iter().filter(|call| call.body["to_airport"] == "JFK");
        sent.count() == 14
    };
    let what = "eight calls are answered and six wait";
    service.upstream.wait_for(what, sent).await;
    let body = json!({
        "endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "BCN"},
        "sweep": {"departure_date": {"from": first, "to": first.saturating_add(4.days())}},
        "max_requests": 5
    });
    let paused = service.submit(&body).await;
    service.command(&paused, "pause", &json!({})).await;
    (running, paused)
}
