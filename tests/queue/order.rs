//! In which order items come: between the lanes, and between the scans of one.

use farescan::ids::{ScanId, TenantId};
use farescan::queue::store::Claimed;

use super::yard::{Yard, degraded, scan_of};

fn of(claims: &[Claimed], scan: ScanId) -> usize {
    claims.iter().filter(|claimed| claimed.scan == scan).count()
}

#[tokio::test]
async fn a_visit_that_the_places_cut_short_goes_on_where_it_stopped() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    let other = TenantId::new();
    yard.add_lane(other, 60_000.0, 10_000).await;
    let big = yard.submit(scan_of(10_000)).await;
    let small = yard.submit_for(other, scan_of(1_000)).await;
    for places in [1, 2, 3, 4, 5, 7, 8, 100] {
        let (mut of_big, mut of_small) = (0, 0);
        for _ in 0..6 {
            let claims = yard.claim(worker, places).await;
            (of_big, of_small) = (of_big + of(&claims, big), of_small + of(&claims, small));
        }
        assert!(
            of_big.abs_diff(of_small) <= 1,
            "{places} places: {of_big} and {of_small}"
        );
    }
}

#[tokio::test]
async fn items_come_in_the_order_of_their_turns() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    yard.submit(scan_of(1_000)).await;
    yard.claim(worker, 30).await;
    let small = yard.submit(scan_of(5)).await;
    let claims = yard.claim(worker, 60).await;
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
async fn small_scans_one_after_another_do_not_starve_a_big_one() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    let big = yard.submit(scan_of(2_000)).await;
    let mut of_big = 0;
    for _ in 0..40 {
        let small = yard.submit(scan_of(5)).await;
        let claims = yard.claim(worker, 10).await;
        of_big += of(&claims, big);
        assert!(
            of(&claims, small) >= 4,
            "nor does the big one keep a small one waiting"
        );
    }
    assert!(of_big >= 160, "{of_big} of 400");
}

#[tokio::test]
async fn retries_that_are_due_together_queue_up_like_a_scan() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    let failing = yard.submit(scan_of(100).max_attempts(2)).await;
    let calls = yard.call(worker, 100).await;
    yard.record(&calls.into_iter().map(degraded).collect::<Vec<_>>())
        .await;
    yard.lane("select release_delayed(now(), $1, 'flights', 1000)::text")
        .await;
    assert_eq!(yard.states(failing).await["pending"], 100);
    let small = yard.submit(scan_of(5)).await;
    let claims = yard.claim(worker, 12).await;
    assert_eq!(of(&claims, small), 5, "the five are among the first twelve");
}

/// Each of 30 callers has five; one has 5,000. Places become free one by one.
#[tokio::test]
async fn nobody_waits_for_the_big_one() {
    let yard = Yard::new().await;
    let worker = yard.worker().await;
    let big = yard.submit(scan_of(5_000)).await;
    yard.claim(worker, 20).await;
    for _ in 0..30 {
        let other = TenantId::new();
        yard.add_lane(other, 60_000.0, 100).await;
        yard.submit_for(other, scan_of(5)).await;
    }
    // Five rounds of 31 lanes, and one call more.
    let (mut of_others, mut of_big) = (0, 0);
    for _ in 0..156 {
        let claims = yard.claim(worker, 1).await;
        let mine = of(&claims, big);
        (of_others, of_big) = (of_others + claims.len() - mine, of_big + mine);
    }
    assert_eq!((of_others, of_big), (150, 6));
}

/// Of 400 claims beside single searches that never leave the lane without work: those of a scan of `stride`.
async fn beside_single_searches(yard: &Yard, order: super::yard::Order, places: usize) -> usize {
    let worker = yard.worker().await;
    let old = yard.submit(order).await;
    for _ in 0..20 {
        yard.submit(scan_of(1)).await;
    }
    let (mut claimed, mut of_old) = (0, 0);
    while claimed < 400 {
        let claims = yard.claim(worker, places).await;
        assert_eq!(claims.len(), places, "there is always something");
        claimed += places;
        of_old += of(&claims, old);
        for _ in 0..places {
            yard.submit(scan_of(1)).await;
        }
    }
    of_old
}

#[tokio::test]
async fn single_searches_that_fill_a_lane_leave_a_scan_its_half() {
    for places in [1, 10] {
        let of_old = beside_single_searches(&Yard::new().await, scan_of(1_000), places).await;
        println!("{places} places: {of_old} of 400 claims");
        assert!(
            (180..=220).contains(&of_old),
            "{places} places: {of_old} of 400"
        );
    }
}

#[tokio::test]
async fn single_searches_that_fill_a_lane_leave_scheduled_its_tenth() {
    for places in [1, 10] {
        let of_old =
            beside_single_searches(&Yard::new().await, scan_of(1_000).scheduled(), places).await;
        println!("{places} places: {of_old} of 400 claims");
        assert!(
            (36..=48).contains(&of_old),
            "{places} places: {of_old} of 400"
        );
    }
}

/// Scans of a few items, as many at a time as there may be: whoever was there first goes on.
#[tokio::test]
async fn small_scans_that_fill_a_lane_do_not_starve_a_big_one() {
    for items in [2, 3, 5] {
        let yard = Yard::new().await;
        let worker = yard.worker().await;
        let big = yard.submit(scan_of(2_000)).await;
        let (mut left, mut of_big) = (0, 0);
        for _ in 0..40 {
            while left < 50 {
                yard.submit(scan_of(items)).await;
                left += items;
            }
            let claims = yard.claim(worker, 10).await;
            of_big += of(&claims, big);
            left -= 10 - i32::try_from(of(&claims, big)).unwrap();
        }
        println!("scans of {items}: {of_big} of 400 claims");
        assert!(of_big >= 10, "scans of {items}: {of_big} of 400");
    }
}
