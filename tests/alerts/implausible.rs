//! Prices far off their own history (monitors.md, rule 84; history.md, rules 43 to 46).

use farescan::contract::SearchStatus;
use farescan::history::daily_pack::pack_past_days;
use farescan::ids::TenantId;
use jiff::civil::Date;
use jiff::{Timestamp, ToSpan as _};
use serde_json::{Value, json};

use super::past::{OTHER, Seen, of_dates, today};
use super::{AlertTest, fares};
use crate::support::app::{KEY, ring, tenant};
use crate::support::array;
use crate::web::Browser;

/// Four departures, each seen at 200 on the last three days.
async fn with_past(test: &AlertTest, owner: TenantId) -> Vec<Date> {
    with_past_from(test, owner, 60).await
}

/// The same; the first departs after so many days.
async fn with_past_from(test: &AlertTest, owner: TenantId, first: i64) -> Vec<Date> {
    let dates: Vec<_> = (first..first + 4)
        .map(|days| today().saturating_add(days.days()))
        .collect();
    let seen = dates
        .iter()
        .flat_map(|date| (1..=3).map(|ago| Seen(*date, ago, SearchStatus::Ok, Some(200))));
    test.insert_past(owner, &seen.collect::<Vec<_>>()).await;
    dates
}

/// Answers 60 for a date, and 200 for the others.
fn one_date_at_60(test: &AlertTest, date: Date) {
    let date = json!(date);
    test.respond_with(move |asked| {
        let price = if asked["departure_date"] == date {
            60
        } else {
            200
        };
        fares(&[price], asked)
    });
}

fn judged(slot: &Value) -> [&Value; 2] {
    let judged = &slot["judged"];
    [&judged["fired"], &judged["implausible"]]
}

#[tokio::test(flavor = "multi_thread")]
async fn an_implausible_price_is_stored_and_marked_and_fires_nothing() {
    let test = AlertTest::open().await;
    let own = tenant(test.pool(), &ring(), KEY).await;
    let dates = with_past(&test, own).await;
    pack_past_days(test.pool(), Timestamp::now()).await.unwrap();
    let rules = json!([
        {"type": "price_below", "amount": 150}, {"type": "new_low", "days": 30},
        {"type": "price_below", "amount": 150, "scope": "cell"}
    ]);
    let id = test.monitor(&of_dates(&dates, &rules)).await;
    one_date_at_60(&test, dates[0]);
    let slot = test.run(&id).await;
    assert_eq!(judged(&slot), [&json!(0), &json!(1)], "{slot}");
    assert_eq!(test.events(&id).await.len(), 0);
    let monitor = test.get(&format!("/v1/monitors/{id}")).await;
    assert_eq!(monitor["rule_standings"][1]["lowest"]["price"], 200);
    assert_eq!(monitor["last_slot"]["judged"]["implausible"], 1);
    let browser = Browser::sign_in(&test, KEY).await;
    for page in ["/monitors".to_owned(), format!("/monitors/{id}")] {
        let page = browser.page(&page).await;
        assert!(
            page.contains("1 implausible"),
            "beside the price of 60: {page}"
        );
    }
    let scan = format!("/scans/{}", slot["scan_id"].as_str().unwrap());
    let page = browser.page(&scan).await;
    assert!(
        page.contains("is implausible: usually 200"),
        "beside the cheapest: {page}"
    );

    // It is stored, and marked wherever a verdict is asked for.
    let usual = json!({"price": 200, "since": today().saturating_sub(3.days())});
    let sentence = format!(
        "implausible: the median of the last three days with a price, from {} on, was 200",
        today().saturating_sub(3.days()).strftime("%-d %B %Y")
    );
    let scan = slot["scan_id"].as_str().unwrap();
    let items = test
        .page(&format!(
            "/v1/scans/{scan}/items?sort=price&history_verdict=true"
        ))
        .await;
    let path = format!(
        "/v1/history/flights/latest?from_airport=TLV&to_airport=LHR&departure_from={0}&departure_to={0}&history_verdict=true",
        dates[0]
    );
    let latest = test.get(&path).await["data"][0].clone();
    assert_eq!(
        (&items[0]["best_price"], &latest["price"]),
        (&json!(60), &json!(60))
    );
    for marked in [&items[0], &latest] {
        let verdict = &marked["history_verdict"];
        assert_eq!(
            [
                &verdict["class"],
                &verdict["percentile"],
                &verdict["usual"],
                &verdict["sentence"]
            ],
            [
                &json!("implausible"),
                &Value::Null,
                &usual,
                &json!(sentence)
            ],
            "{marked}"
        );
    }
    assert_eq!(items[1]["history_verdict"]["class"], "insufficient");
    let series = test
        .get("/v1/history/flights/series?from_airport=TLV&to_airport=LHR&history_verdict=true")
        .await;
    let newest = series["data"].as_array().unwrap().last().unwrap();
    let fields = ["minimum", "implausible", "lowest_implausible"];
    assert_eq!(fields.map(|field| newest[field].clone()), [200, 1, 60]);
    assert_eq!(newest["history_verdict"]["class"], "insufficient");

    // The others follow: a sale. What was marked is not, now that its day has more prices, and counts as a
    // low.
    test.respond_with(|asked| fares(&[59], asked));
    let slot = test.run(&id).await;
    assert_eq!(judged(&slot), [&json!(6), &json!(0)], "{slot}");
    let latest = test.get(&path).await["data"][0].clone();
    assert_eq!(latest["history_verdict"]["class"], "insufficient");
    test.close().await;
}

