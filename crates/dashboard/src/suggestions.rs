//! Airports, hotels and places that a caller has searched before, to choose from in forms. Browsers
//! offer them while one types, without a script.

use std::collections::BTreeSet;
use std::time::Duration;

use maud::{Markup, html};
use serde_json::Value;
use tokio::time::timeout;

use super::failure::PageFailure;
use super::session::Session;
use farescan_core::contract::Endpoint;
use farescan_core::history::places;
use farescan_core::ids::TenantId;
use farescan_core::scans;

/// A form waits this long for its suggestions: the read replica may be unavailable.
const READ_TIMEOUT: Duration = Duration::from_millis(300);
/// Names of one list: more would make every form large.
const MAX_NAMES: usize = 200;
/// The lists with the fields that take from them.
const LISTS: [(&str, &[&str]); 4] = [
    ("airports", &["from_airport", "to_airport"]),
    ("hotels", &["hotel_name"]),
    ("places", &["destination"]),
    ("hotel-ids", &["hotel_booking_id"]),
];

/// The names by list.
#[derive(Debug, Default)]
pub(super) struct Suggestions([BTreeSet<String>; LISTS.len()]);

/// The list of a field, for its attribute `list`.
pub(super) fn list_of(field: &str) -> Option<&'static str> {
    LISTS
        .iter()
        .find_map(|(list, fields)| fields.contains(&field).then_some(*list))
}

impl Suggestions {
    /// Those of the caller's history and last scans, as far as they can be read in
    /// [`READ_TIMEOUT`]: a form works without them.
    pub(super) async fn read(session: &Session) -> Self {
        let mut found = Self::default();
        if let Some(tenant) = session.tenant() {
            let reading = timeout(READ_TIMEOUT, found.add_all(session, tenant)).await;
            if !matches!(reading, Ok(Ok(()))) {
                tracing::info!(?reading, "a form is shown without some suggestions");
            }
        }
        found
    }

    async fn add_all(&mut self, session: &Session, tenant: TenantId) -> Result<(), PageFailure> {
        // Scans first: they have names as they were typed.
        let newest = scans::read::newest_unjudged(session.pool()?, tenant).await?;
        for fields in newest.iter().flat_map(|scan| [&scan.request, &scan.sweep]) {
            for (list, (_, names)) in LISTS.iter().enumerate() {
                for value in names.iter().filter_map(|name| fields.get(*name)) {
                    self.add_value(list, value);
                }
            }
        }
        let known = {
            let mut conn = session.history_pool()?.acquire().await?;
            places::places(&mut conn, tenant).await?
        };
        for place in known {
            let list = match place.endpoint {
                Endpoint::FlightsOneway | Endpoint::FlightsRoundtrip => 0,
                Endpoint::HotelsByName | Endpoint::HotelsResolve => 1,
                Endpoint::HotelsSearch => 2,
                Endpoint::HotelsRooms => 3,
            };
            self.add(list, &place.place);
            if let Some(airport) = &place.from_airport {
                self.add(list, airport);
            }
        }
        Ok(())
    }

    fn add(&mut self, list: usize, name: &str) {
        let known = &mut self.0[list];
        if known.len() >= MAX_NAMES {
            return;
        }
        if !known.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            known.insert(name.to_owned());
        }
    }

    fn add_value(&mut self, list: usize, value: &Value) {
        match value {
            Value::String(name) => self.add(list, name),
            Value::Array(values) => values.iter().for_each(|value| self.add_value(list, value)),
            _ => {}
        }
    }

    /// The lists, once for each form.
    pub(super) fn markup(&self) -> Markup {
        html! {
            @for ((list, _), names) in LISTS.iter().zip(&self.0) {
                datalist id=(list) { @for name in names { option value=(name) {} } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_name_is_offered_once_in_the_list_of_its_field() {
        let mut found = Suggestions::default();
        found.add_value(0, &json!(["LHR", "CDG"]));
        found.add_value(0, &json!("lhr"));
        found.add_value(0, &json!(3));
        let page = found.markup().into_string();
        assert!(page.contains(r#"<option value="CDG"></option><option value="LHR"></option>"#));
        assert!(!page.contains("lhr"));
        assert_eq!(list_of("to_airport"), Some("airports"));
        assert_eq!(list_of("label"), None);
    }
}
