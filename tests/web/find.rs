//! `/find`, the box in the head of every page, and `farescan find`, which finds the same.

use serde_json::json;

use super::{Browser, key, redirect, service_with_scan};
use crate::cli::monitors::{cli, out};
use crate::monitors::with;
use crate::support::{SearchOutcome, fares_with};

const OTHER: &str = "another-key-0123456789";

#[tokio::test(flavor = "multi_thread")]
async fn a_name_an_airport_and_an_id_are_found_and_other_words_are_asked() {
    let (service, fares) = service_with_scan().await;
    let hotel = json!({
        "endpoint": "hotels/by-name", "request": {"hotel_name": "Hotel Arts"}, "tags": ["spring 100%"],
        "sweep": {"checkin_date": ["2030-01-01"], "nights": [3]}
    });
    let hotel = service
        .submit_and_complete(&hotel, |_| SearchOutcome::Ok(100))
        .await;
    let watched = with(&json!({"name": "January <fares>"}));
    let watched = service.create_monitor(&watched).await;
    let browser = Browser::sign_in(&service, key()).await;
    for path in ["/overview", "/scans"] {
        let page = browser.page(path).await;
        assert_eq!(page.matches("action=\"/find\"").count(), 1, "{page}");
    }
    for (words, expected) in [
        ("arts", [false, true, false]),
        ("100%25", [false, true, false]),
        ("january", [false, false, true]),
        ("lhr", [true, false, true]),
        ("TLV LHR", [true, false, true]),
        ("lhr  TLV", [true, false, true]),
        ("lhr january", [false, false, true]),
    ] {
        let page = browser.page(&format!("/find?q={words}")).await;
        let paths = [
            format!("/scans/{fares}\""),
            format!("/scans/{hotel}\""),
            format!("/monitors/{watched}\""),
        ];
        assert_eq!(paths.map(|path| page.contains(&path)), expected, "{words}");
        let shown = out(&service, &["find", &words.replace("%25", "%")]);
        let ids = [&fares, &hotel, &watched].map(|id| shown.contains(&id[..16]));
        assert_eq!(ids, expected, "{words}: {shown}");
        assert!(page.contains("href=\"/ask?q="), "{words} can be asked");
        assert!(!page.contains("<fares>"), "names are escaped");
    }
    let leads = async |words: &str| redirect(browser.get(&format!("/find?q={words}")).await);
    assert_eq!(leads(&fares).await, format!("/scans/{fares}"));
    assert_eq!(leads(&watched).await, format!("/monitors/{watched}"));
    assert_eq!(
        leads("berlin+paris+march").await,
        "/ask?q=berlin+paris+march"
    );
    // Nothing contains both.
    assert_eq!(leads("lhr+arts").await, "/ask?q=lhr+arts");
    assert_eq!(leads("a%00b").await, "/ask?q=a%00b");
    let long = "x".repeat(400);
    assert_eq!(leads(&long).await, format!("/ask?q={long}"));
    for words in [
        &["find", &fares] as &[&str],
        &["find", &fares, "-n", "5"],
        &["find", "--json", &fares],
    ] {
        assert!(out(&service, words).contains(&fares), "{words:?}");
    }
    assert!(out(&service, &[&watched[..16]]).contains(&watched));
    let both = out(&service, &["find", "TLV", "LHR", "--json"]);
    assert_eq!(both.lines().count(), 2, "{both}");
    let nothing = cli(&service, &["find", "berlin's", "zoo"]);
    let asks = r"`farescan ask 'berlin'\''s zoo'`";
    assert!(nothing.err.contains(asks), "{nothing:?}");
    // A whole question is asked, also one whose words a label has.
    let question = "tlv+lhr+march";
    let label = json!({"label": question.replace('+', " ")});
    service
        .submit_and_complete(&fares_with(1, &label), |_| SearchOutcome::Ok(100))
        .await;
    assert_eq!(leads(question).await, format!("/ask?q={question}"));
    // Nothing of another caller is found.
    let stranger = Browser::sign_in(&service, OTHER).await;
    let answer = stranger.get("/find?q=arts").await;
    assert_eq!(redirect(answer), "/ask?q=arts");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_list_leads_to_all_of_its_scans() {
    let (service, _) = service_with_scan().await;
    let one = json!({"endpoint": "hotels/by-name", "request": {"hotel_name": "Hotel Arts"},
        "sweep": {"checkin_date": ["2030-01-01"], "nights": [3]}});
    for _ in 0..11 {
        service
            .submit_and_complete(&one, |_| SearchOutcome::Ok(100))
            .await;
    }
    let browser = Browser::sign_in(&service, key()).await;
    let page = browser.page("/find?q=Arts").await;
    assert!(page.contains("href=\"/scans?text=Arts\""), "{page}");
    let all = browser.page("/scans?text=Arts").await;
    assert_eq!(all.matches("href=\"/scans/scn_").count(), 11, "{all}");
    for (words, most) in [(vec![], 10), (vec!["-n", "3"], 3)] {
        let words = [vec!["find", "Arts", "--json"], words].concat();
        let lines = out(&service, &words);
        assert_eq!(lines.lines().count(), most, "{words:?}: {lines}");
    }
}
