//! Ended scans, inserted directly into the tables.

use farescan::ids::{ScanId, TenantId};
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::support::db::begin_seeding;
use crate::support::upstream::fare;

/// A fare scan with `items` items that has ended: most have a price, some are empty or degraded.
pub async fn scan(pool: &PgPool, tenant: TenantId, items: i32) -> ScanId {
    let scan = ScanId::new();
    let row = "insert into scans (tenant_id, scan_id, endpoint, api, request, sweep, priority, max_attempts, retry_delay, status, total, ok,
                                  requests_spent, created_at, started_at, finished_at)
               values ($1, $2, 'flights/oneway', 'flights', '{}', '{}', 'interactive', 1, '1 minute', 'completed', $3, $3, $3, now(), now(),
                       now())";
    let mut tx = begin_seeding(pool).await;
    execute!(&mut *tx, row, tenant.uuid(), scan.uuid(), items);
    let rows = "insert into scan_items (tenant_id, item_id, scan_id, api, position, body, state, turn, attempt, calls, search_status, reason,
                                        requests_spent, results, best_price, currency, observed_at, latency_ms)
                select $1, gen_random_uuid(), $2, 'flights', n,
                       json_build_object('from_airport', 'TLV', 'to_airport', 'LHR', 'departure_date', date '2030-01-01' + n % 365,
                                         'passengers', json_build_array(1, 1), 'seat_type', 1, 'max_stops', 1, 'currency', 'USD',
                                         'airline_codes', json_build_array('LH', 'BA'), 'limit', 50, 'strict', true),
                       'done', n, 1, 1, case n % 10 when 0 then 'empty' when 1 then 'degraded' else 'ok' end,
                       case n % 10 when 1 then 'blocked_page' end, 1, case n % 10 when 0 then 0 when 1 then null else 12 end,
                       case when n % 10 > 1 then 100 + (n * 7919) % 997 + 0.25 end, case when n % 10 > 1 then 'USD' end, now(), 1610
                from generate_series(0, $3 - 1) n";
    execute!(&mut *tx, rows, tenant.uuid(), scan.uuid(), items);
    tx.commit().await.unwrap();
    scan
}

/// Stores the answers for the items of a scan, round robin.
pub async fn answer(pool: &PgPool, scan: ScanId, answers: &[Value]) {
    let packed: Vec<_> = answers
        .iter()
        .map(|answer| zstd::encode_all(answer.to_string().as_bytes(), 3).unwrap())
        .collect();
    let rows = "insert into answers (tenant_id, item_id, number, observed_at, body)
                select tenant_id, item_id, 1, observed_at, ($2::bytea[])[1 + position % cardinality($2)] from scan_items where scan_id = $1";
    let mut tx = begin_seeding(pool).await;
    execute!(&mut *tx, rows, scan.uuid(), packed);
    tx.commit().await.unwrap();
}

/// Answers of about 6 KB, as the marketplace returns them.
pub fn answers() -> Vec<Value> {
    let search =
        json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2030-01-01"});
    let rows = |start: u64| {
        (0..12)
            .map(|n| fare(start * 31 + n * 17 + 90, &search))
            .collect::<Vec<_>>()
    };
    (0..20).map(|start| json!(rows(start))).collect()
}
