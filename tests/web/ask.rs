//! `/ask`: what was read, what it costs, and that only a button spends.

use jiff::ToSpan as _;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::{Browser, Form, calls, forms, key, redirect, scan_ids};
use crate::history::fixture::HistoryFixture;
use crate::support::app::KEY;
use crate::support::{SearchOutcome, TestService, wait_until};

const ROUTE: &str = "/ask?q=tel+aviv+LHR+2030-03-01+to+2030-03-10+below+150";

/// The scan form of a page whose body has a strategy, or none.
fn scan_form(page: &str, has_strategy: bool) -> Form {
    let found = forms(page, "/scans/submit");
    let is_it = |form: &Form| {
        let body = form.fields.iter().find(|(name, _)| name == "body");
        body.is_some_and(|(_, body)| body.contains("strategy") == has_strategy)
    };
    found
        .into_iter()
        .find(is_it)
        .unwrap_or_else(|| panic!("{page}"))
}

/// The form of the watch, which the box of the question precedes.
fn tell_form(page: &str) -> Form {
    forms(page, "/ask").pop().unwrap()
}

/// The page after the redirect that gives it its key.
async fn asked(browser: &Browser<'_>, path: &str) -> (String, String) {
    let keyed = redirect(browser.get(path).await);
    assert!(keyed.contains("&once="), "{keyed}");
    (browser.page(&keyed).await, keyed)
}

async fn with_monitors(service: &TestService) -> Vec<Value> {
    let monitors = service.get("/v1/monitors").await;
    monitors["data"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_question_is_read_back_with_its_cost_and_spends_nothing() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let before = (calls(&service), scan_ids(&service).await);
    let browser = Browser::sign_in(&service, key()).await;
    let (page, _) = asked(&browser, ROUTE).await;
    for expected in [
        "Tel Aviv TLV",
        "from “tel aviv”",
        "1 Mar to 10 Mar 2030",
        "below 150 USD",
        "1 adult",
        "not said",
        "Find one below 150 USD · 1 to 10 requests",
        "Your key is stored, sealed, until you pause or delete the monitor",
        "Search all 10 · 10 requests",
        "Tell me below 150 USD · 10 requests a day",
        "Find the cheapest and tell me below 150 USD · 4 to 10 requests now, 10 a day",
    ] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    let after = (calls(&service), scan_ids(&service).await);
    assert_eq!(after, before, "a page spends nothing");
    assert_eq!(with_monitors(&service).await, Vec::<Value>::new());
}

#[tokio::test]
async fn a_button_makes_one_scan_however_often_it_is_pressed() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let browser = Browser::sign_in(&service, key()).await;
    let before = scan_ids(&service).await.len();
    let (page, keyed) = asked(&browser, ROUTE).await;
    let all = scan_form(&page, false);
    let scan = redirect(browser.send(&all).await);
    // Back, and the page that is loaded again.
    let again = scan_form(&browser.page(&keyed).await, false);
    for form in [&all, &again] {
        let twice = redirect(browser.send(form).await);
        assert_eq!(twice, format!("{scan}?already_started=true"));
    }
    assert_eq!(scan_ids(&service).await.len(), before + 1);
    let find = redirect(browser.send(&scan_form(&page, true)).await);
    assert_ne!(find, scan);
    assert_eq!(scan_ids(&service).await.len(), before + 2);
    service.complete_all(|_| SearchOutcome::Ok(100)).await;
    let id = scan.rsplit('/').next().unwrap();
    let items = service.items(id).await;
    assert_eq!(items.len(), 10);
    assert!(
        items
            .iter()
            .all(|item| item["search"]["to_airport"] == "LHR"),
        "{items:?}"
    );
}

