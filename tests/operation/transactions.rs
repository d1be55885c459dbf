//! A future may be dropped at any await point. Its connection must stay usable.

use std::future::poll_fn;
use std::task::Poll;

use farescan::db;
use sqlx::postgres::PgPoolOptions;

use crate::support::db::TestDb;

/// Polls a future this often, then drops it.
async fn drop_after<F: Future>(polls: usize, future: F) {
    let mut future = Box::pin(future);
    for _ in 0..polls {
        if poll_fn(|context| Poll::Ready(future.as_mut().poll(context)))
            .await
            .is_ready()
        {
            return;
        }
        tokio::task::yield_now().await;
    }
}

/// Later statements on the connection of an abandoned `begin` are committed.
#[tokio::test]
async fn an_abandoned_begin_leaves_no_open_transaction() {
    let db = TestDb::new().await;
    let one = PgPoolOptions::new()
        .max_connections(1)
        .connect_with(db.connect_options())
        .await
        .unwrap();
    execute!(db.pool(), "create table kept (polls bigint)");
    for polls in 1..120_u8 {
        // Alternates between both functions; each gets every number of polls.
        if polls % 2 == 0 {
            drop_after(usize::from(polls / 2), db::begin(&one)).await;
        } else {
            drop_after(usize::from(polls / 2), async {
                db::snapshot(one.acquire().await?).await
            })
            .await;
        }
        execute!(&one, "insert into kept values ($1)", i64::from(polls));
        let kept: bool = value!(
            db.pool(),
            "select exists (select from kept where polls = $1)",
            i64::from(polls)
        );
        assert!(
            kept,
            "a begin that was dropped after {polls} polls left its transaction open"
        );
    }
}
