//! A pause whose cause may be over by the time that it is asked for.

use farescan::queue::hold::{Cause, hold_scan};
use sqlx::AssertSqlSafe;

use super::yard::{Yard, scan_of};

#[tokio::test]
async fn a_scan_pauses_for_its_key_only_while_it_has_none_that_opens() {
    // The yard's grants have the nonce 1.
    let (seen, sealed_anew) = (vec![1], vec![2]);
    for (grant, cause, held) in [
        ("expires_at = now() - interval '1 s'", Cause::KeyGone, true),
        (
            "nonce = '', ciphertext = '', wiped_at = now()",
            Cause::KeyGone,
            true,
        ),
        ("key_id = key_id", Cause::KeyGone, false),
        ("key_id = key_id", Cause::KeyUnopened { nonce: seen }, true),
        (
            "key_id = key_id",
            Cause::KeyUnopened {
                nonce: sealed_anew.clone(),
            },
            false,
        ),
        (
            "nonce = '', ciphertext = '', wiped_at = now()",
            Cause::KeyUnopened { nonce: sealed_anew },
            true,
        ),
    ] {
        let yard = Yard::new().await;
        let scan = yard.submit(scan_of(2)).await;
        sqlx::query(AssertSqlSafe(format!("update key_grants set {grant}")))
            .execute(&yard.pool)
            .await
            .unwrap();
        assert_eq!(
            hold_scan(&yard.pool, yard.tenant, scan, &cause)
                .await
                .unwrap(),
            held,
            "{grant}, {cause:?}"
        );
        let (status, state) = if held {
            ("paused", "held")
        } else {
            ("queued", "pending")
        };
        assert_eq!(yard.scan(scan).await.status, status, "{grant}, {cause:?}");
        assert_eq!(yard.states(scan).await, [(state.to_owned(), 2)].into());
    }
}
