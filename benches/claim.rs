//! Claim latency with a large backlog: 1,000 callers with 10,000 items in total, then with a
//! million, of which one caller has 200,000.

use std::time::{Duration, Instant};

use sqlx::PgPool;

use super::ceiling::{claim, finish, register_worker};
use super::environment::BenchEnvironment;
use super::meter::{Measurement, Times, ms};
use super::{Res, runs};

const CALLERS: i32 = 1_000;
const SLOTS: usize = 100;
/// Claims of one level and run.
const CLAIMS: usize = 60;
const LARGE_SCANS: i32 = 20;

/// Both levels.
pub async fn run() -> Res<()> {
    println!(
        "\nclaim: {SLOTS} items of {CALLERS} callers, one round trip and a durable commit each"
    );
    let env = BenchEnvironment::new().await?;
    let pool = env.pool();
    create_callers(pool).await?;
    let mut few = Vec::new();
    for _ in 0..runs() {
        add_scans_to_all(pool, 10, 1).await?;
        few.extend(measure_claims(&env).await?);
    }
    let few = Times::of(few);
    add_scans_to_one(pool).await?;
    add_scans_to_all(pool, 801, 1).await?;
    let mut many = Vec::new();
    for _ in 0..runs() {
        many.extend(measure_claims(&env).await?);
    }
    let many = Times::of(many);
    let growth = many.median().as_secs_f64() / few.median().as_secs_f64();
    println!(
        "  10,000 pending: median {}, p99 {}",
        ms(few.median()),
        ms(few.p99())
    );
    println!(
        "  1,000,000 pending: median {}, p99 {} (the trial had 1.5 and 3.1; promise: p99 below 10 ms)",
        ms(many.median()),
        ms(many.p99())
    );
    println!("  growth {growth:.2} times (aim: below 1.5)");
    env.close().await;
    Ok(())
}

/// Measures claims; completes the claimed items outside the measured time, so that few are in
/// flight.
async fn measure_claims(env: &BenchEnvironment) -> Res<Vec<Duration>> {
    let pool = env.pool();
    // As autovacuum does within a minute.
    for table in [
        "vacuum analyze scan_items",
        "vacuum analyze lanes",
        "vacuum analyze scans",
    ] {
        sqlx::query(table).execute(pool).await?;
    }
    let pending: i64 =
        sqlx::query_scalar("select count(*) from scan_items where state = 'pending'")
            .fetch_one(pool)
            .await?;
    let worker = register_worker(pool).await?;
    let measurement = Measurement::start(&[("Postgres", env.postgres())])?;
    let mut times = Vec::new();
    for _ in 0..CLAIMS {
        let begun = Instant::now();
        let claims = claim(pool, worker, SLOTS).await?;
        times.push(begun.elapsed());
        if claims.len() != SLOTS {
            return Err(format!("{} of {SLOTS} were claimed", claims.len()).into());
        }
        finish(pool, &claims).await?;
    }
    let seen = Times::of(times.clone());
    println!(
        "  {pending} pending: median {}, p99 {} of {CLAIMS}; {}",
        ms(seen.median()),
        ms(seen.p99()),
        measurement.finish()?
    );
    Ok(times)
}

async fn create_callers(pool: &PgPool) -> Res<()> {
    let steps = [
        "insert into tenants (tenant_id, created_at) select gen_random_uuid(), now() from generate_series(1, $1)",
        "with made as (select create_lane(tenant_id, 'flights', 60000, 1000) from tenants) select count(*) from made where $1 > 0",
        "update lanes set emission = interval '1 microsecond', burst = 1000000 where $1 > 0",
    ];
    for step in steps {
        sqlx::query(step).bind(CALLERS).execute(pool).await?;
    }
    Ok(())
}

/// Adds scans for every caller, as a submit does.
async fn add_scans_to_all(pool: &PgPool, items: i32, scans: i32) -> Res<()> {
    add_scans(pool, items, scans, CALLERS).await
}

/// Adds 200,000 items for one caller.
async fn add_scans_to_one(pool: &PgPool) -> Res<()> {
    add_scans(pool, 10_000, LARGE_SCANS, 1).await
}

async fn add_scans(pool: &PgPool, items: i32, scans: i32, callers: i32) -> Res<()> {
    let mut tx = farescan::db::begin(pool).await?;
    sqlx::query("set local statement_timeout = 0")
        .execute(&mut *tx)
        .await?;
    sqlx::query(
        "create temp table ordered on commit drop as
                 select t.tenant_id, gen_random_uuid() as scan_id, number as scan_number
                 from (select tenant_id from tenants order by tenant_id limit $1) t cross join generate_series(1, $2) number",
    )
    .bind(callers)
    .bind(scans)
    .execute(&mut *tx)
    .await?;
    sqlx::query("insert into scans (tenant_id, scan_id, endpoint, api, request, sweep, priority, max_attempts, retry_delay, status, total, created_at)
                 select tenant_id, scan_id, 'flights/oneway', 'flights', '{}', '{}', 'interactive', 1, interval '0', 'queued', $1, now() from ordered")
        .bind(items)
        .execute(&mut *tx)
        .await?;
    sqlx::query(
        r"insert into scan_items (tenant_id, item_id, scan_id, api, position, body, turn)
                   select o.tenant_id, gen_random_uuid(), o.scan_id, 'flights', position,
                          jsonb_build_object('from_airport', 'TLV', 'to_airport', 'LHR', 'currency', 'USD',
                                             'departure_date', (date '2027-01-14' + position % 300)::text),
                          l.virtual_time + position
                   from ordered o join lanes l on l.tenant_id = o.tenant_id cross join generate_series(0, $1 - 1) position",
    )
    .bind(items)
    .execute(&mut *tx)
    .await?;
    sqlx::query("update lanes l set next_at = clock_timestamp() from ordered o where o.tenant_id = l.tenant_id")
        .execute(&mut *tx)
        .await?;
    tx.commit().await?;
    Ok(())
}