/// A hotel in several markets: each is asked three times, and a watch reports each week.
#[tokio::test]
async fn markets_are_compared_and_watched() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let browser = Browser::sign_in(&service, key()).await;
    let now = jiff::Timestamp::now();
    let day = now.to_zoned(TimeZone::UTC).date() + 60.days();
    let path = format!("/ask?q=hotel+%22Hotel+Arts+Barcelona%22+{day}+3+nights+us+de+gb");
    let (page, _) = asked(&browser, &path).await;
    for expected in [
        "Compare the markets · 9 requests",
        "Compare each Monday, these dates · 9 to 18 requests a week",
        "Compare each Monday, always ",
        " days ahead · 9 to 18 requests a week",
    ] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    assert!(!page.contains("Find the cheapest"), "{page}");
    for form in forms(&page, "/monitors") {
        redirect(browser.send(&form).await);
    }
    let monitors = with_monitors(&service).await;
    assert_eq!(monitors.len(), 2, "{monitors:?}");
    // They are read only while there is time.
    wait_until("the page names its monitors", async || {
        let (page, _) = asked(&browser, &path).await;
        page.contains("Watched already: ")
    })
    .await;
    let checkins: Vec<_> = monitors
        .iter()
        .map(|monitor| monitor["scan"]["sweep"]["checkin_date"]["from"].clone())
        .collect();
    assert!(checkins.contains(&json!(day.to_string())), "{checkins:?}");
    // The run of the next Monday compares the date that was asked about.
    let rolling = checkins.iter().find_map(|date| {
        let days = date.as_str()?.strip_prefix('+')?.strip_suffix('d')?;
        days.parse::<i64>().ok()
    });
    let monday = day - rolling.unwrap().days();
    let checked = farescan_ask::body::day_of_last_check(now);
    assert_eq!(
        checked
            .nth_weekday(1, jiff::civil::Weekday::Monday)
            .unwrap(),
        monday,
        "{checkins:?}"
    );
    for monitor in monitors {
        // A report each week, whether or not anything has changed.
        assert_eq!(monitor["alerts"], json!([{"type": "every_run"}]));
        assert_eq!(monitor["scan"]["sweep"]["samples"], 3);
        assert_eq!(monitor["requests"]["max_per_month"], 90);
    }
}

/// A range that begins today: both watches look at all of its days that are left when they do.
#[tokio::test]
async fn a_range_from_today_can_be_watched() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let browser = Browser::sign_in(&service, key()).await;
    let path = "/ask?q=hotel+%22Hotel+Arts+Barcelona%22+next+30+days+us+de";
    let (page, _) = asked(&browser, path).await;
    assert!(!page.contains("Not on a schedule"), "{page}");
    for form in forms(&page, "/monitors") {
        redirect(browser.send(&form).await);
    }
    let monitors = with_monitors(&service).await;
    assert_eq!(monitors.len(), 2, "{monitors:?}");
    let offset = |date: &Value| -> Option<i64> {
        let days = date.as_str()?.strip_prefix('+')?.strip_suffix('d')?;
        days.parse().ok()
    };
    let lengths: Vec<_> = monitors
        .iter()
        .map(|monitor| &monitor["scan"]["sweep"]["checkin_date"])
        .filter_map(|range| Some(offset(&range["to"])? - offset(&range["from"])?))
        .collect();
    assert_eq!(lengths, [29], "as many days each week");
    let (page, _) = asked(&browser, "/ask?q=TLV+LHR+next+30+days+below+150").await;
    assert!(!page.contains("Not on a schedule"), "{page}");
    redirect(browser.send(&tell_form(&page)).await);
}

/// How often it looks and who hears of it, in words.
#[tokio::test]
async fn the_words_choose_the_days_and_the_channels_of_a_watch() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let browser = Browser::sign_in(&service, key()).await;
    let path =
        "/ask?q=TLV+LHR+2030-03-01+to+2030-03-10+below+150+every+friday+by+mail+check+weekly";
    let (page, _) = asked(&browser, path).await;
    for expected in [
        "each Monday",
        "from “check weekly”",
        "requests a week",
        "Looks each Monday at 06:00 UTC",
        "You have no such channel yet",
    ] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    redirect(browser.send(&tell_form(&page)).await);
    let monitors = with_monitors(&service).await;
    assert_eq!(monitors[0]["schedule"]["cron"], "0 6 * * mon");
    assert_eq!(
        monitors[0]["scan"]["sweep"]["departure_date"]["weekdays"],
        json!(["fri"])
    );
}

/// Each airport of a city can be asked alone.
#[tokio::test]
async fn a_city_of_several_airports_offers_each_alone() {
    let service = TestService::start().await;
    let browser = Browser::sign_in(&service, key()).await;
    let (page, _) = asked(&browser, "/ask?q=tel+aviv+london+2030-03-01").await;
    assert!(
        page.contains("href=\"/ask?q=tel+aviv+LHR+2030-03-01\""),
        "{page}"
    );
}

/// A question of more than a thousand searches, which can still be scanned whole.
#[tokio::test]
async fn what_cannot_be_asked_says_why() {
    let service = TestService::start().await;
    let browser = Browser::sign_in(&service, key()).await;
    let path = "/ask?q=tel+aviv+london+2030-01-01+to+2030-06-30+below+150";
    let (page, _) = asked(&browser, path).await;
    assert!(page.contains("Search all 1,086 · 1,086 requests"), "{page}");
    assert!(
        page.contains("Not as one question:") && page.contains("1000"),
        "{page}"
    );
}

