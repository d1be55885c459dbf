//! Answers that are recorded late, twice, or after the database has lost their rows.

use farescan::ids::AttemptId;
use farescan::queue::Claim;
use farescan::queue::abandon::abandon_unsent;
use farescan::queue::store::{self, BeginVerdict, CallRecord, LaneClaims, UnrecordedCall};
use jiff::{SignedDuration, Timestamp};

use super::fixture::{QueueFixture, ok, rejected, scan_of};

const LANE_PAUSE: &str = "select concat_ws(' ', pause_reason, round(extract(epoch from nullif(paused_until, 'infinity') - now()) / 10)) from lanes where tenant_id = $1";

fn rejected_with_pause(
    call: Claim,
    reason: &'static str,
    seconds: f64,
    since: SignedDuration,
) -> CallRecord {
    let ended_at = Timestamp::now() - since;
    CallRecord {
        pause_reason: Some(reason),
        pause_seconds: Some(seconds),
        ended_at,
        ..rejected(call)
    }
}

#[tokio::test]
async fn a_pause_recorded_late_is_measured_from_its_answer() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    fixture.submit(scan_of(3)).await;
    let calls = fixture.claim_and_begin(worker, 3).await;
    let days = |days: i64| SignedDuration::from_hours(24 * days);
    fixture
        .record(&[rejected_with_pause(
            calls[0],
            "quota_exhausted",
            20.0 * 86_400.0,
            days(21),
        )])
        .await;
    assert_eq!(
        fixture.lane_value(LANE_PAUSE).await.as_deref(),
        Some(""),
        "20 days that began 21 days ago are over"
    );
    fixture
        .record(&[rejected_with_pause(
            calls[1],
            "quota_exhausted",
            1_000.0,
            SignedDuration::from_secs(600),
        )])
        .await;
    assert_eq!(
        fixture.lane_value(LANE_PAUSE).await.as_deref(),
        Some("quota_exhausted 40")
    );
    fixture
        .record(&[rejected_with_pause(
            calls[2],
            "rate_limited",
            60.0,
            SignedDuration::from_secs(61),
        )])
        .await;
    let slowed = fixture
        .lane_value("select slowed_at::text from lanes where tenant_id = $1")
        .await;
    assert_eq!(slowed, None, "a limit that is over slows nothing");
}

#[tokio::test]
async fn a_rejection_recorded_twice_stops_the_lane_once() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    fixture.submit(scan_of(1)).await;
    let call = fixture.claim_and_begin(worker, 1).await[0];
    fixture.record(&[rejected(call)]).await;
    assert_eq!(
        fixture.lane_value(LANE_PAUSE).await.as_deref(),
        Some("key_rejected")
    );
    fixture
        .execute("update lanes set paused_until = null, pause_reason = null")
        .await;
    assert_eq!(fixture.record(&[rejected(call)]).await, 0);
    assert_eq!(fixture.lane_value(LANE_PAUSE).await.as_deref(), Some(""));
}

/// The state of a standby that was promoted before it had received the calls' begin.
async fn delete_calls(fixture: &QueueFixture) {
    fixture.execute(
        "delete from attempts;
         update scan_items set state = 'pending', attempt = 0, calls = 0, counted_calls = 0, requests_spent = 0, worker_id = null,
                               claimed_at = null;
         update scans set status = 'queued', started_at = null, requests_spent = 0;
         update lanes set next_at = clock_timestamp(), virtual_time = 0",
    )
    .await;
}

async fn begin_one(fixture: &QueueFixture, claim: Claim) -> AttemptId {
    let attempt = AttemptId::new();
    assert_eq!(
        store::begin(&fixture.pool, &[(claim, attempt)], &[], Timestamp::now())
            .await
            .unwrap(),
        [BeginVerdict::Begun]
    );
    attempt
}

#[tokio::test]
async fn an_answer_whose_attempt_row_was_lost_is_stored() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    let scan = fixture.submit(scan_of(1).max_requests(1)).await;
    let claim = fixture.claim(worker, 1).await[0].claim;
    let attempt = begin_one(&fixture, claim).await;
    delete_calls(&fixture).await;
    let answer = CallRecord {
        attempt_id: Some(attempt.uuid()),
        ..ok(claim)
    };
    assert_eq!(
        (
            fixture.record(std::slice::from_ref(&answer)).await,
            fixture.record(&[answer]).await
        ),
        (1, 0),
        "once"
    );
    assert_eq!(fixture.item(claim.item).await, "done ok");
    assert_eq!(fixture.attempt(claim).await, "1 ok");
    let seen = fixture.scan(scan).await;
    assert_eq!(
        (seen.status.as_str(), seen.ok, seen.requests_spent),
        ("completed", 1, 1)
    );
    assert_eq!(
        fixture.claim(worker, 1).await.len(),
        0,
        "it is not called again"
    );
}

