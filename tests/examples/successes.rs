//! One request of every operation that succeeds, in the order in which a caller would send them.

use serde_json::{Value, json};

use super::recorder::{Ask, Recorder, shifted};

/// What the requests that fail refer to.
pub struct Context {
    /// A scan that has ended.
    pub ended: String,
    /// A scan that was cancelled.
    pub cancelled: String,
    /// A monitor whose run has not ended.
    pub busy: String,
}

/// The id of a resource; empty if the answer was another one, which `Recorder::check` has noted.
fn id_of(resource: &Value) -> String {
    resource["id"].as_str().unwrap_or_default().to_owned()
}

/// A date of January 2027, or of a later month.
fn january(day: i8) -> String {
    shifted(jiff::civil::date(2027, 1, day)).to_string()
}

fn oneway() -> Value {
    json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": january(14), "max_stops": 0, "currency": "USD"})
}

fn week_of_fares() -> Value {
    json!({
        "endpoint": "flights/oneway",
        "request": {"from_airport": "TLV", "to_airport": "LHR"},
        "sweep": {"departure_date": {"from": january(11), "to": january(17)}},
        "label": "a week in January", "tags": ["demo"], "max_requests": 20
    })
}

fn monitor() -> Value {
    json!({
        "name": "a week ahead",
        "schedule": {"cron": "0 6 * * *", "timezone": "Europe/London"},
        "scan": {
            "endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR"},
            "sweep": {"departure_date": {"from": "+40d", "to": "+42d"}}
        },
        "alerts": [{"type": "price_below", "amount": 900}],
        "webhook_url": "https://hooks.example.com/fares",
        "max_requests_per_month": 500
    })
}

/// A hotel in two markets.
fn market_monitor() -> Value {
    let mut body = monitor();
    let fields = body.as_object_mut().unwrap();
    fields.remove("webhook_url");
    fields.insert(
        "alerts".to_owned(),
        json!([{"type": "parity_gap_percent", "percent": 5, "baseline": "us"}]),
    );
    body["scan"] = json!({
        "endpoint": "hotels/by-name", "request": {"hotel_name": "Hotel Arts Barcelona", "checkin_date": "+60d", "checkout_date": "+63d"},
        "sweep": {"proxy_country": ["us", "de"], "samples": 3}
    });
    body
}

pub async fn send_all(run: &mut Recorder) -> Context {
    run.success("check_health", 200, Ask::default()).await;
    run.success("get_description", 200, Ask::default()).await;
    run.success("verify_key", 200, Ask::default()).await;
    searches(run).await;
    let (ended, cancelled) = scans(run).await;
    history(run).await;
    let busy = monitors(run).await;
    run.success("get_quota", 200, Ask::default()).await;
    let bounds = json!({"requests_per_minute": 100, "keep_in_reserve": 200});
    run.success(
        "set_lane_bounds",
        200,
        Ask::body(&bounds).at("api", "flights"),
    )
    .await;
    run.success(
        "update_lane_bounds",
        200,
        Ask::body(&json!({"keep_in_reserve": 100})).at("api", "flights"),
    )
    .await;
    let settings = json!({"record_searches": true, "max_age_seconds": 21_600});
    run.success("set_account_settings", 200, Ask::body(&settings))
        .await;
    run.success("get_account_settings", 200, Ask::default())
        .await;
    run.prepare("set_account_settings", Ask::body(&json!({})))
        .await;
    run.success("get_usage", 200, Ask::query(&[("group", "endpoint")]))
        .await;
    Context {
        ended,
        cancelled,
        busy,
    }
}

async fn searches(run: &mut Recorder) {
    let roundtrip = json!({
        "from_airport": "TLV", "to_airport": "LHR", "departure_date": january(14), "return_date": january(21), "currency": "USD"
    });
    let place = json!({
        "destination": "Lisbon", "checkin_date": january(14), "checkout_date": january(17), "proxy_country": "de",
        "filters": ["free_cancellation"]
    });
    let hotel = json!({
        "hotel_name": "Grand Hotel Lisbon", "checkin_date": january(14), "checkout_date": january(17), "proxy_country": "de"
    });
    let rooms = json!({"hotel_booking_id": "pt/grand-hotel-lisbon", "checkin_date": january(14), "checkout_date": january(17)});
    for (operation, body) in [
        ("search_oneway_flights", oneway()),
        ("search_roundtrip_flights", roundtrip),
        ("search_hotels", place),
        ("find_hotel_by_name", hotel),
        ("list_hotel_rooms", rooms),
    ] {
        run.success(operation, 200, Ask::body(&body)).await;
        let deferred = Ask::body(&body).header("prefer", "respond-async");
        run.answer(operation, 202, deferred).await;
    }
    let name = json!({"hotel_name": "Grand Hotel Lisbon"});
    run.success("resolve_hotel", 200, Ask::body(&name)).await;
}

