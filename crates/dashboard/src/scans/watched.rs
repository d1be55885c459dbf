//! The notice of a scan that one press has made with a monitor.

use farescan_sheets::rule;
use maud::{Markup, html};
use serde_json::Value;

use crate::channels;
use crate::failure::PageFailure;
use crate::links;
use crate::parts;
use crate::session::Session;
use farescan_core::ids::TenantId;
use farescan_core::monitors;

/// The monitor that one press has made with the scan, and whether somebody hears of its alerts. Nothing if
/// it is deleted.
pub(super) async fn watched(
    session: &Session,
    tenant: TenantId,
    monitor: &str,
) -> Result<Markup, PageFailure> {
    let Ok(id) = monitor.parse() else {
        return Ok(html! {});
    };
    let context = session.context()?;
    let (pool, ring) = (session.pool()?, context.ring);
    let Some(monitor) = monitors::read::monitor(pool, ring, tenant, id, context.now).await? else {
        return Ok(html! {});
    };
    let heard = channels::notice_of_monitor(session, &monitor).await?;
    let rules = monitor.alerts.iter();
    let body = monitor.scan.read::<Value>().unwrap_or_default();
    // The marketplace's default (gateway.md, rule 23).
    let currency = body["request"]["currency"].as_str().unwrap_or("USD");
    let rules: Vec<_> = rules
        .map(|rule| rule::sentence(rule, Some(currency)))
        .collect();
    Ok(html! {
        p class="notice" role="status" {
            a href=(links::monitor(id)) { (monitor.name) } " looks as well and alerts: " (rules.join(", ")) "."
            @if let Some(next) = monitor.next_slot { " Its next run is " (parts::time(next)) "." }
        }
        (heard)
    })
}