#[tokio::test]
async fn an_answer_without_its_attempt_row_is_counted_once() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    let scan = fixture.submit(scan_of(2)).await;
    let claims = fixture.claim(worker, 2).await;
    let mut answers = Vec::new();
    for claimed in &claims {
        answers.push(CallRecord {
            attempt_id: Some(begin_one(&fixture, claimed.claim).await.uuid()),
            ..ok(claimed.claim)
        });
    }
    // The second call never reached the marketplace.
    answers[1].billed = 0;
    fixture.execute("delete from attempts").await;
    assert_eq!(fixture.record(&answers).await, 2);
    let seen = fixture.scan(scan).await;
    assert_eq!(
        (seen.status.as_str(), seen.ok, seen.requests_spent),
        ("completed", 2, 1)
    );
    assert_eq!(
        (
            fixture.attempt(claims[0].claim).await.as_str(),
            fixture.attempt(claims[1].claim).await.as_str()
        ),
        ("1 ok", "0 ok")
    );
}

#[tokio::test]
async fn an_answer_is_never_stored_for_another_call() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    let scan = fixture.submit(scan_of(1)).await;
    let first = fixture.claim(worker, 1).await[0].claim;
    let lost = begin_one(&fixture, first).await;
    delete_calls(&fixture).await;
    let second = fixture.claim(worker, 1).await[0].claim;
    assert_eq!(
        (first.item, first.number),
        (second.item, second.number),
        "the number is given again"
    );
    let live = begin_one(&fixture, second).await;
    fixture
        .record(&[CallRecord {
            attempt_id: Some(lost.uuid()),
            billed: 2,
            ..ok(first)
        }])
        .await;
    assert_eq!(
        fixture.item(first.item).await,
        "calling",
        "the call in flight is unaffected"
    );
    fixture
        .record(&[CallRecord {
            attempt_id: Some(live.uuid()),
            ..ok(second)
        }])
        .await;
    assert_eq!(
        (
            fixture.item(first.item).await.as_str(),
            fixture.scan(scan).await.requests_spent
        ),
        ("done ok", 3)
    );
    assert_eq!(fixture.attempt(second).await, "1 ok");
    assert_eq!(
        fixture.attempt(Claim { number: 2, ..first }).await,
        "2 ok",
        "the lost call gets its own number"
    );
    let ceilings = value!(&fixture.pool, "select count(max_requests) from scans", => i64);
    assert_eq!(ceilings, 0, "a scan without a ceiling gets none");
}

#[tokio::test]
async fn an_attempt_number_on_record_is_not_begun_again() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    fixture.submit(scan_of(1)).await;
    let first = fixture.claim_and_begin(worker, 1).await[0];
    fixture
        .execute(
            "update scan_items set state = 'pending', attempt = 0, worker_id = null;
         update lanes set next_at = clock_timestamp(), virtual_time = 0",
        )
        .await;
    let second = fixture.claim(worker, 1).await;
    assert_eq!(second[0].claim.number, first.number);
    assert_eq!(fixture.begin(&second).await, [BeginVerdict::ClaimLost]);
    fixture.abandon(&[second[0].claim]).await;
    assert_eq!(
        fixture.claim_and_begin(worker, 1).await[0].number,
        2,
        "the next number is used"
    );
}

#[tokio::test]
async fn calls_without_a_row_are_reported_as_unknown() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    fixture.submit(scan_of(2)).await;
    let calls = fixture.claim_and_begin(worker, 2).await;
    fixture.execute("delete from attempts").await;
    let gone = Claim {
        item: farescan::ids::ItemId::new(),
        ..calls[1]
    };
    let calls_without_row = [
        ok(calls[0]),
        CallRecord {
            attempt_id: Some(AttemptId::new().uuid()),
            ..ok(gone)
        },
    ];
    assert_eq!(fixture.record(&calls_without_row).await, 0);
    let mut connection = fixture.pool.acquire().await.unwrap();
    let unknown = store::open_calls(
        &mut connection,
        &calls_without_row.iter().collect::<Vec<_>>(),
    )
    .await
    .unwrap()
    .unknown;
    let expected = [(calls[0].item, true), (gone.item, false)];
    assert_eq!(
        unknown,
        expected.map(|(item, has_item)| UnrecordedCall {
            item: item.uuid(),
            has_item
        })
    );
}

#[tokio::test]
async fn a_call_that_was_not_sent_is_not_charged() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    let scan = fixture.submit(scan_of(2).max_requests(2)).await;
    let calls = fixture.claim_and_begin(worker, 2).await;
    let lane = LaneClaims {
        tenant: fixture.tenant,
        api: "flights".to_owned(),
        items: vec![calls[0].item.uuid()],
        numbers: vec![calls[0].number],
    };
    for _ in 0..2 {
        assert_eq!(
            abandon_unsent(&fixture.pool, &lane).await.unwrap(),
            0,
            "none is lost"
        );
    }
    assert_eq!(fixture.scan(scan).await.requests_spent, 1);
    assert_eq!(
        fixture.count_by_state(scan).await,
        [("calling".to_owned(), 1), ("pending".to_owned(), 1)].into()
    );
    let again = fixture.claim_and_begin(worker, 1).await[0];
    assert_eq!((again.item, again.number), (calls[0].item, 2));
    fixture.record(&[ok(calls[1]), ok(again)]).await;
    assert_eq!(
        (
            fixture.scan(scan).await.status.as_str(),
            fixture.scan(scan).await.requests_spent
        ),
        ("completed", 2)
    );
}