/// Scans that end, and one that is cancelled; returns an ended and the cancelled one.
async fn scans(run: &mut Recorder) -> (String, String) {
    run.success("preview_scan", 200, Ask::body(&week_of_fares()))
        .await;
    let live = run
        .success("create_scan", 202, Ask::body(&week_of_fares()))
        .await;
    let cancelled = id_of(&live);
    let on = |id: &str| Ask::default().at("id", id);
    run.success("pause_scan", 200, on(&cancelled)).await;
    let more = json!({"max_requests": 30});
    run.success("resume_scan", 200, Ask::body(&more).at("id", &cancelled))
        .await;
    run.success("cancel_scan", 200, on(&cancelled)).await;

    run.start_worker();
    let mut ended = Vec::new();
    for _ in 0..2 {
        let body = Ask::body(&week_of_fares());
        let ask = if ended.is_empty() {
            body
        } else {
            Ask::body(&week_of_fares())
        };
        let scan = run.prepare("create_scan", ask).await;
        let id = id_of(&scan);
        run.service
            .wait_for_scan_as(super::recorder::CALLER, &id)
            .await;
        ended.push(id);
    }
    let [first, second] = ended.try_into().unwrap();
    run.success("get_scan", 200, on(&first)).await;
    run.success("list_scans", 200, Ask::query(&[("limit", "2")]))
        .await;
    let by_price = Ask::query(&[("sort", "price"), ("limit", "2")]);
    let items = run
        .success("list_items", 200, by_price.at("id", &first))
        .await;
    let item = id_of(&items["data"][0]);
    run.success(
        "get_item",
        200,
        Ask::query(&[("expand", "answer")]).at("id", &item),
    )
    .await;
    run.success("list_attempts", 200, on(&item)).await;
    let grid = Ask::query(&[("rows", "departure_date")]);
    run.success("get_scan_grid", 200, grid.at("id", &first))
        .await;
    let pair = on(&second).at("other", &first);
    run.success("compare_scans", 200, pair).await;
    let mut question = week_of_fares();
    question["strategy"] = json!({"find": "cheapest"});
    question.as_object_mut().unwrap().remove("max_requests");
    let scan = run.prepare("create_scan", Ask::body(&question)).await;
    run.service
        .wait_for_scan_as(super::recorder::CALLER, &id_of(&scan))
        .await;
    run.success("list_decisions", 200, on(&id_of(&scan))).await;
    let events = run.success("watch_scan", 200, on(&first)).await;
    let mut ids = events.as_str().unwrap_or_default().lines().rev();
    let last = ids.find_map(|line| line.strip_prefix("id: "));
    let seen_all = on(&first).header("last-event-id", last.unwrap_or_default());
    run.answer("watch_scan", 204, seen_all).await;
    let degraded = json!({"search_status": ["degraded"]});
    run.success("retry_scan", 202, Ask::body(&degraded).at("id", &first))
        .await;
    run.service
        .wait_for_scan_as(super::recorder::CALLER, &first)
        .await;
    run.success("delete_scan", 204, on(&second)).await;
    (first, cancelled)
}

async fn history(run: &mut Recorder) {
    let markets = json!({
        "endpoint": "hotels/by-name",
        "request": {"hotel_name": "Grand Hotel Lisbon", "checkin_date": january(14), "checkout_date": january(17)},
        "sweep": {"proxy_country": ["us", "de"]}
    });
    let scan = run.prepare("create_scan", Ask::body(&markets)).await;
    run.service
        .wait_for_scan_as(super::recorder::CALLER, &id_of(&scan))
        .await;
    let (from, to) = (january(11), january(17));
    let route = [("from_airport", "TLV"), ("to_airport", "LHR")];
    let departures = [
        ("departure_from", from.as_str()),
        ("departure_to", to.as_str()),
    ];
    let hotel = [("hotel_name", "Grand Hotel Lisbon")];
    let stays = [("checkin_from", from.as_str()), ("checkin_to", to.as_str())];
    let flights = |more: &[(&str, &str)]| Ask::query(&[&route[..], &departures[..], more].concat());
    let hotels = |more: &[(&str, &str)]| Ask::query(&[&hotel[..], &stays[..], more].concat());
    for (operation, ask) in [
        ("list_flight_observations", flights(&[("limit", "2")])),
        (
            "list_latest_flight_prices",
            flights(&[("history_verdict", "true")]),
        ),
        ("get_flight_series", flights(&[("bucket", "day")])),
        (
            "get_flight_history_grid",
            flights(&[("rows", "departure_date")]),
        ),
        ("list_hotel_observations", hotels(&[("limit", "2")])),
        ("list_latest_hotel_prices", hotels(&[])),
        ("get_hotel_series", hotels(&[("bucket", "day")])),
        (
            "get_hotel_history_grid",
            hotels(&[
                ("rows", "checkin_date"),
                ("columns", "proxy_country"),
                ("nights", "3"),
            ]),
        ),
    ] {
        run.success(operation, 200, ask).await;
    }
}

