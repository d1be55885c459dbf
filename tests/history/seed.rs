//! Seeds a large history directly into the tables.

use farescan::ids::TenantId;
use jiff::{Timestamp, ToSpan as _, tz::TimeZone};
use sqlx::PgPool;

use crate::support::db::begin_seeding;

/// Seeds `routes` routes to LHR (from `RAA`, `RAB` …), each searched daily for `days` days for
/// `dates` departures from tomorrow on, and their latest prices. One search in twenty is degraded.
pub async fn routes(pool: &PgPool, tenant: TenantId, routes: i32, dates: i32, days: i32) {
    let mut tx = begin_seeding(pool).await;
    execute!(
        &mut *tx,
        "select create_partitions(now() - make_interval(days => $1), 1 + $1 / 28)",
        days
    );
    execute!(&mut *tx, "insert into series (tenant_id, series, endpoint, product, origin, place, currency)
           select $1, decode(md5('route ' || r), 'hex'), 'flights/oneway',
                  jsonb_build_object('from_airport', 'R' || chr(65 + r / 26) || chr(65 + r % 26), 'to_airport', 'LHR', 'currency', 'USD',
                                     'passengers', '[1]'::jsonb, 'sort_type', 'Overall'),
                  'R' || chr(65 + r / 26) || chr(65 + r % 26), 'LHR', 'USD'
           from generate_series(0, $2 - 1) r", tenant.uuid(), routes);
    execute!(&mut *tx, "insert into observations (tenant_id, series, first_date, observed_at, price, seller, results, band_low, band_high, verdict,
                                   search_status, reason, item_id, number)
         select $1, decode(md5('route ' || r), 'hex'), current_date + d,
                date_trunc('second', now()) - make_interval(days => $4 - t, secs => d * 7 + r),
                case when (t + d) % 20 > 0 then 100 + (t * 7 + d * 13 + r * 3) % 300 + 0.25 end, 'Example Air', 12, 180, 320, 'typical',
                case when (t + d) % 20 > 0 then 'ok' else 'degraded' end, case when (t + d) % 20 = 0 then 'upstream_timeout' end,
                gen_random_uuid(), 1
         from generate_series(1, $4) t, generate_series(1, $3) d, generate_series(0, $2 - 1) r", tenant.uuid(), routes, dates, days);
    execute!(&mut *tx, "insert into latest_prices (tenant_id, series, first_date, last_date, observed_at, price, seller, band_low, band_high, verdict,
                                    item_id, sampled_at, sample_status, sample_item_id)
         select distinct on (series, first_date) tenant_id, series, first_date, first_date, observed_at, price, seller, band_low, band_high,
                verdict, item_id, observed_at, 'ok', item_id
         from observations where tenant_id = $1 and price is not null and seller = 'Example Air' and series in
              (select decode(md5('route ' || r), 'hex') from generate_series(0, $2 - 1) r)
         order by series, first_date, observed_at desc", tenant.uuid(), routes);
    execute!(
        &mut *tx,
        "analyze observations; analyze series; analyze latest_prices"
    );
    tx.commit().await.unwrap();
}

/// Whether a plan's line scans a month that the seed covers completely.
pub fn is_of_a_full_month(line: &str) -> bool {
    let now = Timestamp::now().to_zoned(TimeZone::UTC);
    (1..6).any(|back| {
        let month = now.saturating_sub(back.months());
        line.contains(&month.strftime("_y%Ym%m").to_string())
    })
}
