//! The monitors that alerts and deliveries are of: their names, and the trips that they look at.

use std::collections::HashMap;

use farescan_contract::ids::MonitorId;
use farescan_contract::monitors::{Alert, Monitor};
use farescan_sheets::alert::Reported;
use serde_json::Map;

use super::client::{ApiClient, ClientError};
use super::pages::{Query, page_limit, rows};

/// The caller's monitors.
pub struct NamedMonitors(HashMap<MonitorId, Monitor>);

impl NamedMonitors {
    pub async fn read(client: &ApiClient) -> Result<Self, ClientError> {
        let path = Query::new("/v1/monitors").with("limit", Some(page_limit(None)));
        let monitors: Vec<Monitor> = rows(client, &path.path(), None).await?;
        let by_id = |monitor: Monitor| (monitor.id, monitor);
        Ok(Self(monitors.into_iter().map(by_id).collect()))
    }

    pub fn of(&self, id: MonitorId) -> Reported {
        Reported::of(self.0.get(&id), &Map::new())
    }

    /// The same of an alert, with the dates of its run.
    pub fn of_alert(&self, alert: &Alert) -> Reported {
        Reported::of_alert(self.0.get(&alert.monitor_id), alert)
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
        let monitors = NamedMonitors(HashMap::from([(monitor.id, monitor)]));
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
