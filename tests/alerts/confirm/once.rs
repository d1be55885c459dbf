//! A second search is ordered once, despite dying connections and concurrent processes.

use serde_json::json;

use super::{below, dates, judged};
use crate::alerts::{AlertTest, MOMENT};
use crate::monitors::{tick, ticker};

#[tokio::test(flavor = "multi_thread")]
async fn four_processes_confirm_a_price_once() {
    let test = AlertTest::open().await;
    let id = test.monitor(&dates(2, &below(200))).await;
    test.sell(&[&[150], &[300]]);
    let before = test.upstream.count();
    let slot = test.next_slot(&id).await;
    test.tick(slot).await;
    test.all_ended().await;
    for moment in [1, 2] {
        let tickers = [(); 4].map(|()| ticker(test.pool()));
        let passes = tickers
            .iter()
            .map(|ticker| tick(ticker, slot + MOMENT * moment));
        for pass in futures::future::join_all(passes).await {
            assert_eq!(pass.unwrap().failed, 0);
        }
        test.all_ended().await;
    }
    test.tick(slot + MOMENT * 3).await;
    assert_eq!(judged(&test.slot(&id, slot).await), [&json!(1), &json!(0)]);
    assert_eq!(test.upstream.count() - before, 3);
    assert_eq!(test.alerts(&id).await.len(), 1);
    test.close().await;
}

/// The connection dies after all writes of the order, before the commit.
#[tokio::test(flavor = "multi_thread")]
async fn an_uncommitted_confirmation_leaves_nothing() {
    let test = AlertTest::open().await;
    let id = test.monitor(&dates(2, &below(200))).await;
    test.sell(&[&[150], &[300]]);
    let slot = test.next_slot(&id).await;
    test.tick(slot).await;
    test.all_ended().await;
    let dies = "create function dies() returns trigger language plpgsql as $$ begin perform pg_terminate_backend(pg_backend_pid()); return new; end $$;
                create constraint trigger dies after update of confirmation on monitor_slots deferrable initially deferred
                for each row execute function dies();";
    execute!(test.pool(), dies);
    let before = test.upstream.count();
    let pass = tick(&ticker(test.pool()), slot + MOMENT).await.unwrap();
    assert_eq!((pass.evaluated, pass.failed), (0, 1));
    let written = "select (select count(*) from scans where finished_at is null or confirming is not null)
                        + (select count(*) from scan_items where earlier is not null)
                        + (select count(*) from monitor_slots where confirmation is not null)
                        + (select count(*) from key_grants g join scans s using (tenant_id, grant_id) where g.wiped_at is null)";
    assert_eq!(test.count(written).await, 0);
    execute!(test.pool(), "drop trigger dies on monitor_slots");
    test.wait_until_free(&id).await;
    assert_eq!(test.tick(slot + MOMENT).await.evaluated, 1);
    assert_eq!(
        judged(&test.second_half(&id, slot).await),
        [&json!(1), &json!(0)]
    );
    assert_eq!(test.upstream.count() - before, 1);
    test.close().await;
}
