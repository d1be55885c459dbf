//! What searches look for in the history.

use std::collections::BTreeSet;

use jiff::civil::Date;
use jiff_sqlx::ToSqlx as _;
use serde_json::Value;

use crate::contract::Request;
use crate::history::Subject;

/// Where a search's answers stand in the history, and its body.
#[derive(Debug, Default)]
pub(super) struct Searches {
    pub(super) bodies: Vec<Value>,
    pub(super) series: Vec<Vec<u8>>,
    first_dates: Vec<Date>,
    /// The first date where there is no second.
    last_dates: Vec<Date>,
    /// All that are asked for.
    pub(super) currencies: BTreeSet<String>,
}

impl Searches {
    /// Those of `requests`, each with a value of its own; a request without a price has none.
    pub(super) fn of<'a, T>(requests: impl Iterator<Item = (T, &'a Request)>) -> (Vec<T>, Self) {
        let (mut of, mut searches) = (Vec::new(), Self::default());
        for (value, request) in requests {
            let Some(subject) = Subject::of(request) else {
                continue;
            };
            of.push(value);
            searches.bodies.push(Value::Object(request.to_body()));
            searches.series.push(subject.series.key.0.to_vec());
            searches.currencies.insert(subject.series.currency);
            searches.first_dates.push(subject.first_date);
            searches
                .last_dates
                .push(subject.last_date.unwrap_or(subject.first_date));
        }
        (of, searches)
    }

    /// The first and the last dates.
    pub(super) fn sql_dates(&self) -> [Vec<jiff_sqlx::Date>; 2] {
        [&self.first_dates, &self.last_dates]
            .map(|dates| dates.iter().map(|date| date.to_sqlx()).collect())
    }
}
