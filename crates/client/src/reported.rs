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

    /// The same of an alert. A monitor that has changed since its slot, a whole second, may look at
    /// another trip.
    pub fn of_alert(&self, alert: &Alert) -> Reported {
        let monitor = self.0.get(&alert.monitor_id);
        let found = Reported::of(monitor, &alert.cell);
        let is_same = |of: &Monitor| of.updated_at.as_second() <= alert.slot.as_second();
        Reported {
            trip: found.trip.filter(|_| monitor.is_some_and(is_same)),
            ..found
        }
    }
}