/// A scan that someone submits, without a monitor: its page, its list, its grid and its stream.
#[tokio::test(flavor = "multi_thread")]
async fn an_implausible_price_is_not_the_best_of_its_scan() {
    let test = AlertTest::open().await;
    let own = tenant(test.pool(), &ring(), KEY).await;
    let dates = with_past(&test, own).await;
    one_date_at_60(&test, dates[2]);
    let mut body = json!({
        "endpoint": "flights/oneway",
        "request": {"from_airport": "TLV", "to_airport": "LHR", "currency": "USD"},
        "sweep": {"departure_date": dates}
    });
    let scan = test.submit(&body).await;
    test.all_ended().await;
    let path = format!("/v1/scans/{scan}");
    let ended = test.get(&path).await;
    let items = test.page(&format!("{path}/items")).await;
    assert_eq!(
        (&ended["best"]["price"], &ended["best"]["item"]),
        (&json!(200), &items[0]["id"]),
        "{ended}"
    );
    assert_eq!(
        ended["implausible"],
        json!([{
            "price": 60, "currency": "USD", "item": items[2]["id"],
            "usual": {"price": 200, "since": today().saturating_sub(3.days())}
        }])
    );
    assert_eq!(
        test.get("/v1/scans").await["data"][0],
        ended,
        "lists agree with it"
    );
    let grid = test.get(&format!("{path}/grid?rows=departure_date")).await;
    let shown: Vec<_> = array(&grid["cells"])
        .iter()
        .map(|cell| (&cell["price"], &cell["implausible"]))
        .collect();
    let (usual, absent) = (json!(200), Value::Null);
    let mut expected = vec![(&usual, &absent); 4];
    let (error, marked) = (json!(60), json!(true));
    expected[2] = (&error, &marked);
    assert_eq!(shown, expected, "stored and listed, and marked");
    let known = format!(
        "/v1/history/flights/grid?from_airport=TLV&to_airport=LHR&departure_from={}&departure_to={}&rows=departure_date",
        dates[0], dates[3]
    );
    let known = test.get(&known).await;
    let known: Vec<_> = array(&known["data"][0]["cells"])
        .iter()
        .map(|cell| (&cell["price"], &cell["implausible"]))
        .collect();
    assert_eq!(known, expected, "the grid of the last known prices");
    let browser = Browser::sign_in(&test, KEY).await;
    let page = browser.page(&format!("/scans/{scan}")).await;
    for shown in [
        "<s>60 USD</s></a> is implausible: usually 200",
        "60 USD, implausible: far off its own history",
    ] {
        assert!(page.contains(shown), "{shown}: {page}");
    }

    // Another sample of that date: its cell shows the plausible one.
    body["sweep"]["departure_date"] = json!([dates[2]]);
    body["sweep"]["samples"] = json!(2);
    let mut prices = [60, 210].into_iter().cycle();
    test.respond_with(move |asked| fares(&[prices.next().unwrap()], asked));
    let scan = test.submit(&body).await;
    test.all_ended().await;
    let path = format!("/v1/scans/{scan}");
    let grid = test.get(&format!("{path}/grid?rows=departure_date")).await;
    let cell = &grid["cells"][0];
    assert_eq!(
        (&cell["price"], &cell["implausible"]),
        (&json!(210), &Value::Null),
        "{grid}"
    );
    assert_eq!(test.get(&path).await["best"]["price"], 210);

    // All prices follow: a sale, and no price of it is left out.
    test.respond_with(|asked| fares(&[60], asked));
    body["sweep"] = json!({"departure_date": dates});
    let scan = test.submit(&body).await;
    test.all_ended().await;
    let ended = test.get(&format!("/v1/scans/{scan}")).await;
    assert_eq!(
        (&ended["best"]["price"], &ended["implausible"]),
        (&json!(60), &Value::Null),
        "{ended}"
    );

    // Too high is not too good to be true.
    test.respond_with(|asked| fares(&[460], asked));
    body["sweep"]["departure_date"] = json!([dates[0]]);
    let scan = test.submit(&body).await;
    test.all_ended().await;
    let ended = test.get(&format!("/v1/scans/{scan}")).await;
    assert_eq!(
        (&ended["best"]["price"], &ended["implausible"]),
        (&json!(460), &Value::Null),
        "{ended}"
    );
    test.close().await;
}

