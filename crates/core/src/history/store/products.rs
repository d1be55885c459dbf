//! The products of a route, hotel or place.

use sqlx::PgConnection;
use sqlx::types::Json;

use super::RawProduct;
use crate::contract::Endpoint;
use crate::history::query::PriceQuery;
use crate::ids::TenantId;

/// A route, hotel or place with stored observations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownPlace {
    /// The endpoint of its searches.
    pub endpoint: Endpoint,
    /// Flights: the departure airport.
    pub from_airport: Option<String>,
    /// Flights: the destination airport; hotels: the searched name, destination or id.
    pub place: String,
}

/// Last product of the previous page.
#[derive(Debug, Clone)]
pub(in crate::history) struct ProductCursor {
    pub(in crate::history) endpoint: Endpoint,
    pub(in crate::history) series: Vec<u8>,
}

/// A series of a tenant.
pub struct ProductRow {
    pub(in crate::history) series: Vec<u8>,
    pub(in crate::history) endpoint: Endpoint,
    pub(in crate::history) origin: Option<String>,
    pub(in crate::history) place: String,
    pub(in crate::history) product: Json<RawProduct>,
    pub(in crate::history) currency: String,
    pub(in crate::history) market: Option<String>,
    /// First day that is not packed; `None` if all days are.
    pub(in crate::history) unpacked_since: Option<jiff_sqlx::Timestamp>,
}

/// The next matching products, ordered by endpoint and key. Ignores the query's dates and times.
pub(in crate::history) async fn products(
    conn: &mut PgConnection,
    tenant: TenantId,
    query: &PriceQuery,
    after: Option<&ProductCursor>,
    limit: i64,
) -> sqlx::Result<Vec<ProductRow>> {
    sqlx::query_as!(
        ProductRow,
        r#"select s.series, s.endpoint, s.origin, s.place, s.product as "product: Json<RawProduct>", s.currency, s.market, s.unpacked_since
           from series s
           where s.tenant_id = $1 and s.endpoint = any ($2) and place_key(s.endpoint, s.place) = $3 and ($4::text is null or s.origin = $4)
             and ($5::text is null or s.currency = upper($5)) and ($6::text is null or s.market = lower($6))
             and ($7::bigint is null or (s.product ->> 'adults')::bigint = $7)
             and ($8::bigint is null or (s.product ->> 'children')::bigint = $8)
             and ($9::text is null or (s.endpoint, s.series) > ($9, $10::bytea))
           order by s.endpoint, s.series limit $11"#,
        tenant.uuid(),
        &query.endpoints(),
        query.place(),
        query.origin,
        query.currency,
        query.market,
        query.adults,
        query.children,
        after.map(|after| after.endpoint.as_str()),
        after.map(|after| after.series.as_slice()),
        limit,
    )
    .fetch_all(conn)
    .await
}

/// Routes and places, ordered by endpoint and name.
pub(in crate::history) async fn places(
    conn: &mut PgConnection,
    tenant: TenantId,
    limit: i64,
) -> sqlx::Result<Vec<KnownPlace>> {
    sqlx::query_as!(
        KnownPlace,
        r#"select s.endpoint, s.origin as from_airport, min(s.place) as "place!"
           from series s
           where s.tenant_id = $1
           group by s.endpoint, s.origin, place_key(s.endpoint, s.place)
           order by s.endpoint collate "C", s.origin collate "C", min(s.place) collate "C" limit $2"#,
        tenant.uuid(),
        limit,
    )
    .fetch_all(conn)
    .await
}
