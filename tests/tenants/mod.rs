//! Tenants, fingerprints and grants in a real database.

use std::collections::HashSet;

use farescan::ids::{GrantId, TenantId};
use farescan::search::CallerKey;
use farescan::tenants::{self, GrantError, GrantTerms, Keyring, Purpose, rotate, store};
use futures::future::join_all;
use jiff::Timestamp;
use sqlx::PgPool;

use crate::support::app::tenant;
use crate::support::db::TestDb;

/// A ring of keys named by single letters, the first the primary.
fn ring(ids: &str) -> Keyring {
    let entry = |id: char| format!("{id}:{}", format!("{:02x}", u32::from(id)).repeat(32));
    Keyring::parse(&ids.chars().map(entry).collect::<Vec<_>>().join(",")).unwrap()
}

async fn find_tenant(pool: &PgPool, ring: &Keyring, key: &str) -> Option<TenantId> {
    let mut conn = pool.acquire().await.unwrap();
    store::find(&mut conn, ring, &CallerKey::new(key), Timestamp::now())
        .await
        .unwrap()
}

#[tokio::test]
async fn concurrent_first_requests_create_one_tenant() {
    let db = TestDb::new().await;
    let rings = [ring("a"), ring("ba")];
    let made =
        join_all((0..20).map(|number| tenant(db.pool(), &rings[number % 2], "a-callers-key")))
            .await;
    assert_eq!(made.iter().collect::<HashSet<_>>().len(), 1);
    let tenants: i64 = value!(db.pool(), "select count(*) from tenants");
    assert_eq!(tenants, 1);
    let another = tenant(db.pool(), &rings[1], "anothers-key").await;
    assert_ne!(another, made[0]);
    assert_eq!(
        tenant(db.pool(), &rings[0], "anothers-key").await,
        another,
        "known to processes without the new primary"
    );
}

#[tokio::test]
async fn a_fingerprint_is_renewed_under_the_primary_when_seen() {
    let db = TestDb::new().await;
    let made = tenant(db.pool(), &ring("a"), "key").await;
    assert_eq!(
        find_tenant(db.pool(), &ring("b"), "key").await,
        None,
        "no fingerprint under b yet"
    );
    assert_eq!(find_tenant(db.pool(), &ring("ba"), "key").await, Some(made));
    assert_eq!(
        find_tenant(db.pool(), &ring("b"), "key").await,
        Some(made),
        "a may be dropped from the ring now"
    );
    assert_eq!(find_tenant(db.pool(), &ring("ba"), "another").await, None);
}

fn terms(tenant: TenantId, expires_at: &str) -> GrantTerms {
    GrantTerms {
        tenant,
        grant: GrantId::new(),
        purpose: Purpose::Scan,
        expires_at: expires_at.parse().unwrap(),
    }
}

