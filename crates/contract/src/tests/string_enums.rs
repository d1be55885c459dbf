//! String enums: endpoints, states, error types.

use crate::monitors::{MonitorPause, MonitorStatus, RuleScope, RuleType, SlotKind, SlotOutcome};
use crate::plans::PlanName;
use crate::primitives::SortType;
use crate::quota::PaceSource;
use crate::scans::{
    DecisionReason, Expand, FindGoal, ItemSort, ItemState, PauseReason, Priority, RetryStatus,
    ScanStatus, WatchGoal, Weekday,
};
use crate::usage::UsageGroup;
use crate::verify::{VerifyReason, VerifyScope};
use crate::{Api, Endpoint, ErrorBody, ErrorType, SearchStatus, Verdict};
use serde_json::json;

macro_rules! vocabularies {
    ($( $name:ident: $( $word:literal )+; )+) => { $( {
        let words: Vec<_> = $name::ALL.iter().map(|word| word.as_str()).collect();
        assert_eq!(words, [$( $word ),+]);
        for word in $name::ALL {
            let text = word.as_str();
            assert_eq!(($name::parse(text), text.parse()), (Some(*word), Ok(*word)));
            assert_eq!((word.to_string(), json!(word)), (text.to_owned(), json!(text)));
            assert_eq!(serde_json::from_value::<$name>(json!(text)).unwrap(), *word);
        }
        assert_eq!($name::parse("no such word"), None);
        assert!(serde_json::from_value::<$name>(json!("no such word")).is_err());
    } )+ };
}

#[test]
fn the_words_of_the_wire() {
    vocabularies! {
        Api: "flights" "hotels";
        Endpoint: "flights/oneway" "flights/roundtrip" "hotels/search" "hotels/by-name" "hotels/rooms" "hotels/resolve";
        SearchStatus: "ok" "empty" "partial" "degraded";
        Verdict: "low" "typical" "high";
        SortType: "Overall" "Price" "Duration";
        VerifyScope: "flights" "hotels" "both";
        VerifyReason: "subscribed" "not_subscribed" "invalid_key" "quota_exhausted";
        ScanStatus: "queued" "running" "paused" "completed" "incomplete" "cancelled";
        PauseReason: "by_caller" "rate_limited" "quota_exhausted" "key_rejected" "not_subscribed" "budget_spent"
            "reserve_reached" "key_expired" "upstream_down" "moving";
        ItemState: "pending" "running" "done" "failed" "cancelled" "skipped";
        FindGoal: "cheapest" "below";
        WatchGoal: "cheapest" "below";
        DecisionReason: "cheapest_again" "longest_unseen" "every_fourth" "lowest_bound" "nothing_known" "found" "nothing_below"
            "nothing_better" "limit_reached" "nothing_left" "retried";
        Priority: "interactive" "scheduled";
        ItemSort: "position" "price";
        Expand: "answer";
        PlanName: "basic" "pro" "ultra" "mega";
        PaceSource: "start" "headers" "after_429" "caller";
        UsageGroup: "day" "endpoint" "scan" "monitor";
        MonitorStatus: "active" "paused";
        MonitorPause: "by_caller" "key_rejected" "not_subscribed";
        SlotKind: "schedule" "manual";
        SlotOutcome: "ran" "late" "missed" "overlap" "monthly_ceiling" "failed";
        RuleType: "price_below" "drop_percent" "verdict" "new_low" "available" "sold_out" "parity_gap_percent" "stale" "percentile_at_most" "back_in_stock" "every_run" "plan_ends_before_reset";
        RuleScope: "scan" "cell";
        RetryStatus: "partial" "degraded" "failed";
        Weekday: "mon" "tue" "wed" "thu" "fri" "sat" "sun";
    }
}

#[test]
fn an_unknown_word_is_told_the_words() {
    let message = "typcial\u{7}".parse::<Verdict>().unwrap_err().to_string();
    assert_eq!(
        message,
        "\"typcial\\u{7}\" is not one of `low`, `typical`, `high`"
    );
}

#[test]
fn ended_scans() {
    let ended: Vec<_> = ScanStatus::ALL
        .iter()
        .filter(|status| status.is_ended())
        .collect();
    assert_eq!(
        ended,
        [
            &ScanStatus::Completed,
            &ScanStatus::Incomplete,
            &ScanStatus::Cancelled
        ]
    );
}

#[test]
fn weekdays_are_the_calendars() {
    use jiff::civil::Weekday as Day;
    let days = [
        Day::Monday,
        Day::Tuesday,
        Day::Wednesday,
        Day::Thursday,
        Day::Friday,
        Day::Saturday,
        Day::Sunday,
    ];
    assert_eq!(
        Weekday::ALL
            .iter()
            .map(|day| Day::from(*day))
            .collect::<Vec<_>>(),
        days
    );
}

/// gateway.md, rule 36.
#[test]
fn every_error_type_and_its_status() {
    let listed = [
        ("invalid_request", 400),
        ("missing_api_key", 401),
        ("invalid_api_key", 401),
        ("not_subscribed", 403),
        ("not_found", 404),
        ("search_incomplete", 503),
        ("method_not_allowed", 405),
        ("invalid_state", 409),
        ("key_not_accepted", 409),
        ("payload_too_large", 413),
        ("idempotency_mismatch", 422),
        ("too_many_requests", 429),
        ("internal", 500),
        ("upstream_error", 502),
        ("upstream_unreachable", 502),
        ("upstream_invalid_response", 502),
        ("unavailable", 503),
        ("key_custody_disabled", 503),
        ("not_cached", 504),
        ("upstream_timeout", 504),
    ];
    let ours: Vec<_> = ErrorType::ALL
        .iter()
        .map(|kind| (kind.as_str(), kind.status()))
        .collect();
    assert_eq!(ours, listed);
}

#[test]
fn the_error_form() {
    let plain = ErrorBody::new(ErrorType::NotFound, "no such scan");
    assert_eq!(
        json!(plain),
        json!({"error": {"type": "not_found", "message": "no such scan", "details": []}})
    );
    let incomplete = ErrorBody::search_incomplete("blocked_page", "try again");
    let wire = json!({"error": {"type": "search_incomplete", "reason": "blocked_page", "message": "try again", "details": []}});
    assert_eq!(json!(incomplete), wire);
    assert_eq!(
        serde_json::from_value::<ErrorBody>(wire).unwrap(),
        incomplete
    );
}
