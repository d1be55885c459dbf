//! The order in which items are claimed: between lanes, and between the scans of one lane.

use farescan::ids::{ScanId, TenantId};
use farescan::queue::store::ClaimRow;

use super::fixture::{QueueFixture, degraded, scan_of};

fn count_of(claims: &[ClaimRow], scan: ScanId) -> usize {
    claims.iter().filter(|claimed| claimed.scan == scan).count()
}

#[tokio::test]
async fn the_next_claim_continues_the_round_between_lanes() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    let other = TenantId::new();
    fixture.add_lane(other, 60_000.0, 10_000).await;
    let big = fixture.submit(scan_of(10_000)).await;
    let small = fixture.submit_for(other, scan_of(1_000)).await;
    for slots in [1, 2, 3, 4, 5, 7, 8, 100] {
        let (mut of_big, mut of_small) = (0, 0);
        for _ in 0..6 {
            let claims = fixture.claim(worker, slots).await;
            (of_big, of_small) = (
                of_big + count_of(&claims, big),
                of_small + count_of(&claims, small),
            );
        }
        assert!(
            of_big.abs_diff(of_small) <= 1,
            "{slots} places: {of_big} and {of_small}"
        );
    }
}

#[tokio::test]
async fn items_are_claimed_in_the_order_of_their_turns() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    fixture.submit(scan_of(1_000)).await;
    fixture.claim(worker, 30).await;
    let small = fixture.submit(scan_of(5)).await;
    let claims = fixture.claim(worker, 60).await;
    let last = claims
        .iter()
        .rposition(|claimed| claimed.scan == small)
        .unwrap();
    assert!(
        last < 11,
        "the five are among the first twelve of {}: the last is number {last}",
        claims.len()
    );
}

#[tokio::test]
async fn successive_small_scans_do_not_starve_a_big_one() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    let big = fixture.submit(scan_of(2_000)).await;
    let mut of_big = 0;
    for _ in 0..40 {
        let small = fixture.submit(scan_of(5)).await;
        let claims = fixture.claim(worker, 10).await;
        of_big += count_of(&claims, big);
        assert!(
            count_of(&claims, small) >= 4,
            "the big scan does not delay a small one"
        );
    }
    assert!(of_big >= 160, "{of_big} of 400");
}

#[tokio::test]
async fn retries_due_together_are_queued_like_a_scan() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    let failing = fixture.submit(scan_of(100).max_attempts(2)).await;
    let calls = fixture.claim_and_begin(worker, 100).await;
    fixture
        .record(&calls.into_iter().map(degraded).collect::<Vec<_>>())
        .await;
    fixture
        .lane_value("select release_delayed(now(), $1, 'flights', 1000)::text")
        .await;
    assert_eq!(fixture.count_by_state(failing).await["pending"], 100);
    let small = fixture.submit(scan_of(5)).await;
    let claims = fixture.claim(worker, 12).await;
    assert_eq!(
        count_of(&claims, small),
        5,
        "the five are among the first twelve"
    );
}

/// Each of 30 callers has five items; one has 5,000. Slots become free one by one.
#[tokio::test]
async fn small_callers_do_not_wait_for_a_big_caller() {
    let (fixture, worker) = QueueFixture::with_worker().await;
    let big = fixture.submit(scan_of(5_000)).await;
    fixture.claim(worker, 20).await;
    for _ in 0..30 {
        let other = TenantId::new();
        fixture.add_lane(other, 60_000.0, 100).await;
        fixture.submit_for(other, scan_of(5)).await;
    }
    // Five rounds of 31 lanes, and one call more.
    let (mut of_others, mut of_big) = (0, 0);
    for _ in 0..156 {
        let claims = fixture.claim(worker, 1).await;
        let mine = count_of(&claims, big);
        (of_others, of_big) = (of_others + claims.len() - mine, of_big + mine);
    }
    assert_eq!((of_others, of_big), (150, 6));
}

/// How many of 400 claims go to the scan, while single searches always keep the lane busy.
async fn beside_single_searches(
    fixture: &QueueFixture,
    spec: super::fixture::ScanSpec,
    slots: usize,
) -> usize {
    let worker = fixture.worker().await;
    let old = fixture.submit(spec).await;
    for _ in 0..20 {
        fixture.submit(scan_of(1)).await;
    }
    let (mut claimed, mut of_old) = (0, 0);
    while claimed < 400 {
        let claims = fixture.claim(worker, slots).await;
        assert_eq!(claims.len(), slots, "the lane always has work");
        claimed += slots;
        of_old += count_of(&claims, old);
        for _ in 0..slots {
            fixture.submit(scan_of(1)).await;
        }
    }
    of_old
}

#[tokio::test]
async fn single_searches_leave_a_scan_half_of_the_lane() {
    for slots in [1, 10] {
        let of_old =
            beside_single_searches(&QueueFixture::new().await, scan_of(1_000), slots).await;
        println!("{slots} places: {of_old} of 400 claims");
        assert!(
            (180..=220).contains(&of_old),
            "{slots} places: {of_old} of 400"
        );
    }
}

#[tokio::test]
async fn single_searches_leave_a_scheduled_scan_a_tenth() {
    for slots in [1, 10] {
        let of_old = beside_single_searches(
            &QueueFixture::new().await,
            scan_of(1_000).scheduled(),
            slots,
        )
        .await;
        println!("{slots} places: {of_old} of 400 claims");
        assert!(
            (36..=48).contains(&of_old),
            "{slots} places: {of_old} of 400"
        );
    }
}

/// As many small scans at a time as a caller may have: the oldest scan still progresses.
#[tokio::test]
async fn concurrent_small_scans_do_not_starve_a_big_one() {
    for items in [2, 3, 5] {
        let (fixture, worker) = QueueFixture::with_worker().await;
        let big = fixture.submit(scan_of(2_000)).await;
        let (mut left, mut of_big) = (0, 0);
        for _ in 0..40 {
            while left < 50 {
                fixture.submit(scan_of(items)).await;
                left += items;
            }
            let claims = fixture.claim(worker, 10).await;
            of_big += count_of(&claims, big);
            left -= 10 - i32::try_from(count_of(&claims, big)).unwrap();
        }
        println!("scans of {items}: {of_big} of 400 claims");
        assert!(of_big >= 10, "scans of {items}: {of_big} of 400");
    }
}