#[tokio::test]
async fn without_the_token_of_the_page_nothing_is_made() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let browser = Browser::sign_in(&service, key()).await;
    let before = scan_ids(&service).await;
    let (page, _) = asked(&browser, ROUTE).await;
    let forged = scan_form(&page, false).with("form_token", "x");
    assert_eq!(browser.send(&forged).await.status, 403);
    assert_eq!(scan_ids(&service).await, before);
}

#[tokio::test]
async fn one_press_makes_the_watch_its_alert_and_its_limit() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let before = (calls(&service), scan_ids(&service).await);
    let browser = Browser::sign_in(&service, key()).await;
    let (page, _) = asked(&browser, ROUTE).await;
    let watch = tell_form(&page);
    let monitor = redirect(browser.send(&watch).await);
    assert_eq!(
        redirect(browser.send(&watch).await),
        monitor,
        "a double click is one monitor"
    );
    let monitors = with_monitors(&service).await;
    assert_eq!(monitors.len(), 1);
    let made = &monitors[0];
    assert_eq!(made["alerts"][0]["type"], "price_below");
    assert_eq!(made["alerts"][0]["amount"], 150);
    assert_eq!(
        made["scan"]["strategy"],
        json!({"watch": "below", "below": 150})
    );
    assert_eq!(made["scan"]["max_requests"], 10);
    assert_eq!(made["requests"]["max_per_month"], 310);
    let after = (calls(&service), scan_ids(&service).await);
    assert_eq!(after, before, "to make it spends nothing");
}

const NO_AMOUNT: &str = "/ask?q=tel+aviv+LHR+2030-03-01+to+2030-03-10";

#[tokio::test]
async fn without_an_amount_in_the_words_the_page_asks_for_it() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let browser = Browser::sign_in(&service, key()).await;
    let (page, keyed) = asked(&browser, NO_AMOUNT).await;
    for expected in ["Tell me below <input", "Tell me · 10 requests a day"] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    let watch = tell_form(&page);
    for (wrong, expected) in [
        ("", "an amount above 0"),
        ("0", "an amount above 0"),
        ("cheap", "cheap"),
    ] {
        let answer = browser.send(&watch.clone().with("below", wrong)).await;
        let text = answer.expect(400).text();
        assert!(
            text.contains("Nothing was done") && text.contains(expected),
            "{wrong}: {text}"
        );
    }
    assert_eq!(with_monitors(&service).await, Vec::<Value>::new());
    let first = redirect(browser.send(&watch.with("below", "140.50")).await);
    // Back, and the page that is loaded again.
    let again = tell_form(&browser.page(&keyed).await);
    let twice = redirect(browser.send(&again.clone().with("below", "140.50")).await);
    assert_eq!(twice, first);
    let other = redirect(browser.send(&again.with("below", "90")).await);
    assert_ne!(other, first, "another amount is another monitor");
    let id = first.rsplit('/').next().unwrap();
    let made = service.get(&format!("/v1/monitors/{id}")).await;
    assert_eq!(made["alerts"][0]["amount"], json!(140.5));
    assert_eq!(
        made["scan"]["strategy"],
        json!({"watch": "below", "below": 140.5})
    );
}

/// What a watch costs is said before its amount is known.
#[tokio::test]
async fn the_cost_of_a_watch_does_not_depend_on_its_amount() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let browser = Browser::sign_in(&service, key()).await;
    let mut said = Vec::new();
    for amount in ["", "+below+1", "+below+150", "+below+99999"] {
        let (page, _) = asked(&browser, &format!("/ask?q=tel+aviv+london+2030-03{amount}")).await;
        let (_, hint) = page.split_once("Looks each day").unwrap();
        said.push(hint.split_once("</p>").unwrap().0.to_owned());
    }
    assert!(said.iter().all(|hint| *hint == said[0]), "{said:?}");
    assert!(said[0].contains("of the 186 searches"), "{said:?}");
}

#[tokio::test]
async fn one_press_searches_and_watches_and_a_second_does_neither() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let browser = Browser::sign_in(&service, key()).await;
    let before = scan_ids(&service).await.len();
    let (page, keyed) = asked(&browser, NO_AMOUNT).await;
    let both = tell_form(&page).with("below", "150").with("find", "true");
    let path = redirect(browser.send(&both).await);
    let (scan, monitor) = path.split_once("?watched=").unwrap();
    let again = redirect(browser.send(&both).await);
    assert_eq!(again, format!("{path}&already_started=true"));
    // Each half has a button of its own, which has done it too.
    let page = browser.page(&keyed).await;
    let alone = redirect(browser.send(&scan_form(&page, true)).await);
    assert_eq!(alone, format!("{scan}?already_started=true"));
    let alone = redirect(browser.send(&tell_form(&page).with("below", "150")).await);
    assert_eq!(alone, format!("/monitors/{monitor}"));
    assert_eq!(scan_ids(&service).await.len(), before + 1);
    assert_eq!(with_monitors(&service).await.len(), 1);
    let of_scan = browser.page(&path).await;
    assert!(
        of_scan.contains(&format!("href=\"/monitors/{monitor}\"")),
        "{of_scan}"
    );
    let id = scan.rsplit('/').next().unwrap();
    let strategy = &service.scan(id).await["strategy"];
    assert_eq!(strategy["find"], "cheapest", "{strategy}");
}

