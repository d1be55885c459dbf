//! What comes late, twice, or after the database has forgotten what it was about.

use farescan::ids::AttemptId;
use farescan::queue::Claim;
use farescan::queue::give_up::give_up_unsent;
use farescan::queue::store::{self, FinishedCall, LaneClaims, UnknownCall, Verdict};
use jiff::{SignedDuration, Timestamp};

use super::yard::{Yard, ok, rejected, scan_of};

const LANE: &str = "select concat_ws(' ', pause_reason, round(extract(epoch from nullif(paused_until, 'infinity') - now()) / 10)) from lanes where tenant_id = $1";

fn refused(call: Claim, reason: &'static str, seconds: f64, since: SignedDuration) -> FinishedCall {
    let ended_at = Timestamp::now() - since;
    FinishedCall {
        pause_reason: Some(reason),
        pause_seconds: Some(seconds),
        ended_at,
        ..rejected(call)
    }
}

#[tokio::test]
async fn a_pause_that_is_stored_late_lasts_from_its_answer() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    yard.submit(scan_of(3)).await;
    let calls = yard.call(worker, 3).await;
    let days = |days: i64| SignedDuration::from_hours(24 * days);
    yard.record(&[refused(
        calls[0],
        "quota_exhausted",
        20.0 * 86_400.0,
        days(21),
    )])
    .await;
    assert_eq!(
        yard.lane(LANE).await.as_deref(),
        Some(""),
        "20 days that began 21 days ago are over"
    );
    yard.record(&[refused(
        calls[1],
        "quota_exhausted",
        1_000.0,
        SignedDuration::from_secs(600),
    )])
    .await;
    assert_eq!(yard.lane(LANE).await.as_deref(), Some("quota_exhausted 40"));
    yard.record(&[refused(
        calls[2],
        "rate_limited",
        60.0,
        SignedDuration::from_secs(61),
    )])
    .await;
    let slowed = yard
        .lane("select slowed_at::text from lanes where tenant_id = $1")
        .await;
    assert_eq!(slowed, None, "a limit that is over slows nothing");
}

#[tokio::test]
async fn a_refusal_that_is_stored_twice_stops_the_lane_once() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    yard.submit(scan_of(1)).await;
    let call = yard.call(worker, 1).await[0];
    yard.record(&[rejected(call)]).await;
    assert_eq!(yard.lane(LANE).await.as_deref(), Some("key_rejected"));
    yard.run("update lanes set paused_until = null, pause_reason = null")
        .await;
    assert_eq!(yard.record(&[rejected(call)]).await, 0);
    assert_eq!(yard.lane(LANE).await.as_deref(), Some(""));
}

/// What a standby knows that was promoted before it had heard of the calls' begin.
async fn forget_calls(yard: &Yard) {
    yard.run(
        "delete from attempts;
         update scan_items set state = 'pending', attempt = 0, calls = 0, counted_calls = 0, requests_spent = 0, worker_id = null,
                               claimed_at = null;
         update scans set status = 'queued', started_at = null, requests_spent = 0;
         update lanes set next_at = clock_timestamp(), virtual_time = 0",
    )
    .await;
}

async fn begun(yard: &Yard, claim: Claim) -> AttemptId {
    let attempt = AttemptId::new();
    assert_eq!(
        store::begin(&yard.pool, &[(claim, attempt)], Timestamp::now())
            .await
            .unwrap(),
        [Verdict::Begun]
    );
    attempt
}

#[tokio::test]
async fn an_answer_whose_row_was_lost_is_stored_and_counted() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    let scan = yard.submit(scan_of(1).max_requests(1)).await;
    let claim = yard.claim(worker, 1).await[0].claim;
    let attempt = begun(&yard, claim).await;
    forget_calls(&yard).await;
    let answer = FinishedCall {
        attempt_id: Some(attempt.uuid()),
        ..ok(claim)
    };
    assert_eq!(
        (
            yard.record(std::slice::from_ref(&answer)).await,
            yard.record(&[answer]).await
        ),
        (1, 0),
        "once"
    );
    assert_eq!(yard.item(claim.item).await, "done ok");
    assert_eq!(yard.attempt(claim).await, "1 ok");
    let seen = yard.scan(scan).await;
    assert_eq!(
        (seen.status.as_str(), seen.ok, seen.requests_spent),
        ("completed", 1, 1)
    );
    assert_eq!(
        yard.claim(worker, 1).await.len(),
        0,
        "it is not called again"
    );
}