async fn insert_sealed_key(pool: &PgPool, terms: &GrantTerms, ring: &Keyring) {
    let mut conn = pool.acquire().await.unwrap();
    let sealed = terms.seal(ring, &CallerKey::new("the-key"));
    store::insert_grant(&mut conn, terms, &sealed, Timestamp::now())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_grant_opens_until_it_is_wiped_or_expires() {
    let (db, ring) = (TestDb::new().await, ring("a"));
    let tenant = tenant(db.pool(), &ring, "the-key").await;
    let open = |terms: GrantTerms| {
        let (pool, ring) = (db.pool().clone(), ring.clone());
        async move { tenants::open_grant(&pool, &ring, terms.tenant, terms.grant).await }
    };
    let live = terms(tenant, "2099-01-01T00:00:00.123456Z");
    insert_sealed_key(db.pool(), &live, &ring).await;
    assert_eq!(open(live).await.unwrap().expose(), "the-key");

    let mut conn = db.pool().acquire().await.unwrap();
    store::replace_grant(
        &mut conn,
        &live,
        &live.seal(&ring, &CallerKey::new("the-new-key")),
    )
    .await
    .unwrap();
    assert_eq!(open(live).await.unwrap().expose(), "the-new-key");
    store::wipe_expired(&mut conn, tenant, live.grant, Timestamp::now())
        .await
        .unwrap();
    assert!(open(live).await.is_ok(), "it has not expired");
    store::wipe_expired(&mut conn, tenant, live.grant, live.expires_at)
        .await
        .unwrap();
    assert!(matches!(open(live).await, Err(GrantError::Gone)));

    let expired = terms(tenant, "2020-01-01T00:00:00Z");
    insert_sealed_key(db.pool(), &expired, &ring).await;
    assert!(matches!(open(expired).await, Err(GrantError::Gone)));
}

#[tokio::test]
async fn a_row_that_was_moved_or_changed_does_not_open() {
    let (db, ring) = (TestDb::new().await, ring("a"));
    let (mine, theirs) = (
        tenant(db.pool(), &ring, "mine").await,
        tenant(db.pool(), &ring, "theirs").await,
    );
    for change in [
        "update key_grants set tenant_id = $1",
        "update key_grants set expires_at = expires_at + interval '1 day' where $1::uuid is not null",
        "update key_grants set ciphertext = set_byte(ciphertext, 5, get_byte(ciphertext, 5) # 1) where $1::uuid is not null",
    ] {
        execute!(db.pool(), "delete from key_grants");
        let live = terms(mine, "2099-01-01T00:00:00Z");
        insert_sealed_key(db.pool(), &live, &ring).await;
        execute!(db.pool(), change, theirs.uuid());
        let owner = if change.contains("tenant_id") {
            theirs
        } else {
            mine
        };
        let opened = tenants::open_grant(db.pool(), &ring, owner, live.grant).await;
        assert!(
            matches!(opened, Err(GrantError::NotOpened { .. })),
            "{change}"
        );
    }
}

#[tokio::test]
async fn a_ring_that_lacks_a_key_in_use_is_refused_at_start() {
    let db = TestDb::new().await;
    let tenant = tenant(db.pool(), &ring("a"), "key").await;
    let live = terms(tenant, "2099-01-01T00:00:00Z");
    insert_sealed_key(db.pool(), &live, &ring("a")).await;
    store::check_ring(db.pool(), &ring("ba")).await.unwrap();
    let refused = store::check_ring(db.pool(), &ring("b"))
        .await
        .unwrap_err()
        .to_string();
    assert!(refused.contains("sealed keys still in use: a"), "{refused}");
    let mut conn = db.pool().acquire().await.unwrap();
    store::wipe_expired(&mut conn, tenant, live.grant, live.expires_at)
        .await
        .unwrap();
    store::check_ring(db.pool(), &ring("b")).await.unwrap();
}

/// What an earlier look-up found may be outdated when the caller is locked.
#[tokio::test]
async fn a_caller_that_was_found_is_kept_only_while_the_key_is_its_own() {
    let db = TestDb::new().await;
    let (old, new) = (CallerKey::new("old-key"), CallerKey::new("new-key"));
    let lock = async |ids: &str, key: &CallerKey, found| {
        let mut tx = farescan::db::begin(db.pool()).await.unwrap();
        let tenant = store::lock_or_create(&mut tx, &ring(ids), key, found, Timestamp::now())
            .await
            .unwrap();
        tx.commit().await.unwrap();
        tenant
    };
    let first = lock("a", &old, None).await;
    assert_eq!(lock("a", &old, Some(first)).await, first);
    let other = tenant(db.pool(), &ring("a"), "anothers-key").await;
    assert_eq!(lock("a", &old, Some(other)).await, first);

    rotate::rotate(db.pool(), &ring("a"), &old, &new, Timestamp::now())
        .await
        .unwrap();
    let second = lock("a", &old, Some(first)).await;
    assert_ne!(second, first, "the old key is a new caller's");
    assert_eq!(lock("a", &old, Some(first)).await, second);
    assert_eq!(lock("a", &new, Some(second)).await, first);

    execute!(
        db.pool(),
        "delete from tenant_keys where tenant_id = $1",
        second.uuid()
    );
    execute!(
        db.pool(),
        "delete from tenants where tenant_id = $1",
        second.uuid()
    );
    let third = lock("a", &old, Some(second)).await;
    assert!(third != second && third != first, "it was deleted");
    assert_eq!(
        lock("ba", &old, Some(third)).await,
        third,
        "known under the older key of the ring"
    );
}
