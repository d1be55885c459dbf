//! The monitors that alerts and deliveries are of: their names, and the trips that they look at.

use std::collections::HashMap;

use jiff::Timestamp;
use maud::{Markup, html};
use serde_json::{Map, Value};

use super::failure::PageFailure;
use super::links;
use super::scans as scan_pages;
use super::session::Session;
use crate::contract::monitors::{Alert, Monitor};
use crate::ids::{MonitorId, TenantId};
use crate::monitors::read;
use crate::monitors::relative_dates::resolve_dates;
use crate::monitors::schedule::Schedule;

/// The monitors of one page, by their ids.
#[derive(Debug, Default)]
pub(super) struct ReportedMonitors(HashMap<MonitorId, Monitor>);

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
        Ok(Self(found.into_iter().map(by_id).collect()))
    }

    /// The monitor's name as a link to its page. One that was deleted meanwhile has none.
    pub(super) fn link(&self, id: MonitorId) -> Markup {
        let name = self.0.get(&id).map(|monitor| monitor.name.as_str());
        html! {
            a class="clip" href=(links::monitor(id)) title=[name] { (name.unwrap_or("Monitor")) }
        }
    }

    /// The route or hotel and the dates that a monitor looks at.
    pub(super) fn trip(&self, id: MonitorId) -> Option<String> {
        let scan: Map<String, Value> = self.0.get(&id)?.scan.read().ok()?;
        scan_pages::trip(&scan, &Map::new())
    }

    /// The route or hotel and the dates of an alert's search.
    pub(super) fn alert_trip(&self, alert: &Alert) -> Option<String> {
        let monitor = self.0.get(&alert.monitor_id)?;
        let scan: Map<String, Value> = monitor.scan.read().ok()?;
        scan_pages::trip(&of_run(monitor, scan, alert.slot), &alert.cell)
    }
}

/// The scan with the dates of the run of a slot.
fn of_run(monitor: &Monitor, scan: Map<String, Value>, slot: Timestamp) -> Map<String, Value> {
    match Schedule::parse(&monitor.schedule.cron, &monitor.schedule.timezone) {
        Some(schedule) => resolve_dates(&scan, schedule.date(slot)),
        None => scan,
    }
}