#[tokio::test]
async fn an_answer_whose_attempt_alone_is_gone_is_counted_once() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    let scan = yard.submit(scan_of(2)).await;
    let claims = yard.claim(worker, 2).await;
    let mut answers = Vec::new();
    for claimed in &claims {
        answers.push(FinishedCall {
            attempt_id: Some(begun(&yard, claimed.claim).await.uuid()),
            ..ok(claimed.claim)
        });
    }
    // The second never reached the marketplace.
    answers[1].billed = 0;
    yard.run("delete from attempts").await;
    assert_eq!(yard.record(&answers).await, 2);
    let seen = yard.scan(scan).await;
    assert_eq!(
        (seen.status.as_str(), seen.ok, seen.requests_spent),
        ("completed", 2, 1)
    );
    assert_eq!(
        (
            yard.attempt(claims[0].claim).await.as_str(),
            yard.attempt(claims[1].claim).await.as_str()
        ),
        ("1 ok", "0 ok")
    );
}

#[tokio::test]
async fn an_answer_is_never_stored_as_that_of_another_call() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    let scan = yard.submit(scan_of(1)).await;
    let first = yard.claim(worker, 1).await[0].claim;
    let lost = begun(&yard, first).await;
    forget_calls(&yard).await;
    let second = yard.claim(worker, 1).await[0].claim;
    assert_eq!(
        (first.item, first.number),
        (second.item, second.number),
        "the number is given again"
    );
    let live = begun(&yard, second).await;
    yard.record(&[FinishedCall {
        attempt_id: Some(lost.uuid()),
        billed: 2,
        ..ok(first)
    }])
    .await;
    assert_eq!(
        yard.item(first.item).await,
        "calling",
        "the call that is under way runs on"
    );
    yard.record(&[FinishedCall {
        attempt_id: Some(live.uuid()),
        ..ok(second)
    }])
    .await;
    assert_eq!(
        (
            yard.item(first.item).await.as_str(),
            yard.scan(scan).await.requests_spent
        ),
        ("done ok", 3)
    );
    assert_eq!(yard.attempt(second).await, "1 ok");
    assert_eq!(
        yard.attempt(Claim { number: 2, ..first }).await,
        "2 ok",
        "the lost one has a number of its own"
    );
    let ceilings = sqlx::query_scalar::<_, i64>("select count(max_requests) from scans")
        .fetch_one(&yard.pool)
        .await
        .unwrap();
    assert_eq!(ceilings, 0, "a scan without a ceiling gets none");
}

#[tokio::test]
async fn a_number_that_is_on_record_is_not_begun_again() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    yard.submit(scan_of(1)).await;
    let first = yard.call(worker, 1).await[0];
    yard.run(
        "update scan_items set state = 'pending', attempt = 0, worker_id = null;
         update lanes set next_at = clock_timestamp(), virtual_time = 0",
    )
    .await;
    let second = yard.claim(worker, 1).await;
    assert_eq!(second[0].claim.number, first.number);
    assert_eq!(yard.begin(&second).await, [Verdict::Gone]);
    yard.give_up(&[second[0].claim]).await;
    assert_eq!(
        yard.call(worker, 1).await[0].number,
        2,
        "it goes on with the next"
    );
}

#[tokio::test]
async fn a_call_of_which_nothing_is_known_is_told() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    yard.submit(scan_of(2)).await;
    let calls = yard.call(worker, 2).await;
    yard.run("delete from attempts").await;
    let gone = Claim {
        item: farescan::ids::ItemId::new(),
        ..calls[1]
    };
    let told = [
        ok(calls[0]),
        FinishedCall {
            attempt_id: Some(AttemptId::new().uuid()),
            ..ok(gone)
        },
    ];
    assert_eq!(yard.record(&told).await, 0);
    let mut connection = yard.pool.acquire().await.unwrap();
    let unknown = store::unknown_calls(&mut connection, &told.iter().collect::<Vec<_>>())
        .await
        .unwrap();
    let expected = [(calls[0].item, true), (gone.item, false)];
    assert_eq!(
        unknown,
        expected.map(|(item, has_item)| UnknownCall {
            item: item.uuid(),
            has_item
        })
    );
}

#[tokio::test]
async fn a_call_that_began_and_was_not_sent_is_no_request() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    let scan = yard.submit(scan_of(2).max_requests(2)).await;
    let calls = yard.call(worker, 2).await;
    let lane = LaneClaims {
        tenant: yard.tenant,
        api: "flights".to_owned(),
        items: vec![calls[0].item.uuid()],
        numbers: vec![calls[0].number],
    };
    for _ in 0..2 {
        assert_eq!(
            give_up_unsent(&yard.pool, &lane).await.unwrap(),
            0,
            "none is lost"
        );
    }
    assert_eq!(yard.scan(scan).await.requests_spent, 1);
    assert_eq!(
        yard.states(scan).await,
        [("calling".to_owned(), 1), ("pending".to_owned(), 1)].into()
    );
    let again = yard.call(worker, 1).await[0];
    assert_eq!((again.item, again.number), (calls[0].item, 2));
    yard.record(&[ok(calls[1]), ok(again)]).await;
    assert_eq!(
        (
            yard.scan(scan).await.status.as_str(),
            yard.scan(scan).await.requests_spent
        ),
        ("completed", 2)
    );
}
