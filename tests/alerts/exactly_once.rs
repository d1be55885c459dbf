//! A run is evaluated once, despite dying connections and concurrent processes.

use serde_json::json;

use super::{AlertTest, MOMENT, fares, monitor};
use crate::monitors::{tick, ticker};

/// The connection dies after all writes, before the commit.
#[tokio::test(flavor = "multi_thread")]
async fn an_uncommitted_evaluation_leaves_nothing() {
    let test = AlertTest::open().await;
    let id = test
        .monitor(&monitor(
            1,
            &json!([{"type": "price_below", "amount": 200}, {"type": "new_low", "days": 30}]),
        ))
        .await;
    test.respond_with(|asked| fares(&[150], asked));
    let slot = test.next_slot(&id).await;
    test.tick(slot).await;
    test.all_ended().await;
    let dies = "create function dies() returns trigger language plpgsql as $$ begin perform pg_terminate_backend(pg_backend_pid()); return new; end $$;
                create constraint trigger dies after update of evaluated_at on monitor_slots deferrable initially deferred
                for each row execute function dies();";
    execute!(test.pool(), dies);
    let written = "select (select count(*) from alerts) + (select count(*) from rule_states)
                          + (select count(*) from deliveries) + (select count(*) from monitor_slots where evaluated_at is not null)";
    for _ in 0..3 {
        // The dead session may hold the lock for a moment; then the pass skips the run.
        let pass = loop {
            let pass = tick(&ticker(test.pool()), slot + MOMENT).await.unwrap();
            if pass.evaluated + pass.failed > 0 {
                break pass;
            }
        };
        assert_eq!((pass.evaluated, pass.failed), (0, 1));
        assert_eq!(test.count(written).await, 0);
    }
    execute!(test.pool(), "drop trigger dies on monitor_slots");
    assert_eq!(test.tick(slot + MOMENT).await.evaluated, 1);
    assert_eq!(test.tick(slot + MOMENT).await.evaluated, 0);
    assert_eq!(
        (test.alerts(&id).await.len(), test.events(&id).await.len()),
        (1, 1)
    );
    assert_eq!(test.slots(&id).await[0]["judged"]["fired"], 1);
    test.close().await;
}

/// A copy that `farescan tenants move` has not released belongs to the other database still.
#[tokio::test(flavor = "multi_thread")]
async fn the_parked_copy_of_a_moved_caller_is_not_evaluated() {
    let test = AlertTest::open().await;
    let rules = json!([{"type": "price_below", "amount": 200}]);
    let id = test.monitor(&monitor(1, &rules)).await;
    test.respond_with(|asked| fares(&[150], asked));
    let slot = test.next_slot(&id).await;
    test.tick(slot).await;
    test.all_ended().await;
    let park = "update monitors set not_before = $1::timestamptz";
    execute!(test.pool(), park, Some("9999-01-01 00:00:00+00"));
    assert_eq!(test.tick(slot + MOMENT).await.evaluated, 0);
    assert_eq!(test.events(&id).await.len(), 0);
    execute!(test.pool(), park, None::<&str>);
    assert_eq!(test.tick(slot + MOMENT).await.evaluated, 1);
    assert_eq!(test.events(&id).await.len(), 1);
    test.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn four_processes_evaluate_one_run_once() {
    let test = AlertTest::open().await;
    let rules = json!([{"type": "price_below", "amount": 200, "scope": "cell"}, {"type": "drop_percent", "percent": 5}]);
    let id = test.monitor(&monitor(10, &rules)).await;
    // Every day one date leaves and another one enters as a new cell.
    for (price, fires) in [(150, 10), (300, 0), (120, 11), (119, 1)] {
        test.respond_with(move |asked| fares(&[price], asked));
        let slot = test.next_slot(&id).await;
        test.tick(slot).await;
        test.all_ended().await;
        let before = test.alerts(&id).await.len();
        let tickers = [(); 4].map(|()| ticker(test.pool()));
        let passes =
            futures::future::join_all(tickers.iter().map(|ticker| tick(ticker, slot + MOMENT)))
                .await;
        let judged: usize = passes.into_iter().map(|pass| pass.unwrap().evaluated).sum();
        assert_eq!(judged, 1);
        assert_eq!(test.alerts(&id).await.len() - before, fires);
    }
    assert_eq!(test.events(&id).await.len(), 3, "one a run that fired");
    test.close().await;
}