/// The search is refused after the watch was made: the page leads to what exists, and says what does not.
#[tokio::test]
async fn half_of_both_is_said_and_can_be_completed() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let browser = Browser::sign_in(&service, key()).await;
    let (page, _) = asked(&browser, NO_AMOUNT).await;
    let both = tell_form(&page).with("below", "150").with("find", "true");
    let mut scans = Vec::new();
    for _ in 0..100 {
        scans.push(service.submit(&crate::support::fares(1)).await);
    }
    let answer = browser.send(&both).await;
    assert_eq!(answer.status, 429, "{}", answer.text());
    let text = answer.text();
    let monitors = with_monitors(&service).await;
    assert_eq!(monitors.len(), 1);
    let link = format!("href=\"/monitors/{}\"", monitors[0]["id"].as_str().unwrap());
    for expected in [
        "Watched, but not searched",
        "live scans",
        &link,
        "below 150",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    service.command(&scans[0], "cancel", &json!({})).await;
    let path = redirect(browser.send(&both).await);
    assert!(path.contains("?watched="), "{path}");
    assert_eq!(with_monitors(&service).await.len(), 1);
}

#[tokio::test]
async fn refused_words_spend_nothing_and_lead_to_what_is_meant() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let before = (calls(&service), scan_ids(&service).await);
    let browser = Browser::sign_in(&service, key()).await;
    for (words, expected) in [
        ("tel+aviv+lodnon+march", "/ask?q=tel+aviv+LCY+or+LGW+or+LHR"),
        ("tel+aviv+portland+march", "/ask?q=tel+aviv+PDX+march"),
        ("tel+aviv+anywhere+march", "/ask?q=tel+aviv+Rome+march"),
        ("TLV+QQQ+march", "No airport or city has this code."),
        ("TLV+germany+march", "is a country"),
        ("TLV+LHR", "/ask?q=TLV+LHR%2C+next+month"),
        // Several mistakes are corrected at once.
        (
            "tel+avvi+LHR+marhc",
            "Did you mean <a href=\"/ask?q=TLV+LHR+march\">",
        ),
        (
            "TLV+LHR+march+twice+a+day",
            "/ask?q=TLV+LHR+march+each+week",
        ),
        ("%3Cscript%3Ealert(1)%3C/script%3E", "&lt;"),
    ] {
        let page = browser
            .get(&format!("/ask?q={words}"))
            .await
            .expect(422)
            .text();
        assert!(
            page.contains("Nothing was searched") && page.contains(expected),
            "{words}: {page}"
        );
        assert!(forms(&page, "/scans/submit").is_empty(), "{words}");
        assert!(!page.contains("<script>"), "{words}");
    }
    assert_eq!((calls(&service), scan_ids(&service).await), before);
}

#[tokio::test]
async fn known_prices_stand_below_the_question() {
    let fixture = HistoryFixture::open().await;
    let today = fixture.now.to_zoned(TimeZone::UTC).date();
    let day = |days: i64| today.saturating_add(days.days());
    let days = [20, 21, 29].map(|days| day(days).to_string());
    let known = days.iter().zip([137, 170, 180]);
    let known: Vec<_> = known
        .map(|(day, price)| fixture.fare(day, -125, Some(price)))
        .collect();
    fixture.insert(&known).await;
    let browser = Browser::sign_in(&fixture, KEY).await;
    let path = format!("/ask?q=TLV+LHR+{}+to+{}", days[0], day(27));
    let (page, _) = asked(&browser, &path).await;
    let cheapest = format!("{}: 137 USD", day(20).strftime("%a %-d %b %Y"));
    let answer = format!("{}, 137 USD</a>, 2 h ago", day(20).strftime("%-d %B"));
    for expected in ["Known prices", "2 of 8 dates", &cheapest, &answer] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    assert!(!page.contains("180 USD"), "of a date that was not asked");
    let (one, _) = asked(&browser, &format!("/ask?q=TLV+LHR+{}", days[0])).await;
    assert!(one.contains(&cheapest), "of one date: {one}");
    let (two, _) = asked(&browser, &format!("/ask?q=TLV+LHR+{}+2+adults", days[0])).await;
    assert!(!two.contains(&cheapest), "those of another party: {two}");
    assert!(
        two.contains("No price of these dates is known yet."),
        "{two}"
    );
}

