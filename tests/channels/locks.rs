//! The order of locks (docs/decisions/0028): a deletion of a monitor beside a lease of its messages.

use serde_json::Value;
use sqlx::{PgConnection, PgPool};

use super::{channel, cheap, open};
use crate::alerts::fares;
use crate::support::db::begin_holding;
use crate::support::wait_until;

/// What a lease does with a channel: it takes the endpoint, unless that is locked, and then its message.
async fn lease(conn: &mut PgConnection, channel: &str) {
    let id = channel.trim_start_matches("chn_").to_owned();
    let take = "with e as materialized (
                    select endpoint_id from webhook_endpoints where endpoint_id = $1::uuid for no key update skip locked)
                update deliveries set tries = tries where channel_id in (select endpoint_id from e) and due_at is not null";
    execute!(conn, take, id);
}

async fn someone_waits(pool: &PgPool) {
    let waiting = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    wait_until("the deletion waits", async || {
        let count: i64 = value!(pool, waiting);
        count > 0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_of_a_monitor_and_a_lease_of_its_messages_never_deadlock() {
    let test = open().await;
    let mut channels = Vec::new();
    for name in ["one", "two"] {
        let url = format!("https://ntfy.example.com/{name}");
        let body = serde_json::json!({"name": name, "kind": "ntfy", "url": url});
        channels.push(channel(&test, &body).await);
    }
    test.respond_with(|asked| fares(&[90], asked));
    for order in [[0, 1], [1, 0]] {
        let [first, second] = order.map(|place| channels[place].as_str());
        let monitor = test.create_monitor(&cheap(&[first, second])).await;
        test.run(&monitor).await;
        let mut leasing = begin_holding(test.pool()).await;
        lease(&mut leasing, first).await;
        let path = format!("/v1/monitors/{monitor}");
        let deleting = test.ask("DELETE", &path, None::<&Value>);
        let leasing = async {
            someone_waits(test.pool()).await;
            lease(&mut leasing, second).await;
            leasing.commit().await.unwrap();
        };
        let (deleted, ()) = tokio::join!(deleting, leasing);
        deleted.expect(204);
        assert_eq!(test.count("select count(*) from deliveries").await, 0);
    }
    test.close().await;
}
