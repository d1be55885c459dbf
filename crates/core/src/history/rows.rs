//! What the queries find as rows of answers and files, of flights and of hotels.

use super::buckets::ProductBucket;
use super::latest::LatestPrice;
use super::list::ListedObservation;
use crate::contract::Endpoint;
use crate::contract::history::{FlightObservation, HotelObservation};
use crate::contract::latest::{FlightLatest, HotelLatest};
use crate::contract::series::{FlightBucket, HotelBucket};

impl From<ListedObservation> for FlightObservation {
    fn from(ListedObservation { row, product }: ListedObservation) -> Self {
        Self {
            endpoint: row.endpoint,
            from_airport: row.origin.unwrap_or_default(),
            to_airport: row.place,
            departure_date: row.first_date.to_jiff(),
            return_date: row.last_date.map(jiff_sqlx::Date::to_jiff),
            product,
            price: row.price.map(|price| price.normalize()),
            currency: row.currency,
            carrier: row.seller,
            results: count(row.results),
            price_insights_low: row.band_low.map(|price| price.normalize()),
            price_insights_high: row.band_high.map(|price| price.normalize()),
            verdict: row.verdict,
            search_status: row.search_status,
            reason: row.reason,
            observed_at: row.observed_at.to_jiff(),
            item_id: row.item_id.into(),
        }
    }
}

impl From<ListedObservation> for HotelObservation {
    fn from(ListedObservation { row, product }: ListedObservation) -> Self {
        let (hotel, room) = hotel_or_room(row.endpoint, row.seller);
        let first_date = row.first_date.to_jiff();
        Self {
            endpoint: row.endpoint,
            place: row.place,
            checkin_date: first_date,
            checkout_date: row.last_date.map_or(first_date, jiff_sqlx::Date::to_jiff),
            proxy_country: row.market,
            product,
            price: row.price.map(|price| price.normalize()),
            currency: row.currency,
            hotel,
            room,
            results: count(row.results),
            search_status: row.search_status,
            reason: row.reason,
            observed_at: row.observed_at.to_jiff(),
            item_id: row.item_id.into(),
        }
    }
}

impl From<LatestPrice> for FlightLatest {
    fn from(
        LatestPrice {
            row,
            product,
            age_seconds,
            history_verdict,
        }: LatestPrice,
    ) -> Self {
        let is_round_trip = row.endpoint == Endpoint::FlightsRoundtrip;
        Self {
            endpoint: row.endpoint,
            from_airport: row.origin.unwrap_or_default(),
            to_airport: row.place,
            departure_date: row.first_date.to_jiff(),
            return_date: is_round_trip.then(|| row.last_date.to_jiff()),
            product,
            price: row.price.normalize(),
            currency: row.currency,
            carrier: row.seller,
            price_insights_low: row.band_low.map(|price| price.normalize()),
            price_insights_high: row.band_high.map(|price| price.normalize()),
            verdict: row.verdict,
            observed_at: row.observed_at.to_jiff(),
            age_seconds,
            item_id: row.item_id.into(),
            history_verdict,
        }
    }
}

impl From<LatestPrice> for HotelLatest {
    fn from(
        LatestPrice {
            row,
            product,
            age_seconds,
            history_verdict,
        }: LatestPrice,
    ) -> Self {
        let (hotel, room) = hotel_or_room(row.endpoint, row.seller);
        Self {
            endpoint: row.endpoint,
            place: row.place,
            checkin_date: row.first_date.to_jiff(),
            checkout_date: row.last_date.to_jiff(),
            proxy_country: row.market,
            product,
            price: row.price.normalize(),
            currency: row.currency,
            hotel,
            room,
            observed_at: row.observed_at.to_jiff(),
            age_seconds,
            item_id: row.item_id.into(),
            history_verdict,
        }
    }
}

impl From<ProductBucket> for FlightBucket {
    fn from(
        ProductBucket {
            product,
            stats,
            verdict,
        }: ProductBucket,
    ) -> Self {
        let (price_insights_low, price_insights_high) = stats.band();
        Self {
            bucket: stats.bucket,
            endpoint: product.endpoint,
            from_airport: product.origin.clone().unwrap_or_default(),
            to_airport: product.place.clone(),
            product: product.fields.clone(),
            currency: product.currency.clone(),
            observations: stats.observations,
            prices: stats.prices,
            minimum: stats.range.map(|range| range.lowest),
            median: stats.range.map(|range| range.middle),
            maximum: stats.range.map(|range| range.highest),
            implausible: stats.implausible,
            lowest_implausible: stats.lowest_implausible(),
            price_insights_low,
            price_insights_high,
            empty: stats.empty,
            degraded: stats.degraded,
            degraded_share: stats.degraded_share(),
            history_verdict: verdict,
        }
    }
}

impl From<ProductBucket> for HotelBucket {
    fn from(
        ProductBucket {
            product,
            stats,
            verdict,
        }: ProductBucket,
    ) -> Self {
        Self {
            bucket: stats.bucket,
            endpoint: product.endpoint,
            place: product.place.clone(),
            proxy_country: product.market.clone(),
            product: product.fields.clone(),
            currency: product.currency.clone(),
            observations: stats.observations,
            prices: stats.prices,
            minimum: stats.range.map(|range| range.lowest),
            median: stats.range.map(|range| range.middle),
            maximum: stats.range.map(|range| range.highest),
            implausible: stats.implausible,
            lowest_implausible: stats.lowest_implausible(),
            empty: stats.empty,
            degraded: stats.degraded,
            degraded_share: stats.degraded_share(),
            history_verdict: verdict,
        }
    }
}

fn count(number: Option<i32>) -> Option<u32> {
    number.and_then(|number| u32::try_from(number).ok())
}

/// Assigns the seller's name: the hotel in a hotel search, otherwise the room.
fn hotel_or_room(endpoint: Endpoint, seller: Option<String>) -> (Option<String>, Option<String>) {
    if endpoint == Endpoint::HotelsSearch {
        (seller, None)
    } else {
        (None, seller)
    }
}
