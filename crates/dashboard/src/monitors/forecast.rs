//! What a month of a monitor costs.

use farescan_sheets::monitor::month_of;
use maud::{Markup, html};
use serde_json::{Map, Value};

use crate::parts;
use crate::sheet;
use farescan_core::contract::monitors::{MonitorForecast, MonitorPreview};

/// The cost and the next slots of the monitor that a checked body describes; `more` stands below
/// them.
pub(super) fn cards(
    previewed: &MonitorPreview,
    body: &Map<String, Value>,
    title: &str,
    more: &Markup,
) -> Markup {
    let schedule = body.get("schedule");
    let zone = schedule.and_then(|schedule| schedule.get("timezone")?.as_str());
    html! {
        div class="grid2" {
            (card(&previewed.forecast, body))
            section class="card" {
                h2 { (title) }
                ol class="plain-list" {
                    @for slot in &previewed.next_slots { li { (parts::zoned(*slot, zone.unwrap_or("UTC"))) } }
                }
                (more)
            }
        }
    }
}

/// The forecast with its limit and the price on each plan.
fn card(forecast: &MonitorForecast, body: &Map<String, Value>) -> Markup {
    let plans = sheet::plans(&forecast.plans);
    sheet::section(&month_of(forecast, body), &html! {}, &plans)
}
