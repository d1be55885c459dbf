//! A pause whose cause may be over by the time it is requested.

use farescan::queue::pause_scan::{PauseCause, pause_scan};
use sqlx::AssertSqlSafe;

use super::fixture::{QueueFixture, scan_of};

#[tokio::test]
async fn a_scan_pauses_for_its_key_only_if_the_key_cannot_open() {
    // The grants of the fixture have the nonce 1.
    let (seen, sealed_anew) = (vec![1], vec![2]);
    for (grant, cause, held) in [
        (
            "expires_at = now() - interval '1 s'",
            PauseCause::KeyGone,
            true,
        ),
        (
            "nonce = '', ciphertext = '', wiped_at = now()",
            PauseCause::KeyGone,
            true,
        ),
        ("key_id = key_id", PauseCause::KeyGone, false),
        (
            "key_id = key_id",
            PauseCause::KeyUnopened { nonce: seen },
            true,
        ),
        (
            "key_id = key_id",
            PauseCause::KeyUnopened {
                nonce: sealed_anew.clone(),
            },
            false,
        ),
        (
            "nonce = '', ciphertext = '', wiped_at = now()",
            PauseCause::KeyUnopened { nonce: sealed_anew },
            true,
        ),
    ] {
        let fixture = QueueFixture::new().await;
        let scan = fixture.submit(scan_of(2)).await;
        execute!(
            &fixture.pool,
            AssertSqlSafe(format!("update key_grants set {grant}"))
        );
        assert_eq!(
            pause_scan(&fixture.pool, fixture.tenant, scan, &cause)
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
        assert_eq!(
            fixture.scan(scan).await.status,
            status,
            "{grant}, {cause:?}"
        );
        assert_eq!(
            fixture.count_by_state(scan).await,
            [(state.to_owned(), 2)].into()
        );
    }
}
