//! `tenants::rewrap` on a real database: moves keys to the primary entry and loses none.

use farescan::ids::{GrantId, TenantId};
use farescan::search::CallerKey;
use farescan::tenants::rewrap::rewrap;
use farescan::tenants::{GrantTerms, Keyring, Purpose, open_grant, store};
use jiff::Timestamp;
use sqlx::PgPool;

use crate::support::app::tenant;
use crate::support::db::TestDb;

/// A keyring of entries named by single letters, the first being the primary.
fn ring(ids: &str) -> Keyring {
    let entry = |id: char| format!("{id}:{}", format!("{:02x}", u32::from(id)).repeat(32));
    Keyring::parse(&ids.chars().map(entry).collect::<Vec<_>>().join(",")).unwrap()
}

async fn add_grant(pool: &PgPool, ring: &Keyring, tenant: TenantId, key: &str) -> GrantTerms {
    let expires_at = "2099-01-01T00:00:00.123456Z".parse().unwrap();
    let terms = GrantTerms {
        tenant,
        grant: GrantId::new(),
        purpose: Purpose::Scan,
        expires_at,
    };
    let mut conn = pool.acquire().await.unwrap();
    let sealed = terms.seal(ring, &CallerKey::new(key));
    store::insert_grant(&mut conn, &terms, &sealed, Timestamp::now())
        .await
        .unwrap();
    terms
}

async fn key_of(pool: &PgPool, ring: &Keyring, terms: &GrantTerms) -> String {
    open_grant(pool, ring, terms.tenant, terms.grant)
        .await
        .unwrap()
        .expose()
        .to_owned()
}

#[tokio::test]
async fn rewrapped_keys_open_without_the_old_entry() {
    let db = TestDb::new().await;
    let pool = db.pool();
    let mut grants = Vec::new();
    // More than two batches, of several tenants.
    for caller in 0..3 {
        let tenant = tenant(pool, &ring("a"), &format!("key-{caller}")).await;
        for _ in 0..150 {
            grants.push((
                add_grant(pool, &ring("a"), tenant, &format!("key-{caller}")).await,
                format!("key-{caller}"),
            ));
        }
    }
    let wiped = grants.pop().unwrap().0;
    let mut conn = pool.acquire().await.unwrap();
    store::wipe_expired(&mut conn, wiped.tenant, wiped.grant, wiped.expires_at)
        .await
        .unwrap();
    drop(conn);

    let done = rewrap(pool, &ring("ba")).await.unwrap();
    assert_eq!(
        (
            done.primary.as_str(),
            done.moved,
            done.changed,
            done.unopened.len()
        ),
        ("b", 449, 0, 0)
    );
    assert_eq!(
        done.callers_by_older_key,
        [("a".to_owned(), 3)],
        "nobody has called since"
    );
    for (terms, key) in &grants {
        assert_eq!(key_of(pool, &ring("b"), terms).await, *key);
    }
    store::check_ring(pool, &ring("b"))
        .await
        .expect("the old entry may go");
    assert!(
        open_grant(pool, &ring("ba"), wiped.tenant, wiped.grant)
            .await
            .is_err(),
        "what was wiped stays wiped"
    );

    let again = rewrap(pool, &ring("ba")).await.unwrap();
    assert_eq!((again.moved, again.changed), (0, 0));
}

#[tokio::test]
async fn rewrap_leaves_concurrently_changed_keys_alone() {
    let db = TestDb::new().await;
    let pool = db.pool();
    let tenant = tenant(pool, &ring("a"), "key").await;
    let (resumed, ended) = (
        add_grant(pool, &ring("a"), tenant, "key").await,
        add_grant(pool, &ring("a"), tenant, "key").await,
    );
    let mut conn = pool.acquire().await.unwrap();
    let read = store::grants_under_other_keys(&mut conn, "b", None, 10)
        .await
        .unwrap();
    assert_eq!(read.len(), 2);
    // Between read and write, one scan is resumed with a new key and the other ends.
    let sealed = resumed.seal(&ring("a"), &CallerKey::new("the-new-key"));
    store::replace_grant(&mut conn, &resumed, &sealed)
        .await
        .unwrap();
    store::wipe_expired(&mut conn, tenant, ended.grant, ended.expires_at)
        .await
        .unwrap();
    let swaps: Vec<_> = read
        .into_iter()
        .map(|sealed| (sealed, resumed.seal(&ring("ba"), &CallerKey::new("key"))))
        .collect();
    assert_eq!(
        store::replace_sealed_keys(&mut conn, &swaps).await.unwrap(),
        0
    );
    assert_eq!(key_of(pool, &ring("ba"), &resumed).await, "the-new-key");
    assert!(
        open_grant(pool, &ring("ba"), tenant, ended.grant)
            .await
            .is_err()
    );
}

#[tokio::test]
async fn rewrap_counts_and_skips_keys_that_do_not_open() {
    let db = TestDb::new().await;
    let pool = db.pool();
    let tenant = tenant(pool, &ring("a"), "key").await;
    let (good, lost, spoilt) = (
        add_grant(pool, &ring("a"), tenant, "key").await,
        add_grant(pool, &ring("x"), tenant, "key").await,
        add_grant(pool, &ring("a"), tenant, "key").await,
    );
    execute!(
        pool,
        "update key_grants set expires_at = expires_at + interval '1 day' where grant_id = $1",
        spoilt.grant.uuid()
    );
    let done = rewrap(pool, &ring("ba")).await.unwrap();
    assert_eq!(done.moved, 1);
    let reasons: Vec<_> = done
        .unopened
        .iter()
        .map(|(why, count)| (why.as_str(), *count))
        .collect();
    assert_eq!(
        reasons,
        [
            ("the grant was moved or changed since it was sealed", 1),
            (
                "the master key has no entry `x`, which sealed this grant",
                1
            )
        ]
    );
    assert_eq!(key_of(pool, &ring("b"), &good).await, "key");
    assert_eq!(
        key_of(pool, &ring("x"), &lost).await,
        "key",
        "left as it was"
    );
}