/// The morning's mark is gone when the others follow, and no verdict of the second run has it.
#[tokio::test(flavor = "multi_thread")]
async fn a_verdict_rule_sees_a_sale_whose_first_price_was_marked() {
    let test = AlertTest::open().await;
    let own = tenant(test.pool(), &ring(), KEY).await;
    test.insert_ladder(own).await;
    let dates = with_past_from(&test, own, 50).await;
    let rules = json!([{"type": "percentile_at_most", "percentile": 40, "scope": "cell"}]);
    let id = test.monitor(&of_dates(&dates, &rules)).await;
    one_date_at_60(&test, dates[0]);
    let slot = test.run(&id).await;
    assert_eq!(judged(&slot), [&json!(0), &json!(1)], "{slot}");
    test.respond_with(|asked| fares(&[60], asked));
    let slot = test.run(&id).await;
    assert_eq!(judged(&slot), [&json!(4), &json!(0)], "{slot}");
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_implausible_price_of_an_earlier_day_is_no_low_of_days() {
    let test = AlertTest::open().await;
    let own = tenant(test.pool(), &ring(), KEY).await;
    let date = today().saturating_add(60.days());
    let seen = [(5, 200), (4, 200), (3, 200), (2, 60), (1, 190)];
    let seen = seen.map(|(ago, price)| Seen(date, ago, SearchStatus::Ok, Some(price)));
    test.insert_past(own, &seen).await;
    let rules = json!([{"type": "new_low", "days": 30}]);
    let id = test.monitor(&of_dates(&[date], &rules)).await;
    test.respond_with(|asked| fares(&[170], asked));
    let slot = test.run(&id).await;
    assert_eq!(judged(&slot), [&json!(1), &json!(0)], "{slot}");
    assert_eq!(test.alerts(&id).await[0]["reference"]["price"], 190);
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_history_of_the_caller_no_price_is_implausible() {
    let test = AlertTest::open().await;
    let dates = with_past(&test, tenant(test.pool(), &ring(), OTHER).await).await;
    let rules = json!([{"type": "price_below", "amount": 150}]);
    let id = test.monitor(&of_dates(&dates, &rules)).await;
    one_date_at_60(&test, dates[0]);
    let slot = test.run(&id).await;
    assert_eq!(judged(&slot), [&json!(1), &json!(0)]);
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_price_of_nothing_is_no_price_and_arms_nothing() {
    let test = AlertTest::open().await;
    let dates = with_past(&test, tenant(test.pool(), &ring(), KEY).await).await;
    let rules = json!([{"type": "price_below", "amount": 250}]);
    let id = test.monitor(&of_dates(&dates, &rules)).await;
    test.respond_with(|asked| fares(&[200], asked));
    assert_eq!(judged(&test.run(&id).await), [&json!(1), &json!(0)]);
    // The cheapest date has no price, so it is not known that nothing is below 250.
    let first = json!(dates[0]);
    test.respond_with(move |asked| {
        let price = if asked["departure_date"] == first {
            0
        } else {
            300
        };
        fares(&[price], asked)
    });
    assert_eq!(test.run(&id).await["judged"]["fired"], 0);
    test.respond_with(|asked| fares(&[200], asked));
    assert_eq!(test.run(&id).await["judged"]["fired"], 0, "not armed again");
    test.close().await;
}