/// Monitors; returns one whose run has not ended.
async fn monitors(run: &mut Recorder) -> String {
    run.success("preview_monitor", 200, Ask::body(&monitor()))
        .await;
    run.success("backtest_monitor", 200, Ask::body(&monitor()))
        .await;
    let created = run
        .success("create_monitor", 201, Ask::body(&monitor()))
        .await;
    let id = id_of(&created);
    let on = || Ask::default().at("id", &id);
    let started = run.success("run_monitor", 202, on()).await;
    run.service
        .wait_for_scan_as(super::recorder::CALLER, &id_of(&started))
        .await;
    run.service.tick(jiff::Timestamp::now()).await;
    run.success("list_monitors", 200, Ask::default()).await;
    run.success("get_monitor", 200, on()).await;
    run.success("list_monitor_slots", 200, on()).await;
    let compares = run
        .prepare("create_monitor", Ask::body(&market_monitor()))
        .await;
    let markets = || Ask::default().at("id", &id_of(&compares));
    let started = run.prepare("run_monitor", markets()).await;
    run.service
        .wait_for_scan_as(super::recorder::CALLER, &id_of(&started))
        .await;
    run.success("get_monitor_parity", 200, markets()).await;
    run.success("list_monitor_alerts", 200, on()).await;
    let alerts = run
        .success("list_alerts", 200, Ask::query(&[("limit", "2")]))
        .await;
    let alert = id_of(&alerts["data"][0]);
    run.success("get_alert", 200, Ask::default().at("id", &alert))
        .await;
    run.success("test_webhook", 202, on()).await;
    run.answer("test_webhook", 429, on()).await;
    let deliveries = run
        .success("list_deliveries", 200, Ask::query(&[("limit", "2")]))
        .await;
    let delivery = id_of(&deliveries["data"][1]);
    run.success("get_delivery", 200, Ask::default().at("id", &delivery))
        .await;
    run.success("resend_delivery", 202, Ask::default().at("id", &delivery))
        .await;
    run.success("rotate_webhook_secret", 200, on()).await;
    run.success("enable_webhook", 200, on()).await;
    let patch = json!({"name": "a week ahead, cheaper", "alerts": [{"type": "price_below", "amount": 150}]});
    run.success("update_monitor", 200, Ask::body(&patch).at("id", &id))
        .await;
    run.success("pause_monitor", 200, on()).await;
    run.success("resume_monitor", 200, on()).await;
    run.success("delete_monitor", 204, on()).await;

    let mut slow = monitor();
    slow.as_object_mut().unwrap().remove("webhook_url");
    slow["scan"]["request"]["to_airport"] = json!("ZZT");
    let channel = channels(run).await;
    slow["channels"] = json!([channel]);
    let busy = run.prepare("create_monitor", Ask::body(&slow)).await;
    let busy = id_of(&busy);
    run.prepare("run_monitor", Ask::default().at("id", &busy))
        .await;
    let named = Ask::default().at("id", &channel);
    run.answer("delete_channel", 409, named).await;
    busy
}

/// Channels; returns one.
async fn channels(run: &mut Recorder) -> String {
    let phone =
        json!({"name": "my phone", "kind": "ntfy", "url": "https://ntfy.sh/fares-3f9a2c71d0"});
    let created = run.success("create_channel", 201, Ask::body(&phone)).await;
    let id = id_of(&created);
    let on = || Ask::default().at("id", &id);
    run.success("get_channel", 200, on()).await;
    run.success("list_channels", 200, Ask::default()).await;
    run.success("test_channel", 202, on()).await;
    run.answer("test_channel", 429, on()).await;
    let night = json!({"notify": {"quiet_hours": {"from": "22:00", "until": "07:00"}}, "timezone": "Europe/London"});
    run.success("update_channel", 200, Ask::body(&night).at("id", &id))
        .await;
    let mail = json!({"name": "my mail", "kind": "email", "url": "me@example.com"});
    let mail = id_of(&run.prepare("create_channel", Ask::body(&mail)).await);
    let code = || Ask::body(&json!({"code": "K7QX-2MPT"})).at("id", &mail);
    run.answer("confirm_channel", 409, code()).await;
    let active = Ask::body(&json!({"status": "active"})).at("id", &mail);
    run.answer("update_channel", 409, active).await;
    // What a code of the mail does; here nothing is mailed.
    execute!(
        run.service.pool(),
        "update webhook_endpoints set confirmed_at = now(), off_at = null, off_reason = null, next_at = null where kind = 'email'"
    );
    run.success("confirm_channel", 200, code()).await;
    let other = run.prepare("create_channel", Ask::body(&phone)).await;
    let other = Ask::default().at("id", &id_of(&other));
    run.success("delete_channel", 204, other).await;
    id
}

/// The last request: afterwards the caller has another key.
pub async fn rotate_key(run: &mut Recorder) {
    let new = json!({"new_key": "sandbox-unlimited.new"});
    run.success("rotate_key", 200, Ask::body(&new)).await;
}