/// A price below the amount that is known from today makes the alert the first button, an older one does not.
#[tokio::test]
async fn a_new_price_below_the_amount_is_not_searched_for_first() {
    let fixture = HistoryFixture::open().await;
    let today = fixture.now.to_zoned(TimeZone::UTC).date();
    let days = [20, 40].map(|days| today.saturating_add(days.days()).to_string());
    let minutes = [-125, -26 * 60];
    let known: Vec<_> = days
        .iter()
        .zip(minutes)
        .map(|(day, minutes)| fixture.fare(day, minutes, Some(137)))
        .collect();
    fixture.insert(&known).await;
    let browser = Browser::sign_in(&fixture, KEY).await;
    let first = "class=\"primary\" type=\"submit\">Tell me below 150 USD";
    for (day, below, is_first) in [
        (&days[0], 150, true),
        (&days[0], 137, false),
        (&days[1], 150, false),
    ] {
        let path = format!("/ask?q=TLV+LHR+{day}+to+{day}+below+{below}");
        let (page, _) = asked(&browser, &path).await;
        assert_eq!(page.contains(first), is_first, "{day} {below}: {page}");
        let already = "2 h ago: below your amount already";
        assert_eq!(page.contains(already), is_first, "{day} {below}: {page}");
        assert!(page.contains("137 USD</a>"), "{day} {below}: {page}");
    }
}

/// All airports of a city: one calendar of the cheapest of each date, which names its airport.
#[tokio::test]
async fn a_city_shows_the_cheapest_known_price_of_all_its_airports() {
    let fixture = HistoryFixture::open().await;
    let today = fixture.now.to_zoned(TimeZone::UTC).date();
    let days = [20, 21, 22, 23].map(|days| today.saturating_add(days.days()).to_string());
    let fare = |airport: &str, day: &str, minutes, price| {
        let body = json!({"from_airport": "TLV", "to_airport": airport, "departure_date": day});
        fixture.observation("flights/oneway", body, minutes, Some(price))
    };
    let known = [
        fare("LHR", &days[0], -30, 210),
        fare("LTN", &days[0], -185, 118),
        fare("STN", &days[1], -60 * 50, 131),
        fare("LGW", &days[2], -5, 190),
        // Not an airport of the city.
        fare("CDG", &days[1], -5, 60),
    ];
    fixture.insert(&known).await;
    let browser = Browser::sign_in(&fixture, KEY).await;
    let before = calls(&fixture);
    let path = format!("/ask?q=tel+aviv+london+{}+to+{}", days[0], days[3]);
    let (page, _) = asked(&browser, &path).await;
    let day = |text: &str| text.parse::<jiff::civil::Date>().unwrap();
    let cheapest = day(&days[0]).strftime("%-d %B").to_string();
    for expected in [
        &format!("{cheapest}, 118 USD</a>, LTN, 3 h ago"),
        "3 of 4 dates",
        "<small>LTN</small>",
        "<small>STN</small>",
        "<small>LGW</small>",
        "pale: found a day ago",
        "not searched yet",
        // The amount that the page offers.
        "value=\"118\"",
    ] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    assert!(
        !page.contains("<b>210"),
        "the dearer airport of a date: {page}"
    );
    let link = format!("date={}#over-time\">{cheapest}", days[0]);
    let (before_link, _) = page
        .split_once(&link)
        .unwrap_or_else(|| panic!("{link}: {page}"));
    let href = before_link
        .rsplit('"')
        .next()
        .unwrap()
        .replace("&amp;", "&");
    let of_price = browser.page(&format!("{href}date={}", days[0])).await;
    assert!(
        of_price.contains("TLV → LTN") && of_price.contains("118"),
        "{of_price}"
    );
    assert_eq!(calls(&fixture), before, "a page searches nothing");
}

#[tokio::test]
async fn the_overview_leads_to_the_question() {
    let service = TestService::start().await;
    let browser = Browser::sign_in(&service, key()).await;
    let page = browser.page("/overview").await;
    assert!(
        page.contains("action=\"/find\"") && page.contains("id=\"ask\" name=\"q\""),
        "{page}"
    );
    let empty = browser.page("/ask").await;
    assert!(
        empty.contains("autofocus") && empty.contains("For example"),
        "{empty}"
    );
}
