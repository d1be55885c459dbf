//! The monitors that alerts and deliveries are of: their names, and the trips that they look at.

use std::collections::HashMap;
use std::str::FromStr;

use farescan_sheets::alert::Reported;
use farescan_sheets::trip;
use serde_json::{Map, Value};

use super::failure::PageFailure;
use super::session::Session;
use farescan_core::activity::Activity;
use farescan_core::contract::Endpoint;
use farescan_core::contract::monitors::{Alert, Monitor};
use farescan_core::ids::{ItemId, MonitorId, TenantId};
use farescan_core::monitors::read;
use farescan_core::scans;

/// The monitors of one page, and the searches of its alerts, by their ids.
#[derive(Debug, Default)]
pub(super) struct ReportedMonitors {
    monitors: HashMap<MonitorId, Monitor>,
    searches: HashMap<ItemId, (Endpoint, Map<String, Value>)>,
}

impl ReportedMonitors {
    pub(super) async fn read(
        session: &Session,
        tenant: TenantId,
        ids: impl IntoIterator<Item = MonitorId>,
    ) -> Result<Self, PageFailure> {
        let mut ids: Vec<_> = ids.into_iter().collect();
        ids.sort_unstable();
        ids.dedup();
        let context = session.context()?;
        let mut conn = session.pool()?.acquire().await?;
        let found = read::by_ids(&mut conn, context.ring, tenant, &ids, context.now).await?;
        let by_id = |monitor: Monitor| (monitor.id, monitor);
        Ok(Self {
            monitors: found.into_iter().map(by_id).collect(),
            searches: HashMap::new(),
        })
    }

    /// The monitors of stored alerts, and the searches that the alerts are about.
    pub(super) async fn of_alerts(
        session: &Session,
        tenant: TenantId,
        alerts: &[Value],
    ) -> Result<Self, PageFailure> {
        let monitors: Vec<MonitorId> = ids(alerts, "monitor_id");
        let items: Vec<ItemId> = ids(alerts, "item_id");
        let reported = Self::read(session, tenant, monitors).await?;
        Ok(Self {
            searches: scans::read::searches(session.pool()?, tenant, &items).await?,
            ..reported
        })
    }

    /// Those of a page of activity.
    pub(super) async fn of_activity(
        session: &Session,
        tenant: TenantId,
        rows: &[Activity],
    ) -> Result<Self, PageFailure> {
        let monitor = |row: &Activity| match row {
            Activity::Scan(scan) => scan.monitor_id,
            Activity::Alert(.., alert) => id(alert, "monitor_id"),
            Activity::Delivery(delivery) => delivery.monitor_id,
        };
        let item = |row: &Activity| match row {
            Activity::Alert(.., alert) => id(alert, "item_id"),
            Activity::Scan(_) | Activity::Delivery(_) => None,
        };
        let items: Vec<ItemId> = rows.iter().filter_map(item).collect();
        let reported = Self::read(session, tenant, rows.iter().filter_map(monitor)).await?;
        Ok(Self {
            searches: scans::read::searches(session.pool()?, tenant, &items).await?,
            ..reported
        })
    }

    /// A monitor's name, and the route or hotel and the dates that it looks at.
    pub(super) fn of(&self, id: MonitorId) -> Reported {
        Reported::of(self.monitors.get(&id), &Map::new())
    }

    /// The same of an alert, with the trip that its run searched.
    pub(super) fn of_alert(&self, alert: &Alert) -> Reported {
        let of_monitor = Reported::of_alert(self.monitors.get(&alert.monitor_id), alert);
        Reported {
            trip: self.searched_trip(alert).or(of_monitor.trip),
            ..of_monitor
        }
    }

    /// The route or hotel and the dates of an alert's search. An alert of a missing price has none.
    fn searched_trip(&self, alert: &Alert) -> Option<String> {
        let (endpoint, body) = self.searches.get(&alert.item_id?)?;
        trip::searched_trip(*endpoint, body, &alert.cell)
    }
}

/// The ids in a field of stored alerts, some of which this program may be unable to read.
fn ids<T: FromStr>(alerts: &[Value], name: &str) -> Vec<T> {
    alerts.iter().filter_map(|alert| id(alert, name)).collect()
}

fn id<T: FromStr>(alert: &Value, name: &str) -> Option<T> {
    alert.get(name)?.as_str()?.parse().ok()
}
