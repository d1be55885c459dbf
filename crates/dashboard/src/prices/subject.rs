//! What prices are of: a route, a hotel or a place, as it stands in the URL.

use crate::failure::PageFailure;
use crate::form::FormFields;
use farescan_core::contract::{Api, HistoryQuery};
use farescan_core::history::PriceQuery;

/// The fields that name a hotel or place; a query has one of them.
const PLACES: [&str; 3] = ["hotel_name", "destination", "hotel_booking_id"];

/// A route, hotel or place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PriceSubject {
    /// Fares between two airports.
    Route { from: String, to: String },
    /// Rates of a hotel or of a place's hotels; `field` is the query's field.
    Place { field: &'static str, text: String },
}

/// Names of the fields and figures of a route, or of a hotel or place.
pub(super) struct SubjectNames {
    /// The fields of its first date: on a day …
    pub(super) date: &'static str,
    /// … or from a day …
    pub(super) from: &'static str,
    /// … to a day.
    pub(super) to: &'static str,
    /// Its first date.
    pub(super) first_word: &'static str,
    /// A price.
    pub(super) price: &'static str,
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

    /// What its pages call things.
    pub(super) fn names(&self) -> &'static SubjectNames {
        match self {
            Self::Route { .. } => &SubjectNames {
                date: "departure_date",
                from: "departure_from",
                to: "departure_to",
                first_word: "Departure",
                price: "Lowest fare",
            },
            Self::Place { .. } => &SubjectNames {
                date: "checkin_date",
                from: "checkin_from",
                to: "checkin_to",
                first_word: "Check-in",
                price: "Lowest rate",
            },
        }
    }

    /// Whether its prices depend on the length of the stay.
    pub(super) fn has_nights(&self) -> bool {
        self.api() == Api::Hotels
    }

    /// Reads a query of the history, with the table of flights or of hotels.
    pub(super) fn read<F: HistoryQuery, H: HistoryQuery>(
        &self,
        pairs: &[(&'static str, String)],
    ) -> Result<PriceQuery, PageFailure> {
        let pairs = pairs.iter().map(|(name, text)| (*name, text.as_str()));
        Ok(match self {
            Self::Route { .. } => PriceQuery::read::<F>(pairs),
            Self::Place { .. } => PriceQuery::read::<H>(pairs),
        }?)
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

    pub(crate) fn title(&self) -> String {
        match self {
            Self::Route { from, to } => format!("{from} → {to}"),
            Self::Place { text, .. } => text.clone(),
        }
    }

    /// Its page.
    pub(crate) fn path(&self) -> String {
        self.path_with(Vec::new())
    }

    /// Its page with more fields in the query.
    pub(super) fn path_with(&self, more: Vec<(&'static str, String)>) -> String {
        let base = match self {
            Self::Route { .. } => super::FLIGHTS_PATH,
            Self::Place { .. } => super::HOTELS_PATH,
        };
        crate::parts::path_with(base, self.pairs().into_iter().chain(more))
    }
}
