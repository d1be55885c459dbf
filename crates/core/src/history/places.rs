//! The routes, hotels and places that a caller has a history of.

use sqlx::PgConnection;

use super::store::products;
use crate::contract::Endpoint;
use crate::ids::TenantId;

/// Routes and places in one answer. A caller with more types the name.
const MAX_PLACES: i64 = 500;

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

/// At most 500 routes and places, by endpoint and name. Names that differ in case or outer space
/// are one place.
pub async fn places(conn: &mut PgConnection, tenant: TenantId) -> sqlx::Result<Vec<KnownPlace>> {
    products::places(conn, tenant, MAX_PLACES).await
}
