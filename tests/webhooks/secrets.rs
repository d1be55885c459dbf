//! Secrets: rotation, and where they must not appear. The standard's library verifies signatures.

use farescan::commands::CommandError;
use farescan::search::CallerKey;
use farescan::tenants::rewrap::rewrap;
use farescan::tenants::{Keyring, rotate};
use farescan::webhooks::endpoint;
use jiff::{SignedDuration, Timestamp};
use sqlx::AssertSqlSafe;

use super::harness::{WebhookTest, is_signed, lock};
use crate::support::app::{KEY, ring};
use crate::support::reply::Reply;

async fn rotated(
    hooks: &WebhookTest,
    monitor: farescan::ids::MonitorId,
    now: Timestamp,
) -> Result<String, CommandError> {
    let mut tx = farescan::db::begin(hooks.pool()).await.unwrap();
    let (secret, until) = endpoint::rotate_secret(
        &mut lock(&mut tx, hooks.tenant, monitor).await,
        &ring(),
        now,
    )
    .await?;
    tx.commit().await.unwrap();
    assert!(
        (until.duration_since(now) - SignedDuration::from_hours(24)).abs()
            < SignedDuration::from_secs(1)
    );
    Ok(secret.0.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_rotation_both_secrets_sign_for_a_day() {
    let hooks = WebhookTest::open().await;
    let (receiver, _) = hooks.receiver("signed.test").await;
    receiver.reply(Reply::status(200));
    let (monitor, first) = hooks.webhook("http://signed.test/").await;
    let deliverer = hooks.deliverer();
    let sent = async |signatures: usize, by: &[&str], not_by: &[&str]| {
        hooks.ended(hooks.enqueue(monitor).await).await;
        let call = receiver.calls().pop().unwrap();
        assert_eq!(
            call.header("webhook-signature").split(' ').count(),
            signatures,
            "{call:#?}"
        );
        assert!(
            by.iter().all(|secret| is_signed(&call, secret))
                && !not_by.iter().any(|secret| is_signed(&call, secret))
        );
        let age =
            Timestamp::now().as_second() - call.header("webhook-timestamp").parse::<i64>().unwrap();
        assert!((0..30).contains(&age), "{age}");
        assert!(call.header("user-agent").starts_with("farescan/"));
    };
    sent(1, &[&first], &["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]).await;
    let day_ago = Timestamp::now() - SignedDuration::from_hours(25);
    let second = rotated(&hooks, monitor, day_ago).await.unwrap();
    sent(1, &[&second], &[&first]).await;
    let third = rotated(&hooks, monitor, Timestamp::now()).await.unwrap();
    sent(2, &[&second, &third], &[&first]).await;
    assert_eq!(
        hooks
            .count("select count(*) from key_grants where purpose = 'webhook'")
            .await,
        3,
        "one secret of the other webhook and two of this one; expired ones are deleted"
    );
    // If the response to a rotation is lost and repeated, the receiver's secret still verifies.
    let fourth = rotated(&hooks, monitor, Timestamp::now()).await.unwrap();
    sent(3, &[&second, &third, &fourth], &[&first]).await;
    let fifth = rotated(&hooks, monitor, Timestamp::now()).await.unwrap();
    sent(4, &[&second, &third, &fourth, &fifth], &[]).await;
    let refused = rotated(&hooks, monitor, Timestamp::now())
        .await
        .unwrap_err();
    assert!(
        matches!(refused, CommandError::InvalidState(_)),
        "{refused}"
    );
    deliverer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_survive_key_rotation_and_a_new_master_key() {
    let hooks = WebhookTest::open().await;
    let (receiver, _) = hooks.receiver("kept.test").await;
    receiver.reply(Reply::status(200));
    let (monitor, secret) = hooks.webhook("http://kept.test/").await;
    let (old, new) = (CallerKey::new(KEY), CallerKey::new("the-next-key-0123"));
    let rotation = rotate::rotate(hooks.pool(), &ring(), &old, &new, Timestamp::now()).await;
    assert_eq!(
        rotation.unwrap().held_keys,
        0,
        "a webhook's secret is no key of the caller's"
    );
    let both = Keyring::parse(&format!(
        "next:{},test:{}",
        "6b".repeat(32),
        "5a".repeat(32)
    ))
    .unwrap();
    let moved = rewrap(hooks.pool(), &both).await.unwrap();
    // Each of the two webhooks has a secret and a URL.
    assert_eq!((moved.moved, moved.unopened.len()), (4, 0));
    // A process without the new master key cannot sign: it records the error and retries later.
    let deliverer = hooks.deliverer();
    let id = hooks.enqueue(monitor).await;
    let seen = hooks.tried(id, 1).await;
    assert_eq!(seen.tries[0].error.unwrap().as_str(), "secret_unreadable");
    assert_eq!(receiver.count(), 0);
    let back = Keyring::parse(&format!(
        "test:{},next:{}",
        "5a".repeat(32),
        "6b".repeat(32)
    ))
    .unwrap();
    assert_eq!(rewrap(hooks.pool(), &back).await.unwrap().moved, 4);
    hooks.due_now(id).await;
    hooks.ended(id).await;
    assert!(is_signed(&receiver.calls()[0], &secret));
    deliverer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_database_holds_no_plaintext_secret() {
    use base64::Engine as _;
    let hooks = WebhookTest::open().await;
    let (_, secret) = hooks.webhook("http://sealed.test/").await;
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(secret.trim_start_matches("whsec_"))
        .unwrap();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut looked = 0;
    for table in [
        "webhook_endpoints",
        "key_grants",
        "deliveries",
        "delivery_tries",
    ] {
        let rows = format!("select coalesce(string_agg(t::text, ' '), '') from {table} t");
        let text: String = value!(hooks.pool(), AssertSqlSafe(rows));
        assert!(
            !text.contains(&secret[6..]) && !text.contains(&hex[..16]),
            "{table}"
        );
        looked += text.len();
    }
    assert!(looked > 200);
}
