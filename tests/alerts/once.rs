//! A run is judged once, whatever dies and whoever else is at it.

use serde_json::json;

use super::{MOMENT, Watch, fares, monitor};
use crate::monitors::{tick, ticker};

/// The connection is gone after everything is written and before it is committed.
#[tokio::test(flavor = "multi_thread")]
async fn what_dies_before_its_commit_has_judged_nothing() {
    let watch = Watch::open().await;
    let id = watch
        .monitor(&monitor(
            1,
            &json!([{"type": "price_below", "amount": 200}, {"type": "new_low"}]),
        ))
        .await;
    watch.market(|asked| fares(&[150], asked));
    let slot = watch.office.next_slot(&id).await;
    watch.office.tick(slot).await;
    watch.all_ended().await;
    let dies = "create function dies() returns trigger language plpgsql as $$ begin perform pg_terminate_backend(pg_backend_pid()); return new; end $$;
                create constraint trigger dies after update of judged_at on monitor_slots deferrable initially deferred
                for each row execute function dies();";
    sqlx::raw_sql(dies)
        .execute(watch.office.db.pool())
        .await
        .unwrap();
    let written = "select (select count(*) from alerts) + (select count(*) from rule_states)
                          + (select count(*) from deliveries) + (select count(*) from monitor_slots where judged_at is not null)";
    for _ in 0..3 {
        // The session that died may hold the run for a moment still: then there is nothing to do.
        let pass = loop {
            let pass = tick(&ticker(watch.office.db.pool()), slot + MOMENT)
                .await
                .unwrap();
            if pass.judged + pass.failed > 0 {
                break pass;
            }
        };
        assert_eq!((pass.judged, pass.failed), (0, 1));
        assert_eq!(watch.office.count(written).await, 0);
    }
    sqlx::raw_sql("drop trigger dies on monitor_slots")
        .execute(watch.office.db.pool())
        .await
        .unwrap();
    assert_eq!(watch.office.tick(slot + MOMENT).await.judged, 1);
    assert_eq!(watch.office.tick(slot + MOMENT).await.judged, 0);
    assert_eq!(
        (watch.alerts(&id).await.len(), watch.told(&id).await.len()),
        (1, 1)
    );
    assert_eq!(watch.office.slots(&id).await[0]["judged"]["fired"], 1);
    watch.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn four_processes_at_one_run_judge_it_once() {
    let watch = Watch::open().await;
    let rules = json!([{"type": "price_below", "amount": 200, "scope": "cell"}, {"type": "drop_percent", "percent": 5}]);
    let id = watch.monitor(&monitor(10, &rules)).await;
    // Every day one date goes and another comes: it is a new cell.
    for (price, fires) in [(150, 10), (300, 0), (120, 11), (119, 1)] {
        watch.market(move |asked| fares(&[price], asked));
        let slot = watch.office.next_slot(&id).await;
        watch.office.tick(slot).await;
        watch.all_ended().await;
        let before = watch.alerts(&id).await.len();
        let tickers = [(); 4].map(|()| ticker(watch.office.db.pool()));
        let passes =
            futures::future::join_all(tickers.iter().map(|ticker| tick(ticker, slot + MOMENT)))
                .await;
        let judged: usize = passes.into_iter().map(|pass| pass.unwrap().judged).sum();
        assert_eq!(judged, 1);
        assert_eq!(watch.alerts(&id).await.len() - before, fires);
    }
    assert_eq!(watch.told(&id).await.len(), 3, "one a run that fired");
    watch.close().await;
}
