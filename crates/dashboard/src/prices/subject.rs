//! What prices are of: a route, a hotel or a place, as it stands in the URL.

use crate::form::FormFields;
use farescan_core::contract::Api;

/// The fields that name a hotel or place; a query has one of them.
const PLACES: [&str; 3] = ["hotel_name", "destination", "hotel_booking_id"];

/// A route, hotel or place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PriceSubject {
    /// Fares between two airports.
    Route { from: String, to: String },
    /// Rates of a hotel or of a place's hotels; `field` is the query's field.
    Place { field: &'static str, text: String },
}

impl PriceSubject {
    /// The route of a query; `None` if an airport is missing.
    pub(super) fn route(query: &FormFields) -> Option<Self> {
        let code = |name| query.text(name).map(str::to_ascii_uppercase);
        Some(Self::Route {
            from: code("from_airport")?,
            to: code("to_airport")?,
        })
    }

    /// The hotel or place of a query.
    pub(super) fn place(query: &FormFields) -> Option<Self> {
        PLACES.into_iter().find_map(|field| {
            let text = query.text(field)?.to_owned();
            Some(Self::Place { field, text })
        })
    }

    pub(super) fn api(&self) -> Api {
        match self {
            Self::Route { .. } => Api::Flights,
            Self::Place { .. } => Api::Hotels,
        }
    }

    /// The fields of a query of the history.
    pub(super) fn pairs(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::Route { from, to } => {
                vec![("from_airport", from.clone()), ("to_airport", to.clone())]
            }
            Self::Place { field, text } => vec![(field, text.clone())],
        }
    }

    pub(super) fn title(&self) -> String {
        match self {
            Self::Route { from, to } => format!("{from} → {to}"),
            Self::Place { text, .. } => text.clone(),
        }
    }

    /// Its page.
    pub(super) fn path(&self) -> String {
        let base = match self {
            Self::Route { .. } => super::FLIGHTS_PATH,
            Self::Place { .. } => super::HOTELS_PATH,
        };
        path_with(base, self.pairs())
    }
}

/// A path with a query.
pub(super) fn path_with<'a>(
    base: &str,
    pairs: impl IntoIterator<Item = (&'a str, String)>,
) -> String {
    let query = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(pairs)
        .finish();
    format!("{base}?{query}")
}
