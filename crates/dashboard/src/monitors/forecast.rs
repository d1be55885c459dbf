//! What a month of a monitor costs.

use farescan_sheets::numbers;
use maud::{Markup, html};
use serde_json::{Map, Value};

use crate::parts;
use crate::sheet;
use farescan_core::contract::monitors::{MonitorForecast, MonitorPreview};
use farescan_core::contract::scans::RequestRange;

/// The cost and the next slots of the monitor that a checked body describes; `more` stands below
/// them.
pub(super) fn cards(
    previewed: &MonitorPreview,
    body: &Map<String, Value>,
    title: &str,
    more: &Markup,
) -> Markup {
    let limit = body.get("max_requests_per_month").and_then(Value::as_u64);
    let schedule = body.get("schedule");
    let zone = schedule.and_then(|schedule| schedule.get("timezone")?.as_str());
    html! {
        div class="grid2" {
            (card(&previewed.forecast, limit.and_then(|limit| u32::try_from(limit).ok())))
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
pub(super) fn card(forecast: &MonitorForecast, limit: Option<u32>) -> Markup {
    html! {
        section class="card" {
            h2 { "Cost of a month" }
            p class="sub" { "The month that begins with the next slot." }
            dl class="kv" {
                dt { "Runs" } dd { (numbers::count(forecast.slots)) }
                dt { "Each run" } dd { (numbers::request_range(forecast.requests_per_run)) }
                dt { "The month" } dd { b { (numbers::request_range(forecast.requests_per_month)) } }
                dt { "Your limit" }
                dd {
                    @match limit {
                        Some(limit) => {
                            (numbers::count(limit)) " requests a month. A slot whose run does not fit is skipped."
                        }
                        None => { span class="warn-text" { "none" } }
                    }
                }
            }
            (limit_warning(forecast, limit))
            (sheet::plans(&forecast.plans))
        }
    }
}

/// What all runs of the month may need, where that is more than the limit.
fn limit_warning(forecast: &MonitorForecast, limit: Option<u32>) -> Markup {
    let slots = u64::from(forecast.slots);
    let all = RequestRange {
        least: forecast.requests_per_run.least.saturating_mul(slots),
        expected: None,
        most: forecast.requests_per_run.most.saturating_mul(slots),
    };
    html! {
        @if limit.is_some_and(|limit| u64::from(limit) < all.most) {
            p class="notice warn" {
                "All runs of the month may need " b { (numbers::request_range(all)) } ". With your limit the last ones of a month are skipped."
            }
        }
    }
}
