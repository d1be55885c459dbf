//! The monitors that alerts and deliveries are of: their names, and the trips that they look at.

use std::collections::{BTreeSet, HashMap};

use farescan_contract::ids::{ItemId, MonitorId};
use farescan_contract::monitors::{Alert, Monitor};
use farescan_contract::{ErrorType, Item};
use farescan_sheets::alert::Reported;
use farescan_sheets::trip::{endpoint_of, searched_trip};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Map, Value};

use super::client::{ApiClient, ClientError};
use super::pages::{Query, page_limit, rows};

/// How many searches of alerts are read at a time.
const READS_AT_A_TIME: usize = 4;

/// The caller's monitors.
pub struct NamedMonitors {
    monitors: HashMap<MonitorId, Monitor>,
    /// The bodies of searches that alerts are about, where no monitor has their trip.
    searches: HashMap<ItemId, Map<String, Value>>,
}

impl NamedMonitors {
    pub async fn read(client: &ApiClient) -> Result<Self, ClientError> {
        let path = Query::new("/v1/monitors").with("limit", Some(page_limit(None)));
        let monitors: Vec<Monitor> = rows(client, &path.path(), None).await?;
        let by_id = |monitor: Monitor| (monitor.id, monitor);
        Ok(Self {
            monitors: monitors.into_iter().map(by_id).collect(),
            searches: HashMap::new(),
        })
    }

    /// The same, with the searches of those alerts whose monitor has changed since or is deleted: one read for
    /// each, and none for the others. A search that was deleted is left out.
    pub async fn of_alerts<'a>(
        client: &ApiClient,
        alerts: impl IntoIterator<Item = &'a Alert>,
    ) -> Result<Self, ClientError> {
        let known = Self::read(client).await?;
        let needed = alerts.into_iter();
        let needed = needed.filter(|alert| known.of_alert(alert).trip.is_none());
        let items: BTreeSet<_> = needed.filter_map(|alert| alert.item_id).collect();
        let reads = items.into_iter().map(async |id| {
            match client.get::<Item>(&format!("/v1/items/{id}")).await {
                Ok(item) => Ok(Some((id, item.search))),
                Err(error) if error.error_type() == Some(ErrorType::NotFound) => Ok(None),
                Err(error) => Err(error),
            }
        });
        let reads = stream::iter(reads).buffer_unordered(READS_AT_A_TIME);
        let searches: Vec<_> = reads.try_collect().await?;
        Ok(Self {
            searches: searches.into_iter().flatten().collect(),
            ..known
        })
    }

    pub fn of(&self, id: MonitorId) -> Reported {
        Reported::of(self.monitors.get(&id), &Map::new())
    }

    /// The same of an alert, with the trip that its run searched.
    pub fn of_alert(&self, alert: &Alert) -> Reported {
        let of = Reported::of_alert(self.monitors.get(&alert.monitor_id), alert);
        let search = alert.item_id.and_then(|item| self.searches.get(&item));
        let searched =
            search.and_then(|search| searched_trip(endpoint_of(search)?, search, &alert.cell));
        Reported {
            trip: searched.or(of.trip),
            ..of
        }
    }
}

#[cfg(test)]
mod tests {
    use farescan_sheets::alert;
    use serde_json::json;

    use super::*;
    use crate::format::time;
    use crate::render::sheet;
    use crate::terminal::Screen;

    #[test]
    fn an_alert_has_the_date_of_its_run() {
        let monitor = json!({
            "id": "mon_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b", "name": "a month ahead",
            "schedule": {"cron": "0 1 * * *", "timezone": "Asia/Tokyo"},
            "scan": {"endpoint": "flights/oneway",
                     "request": {"from_airport": "TLV", "to_airport": "LHR", "departure_date": "+30d"}},
            "alerts": [], "webhook_url": null, "webhook": null, "webhook_secret": null, "status": "active",
            "status_reason": null, "next_slot": null, "last_slot": null,
            "requests": {"this_month": 30, "max_per_month": 2000}, "key_custody": null, "forecast": null,
            "created_at": "2026-11-30T08:00:00Z", "updated_at": "2026-11-30T08:00:00Z"
        });
        let monitor: Monitor = serde_json::from_value(monitor).unwrap();
        let fired = "2026-12-01T16:00:12Z";
        let alert = json!({
            "id": "alr_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b", "monitor_id": "mon_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b",
            "slot": "2026-12-01T16:00:00Z", "slot_kind": "schedule", "scan_id": null, "type": "price_below",
            "rule": {"type": "price_below", "amount": 200}, "scope": "scan", "cell": {},
            "price": 199, "currency": "USD", "item_id": null, "observed_at": null, "search_status": null,
            "before": null, "threshold": 200, "reference": null, "baseline": null, "searched": null,
            "state_before": {"armed": true}, "state_after": {"armed": false}, "fired_at": fired
        });
        let monitors = NamedMonitors {
            monitors: HashMap::from([(monitor.id, monitor)]),
            searches: HashMap::new(),
        };
        let screen = Screen {
            width: 140,
            height: 50,
            colour: false,
            live: false,
            interactive: false,
        };
        let shown = sheet::table(&alert::table(&[alert], |of| monitors.of_alert(of)), screen);
        // The day begins in Tokyo at 15:00 UTC.
        let fired = time(fired.parse().unwrap());
        insta::assert_snapshot!(shown.replace(&fired, "FIRED-AT-16:00-Z"));
    }
}
