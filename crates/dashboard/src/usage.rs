//! `/usage`: what the plans have left and when they end, the bill, and the caller's own limits.
//!
//! Here: the page. Not here: its forms (`limits`, `key`).

pub(super) mod bill;
mod key;
mod limits;
mod pause_all;
mod pause_run;

use axum::Router;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use farescan_sheets::numbers;
use farescan_sheets::trip;
use jiff::Timestamp;
use maud::{Markup, html};

use super::charts::{Segment, segments};
use super::failure::PageFailure;
use super::form::FormFields;
use super::layout::{NavItem, page_with_status};
use super::parts::{self, Tone};
use super::session::Session;
use farescan_core::account::quota;
use farescan_core::app::AppState;
use farescan_core::contract::Api;
use farescan_core::contract::quota::{LaneQuota, PaceSource};
use farescan_core::contract::scans::PauseReason;

pub(super) const PATH: &str = "/usage";

pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route(PATH, get(show))
        .merge(limits::routes())
        .merge(pause_all::routes())
        .merge(key::routes())
}

async fn show(session: Session, query: FormFields) -> Result<Response, PageFailure> {
    render(&session, StatusCode::OK, &query, &html! {}).await
}

/// The page, with a notice above.
async fn render(
    session: &Session,
    status: StatusCode,
    query: &FormFields,
    notice: &Markup,
) -> Result<Response, PageFailure> {
    let context = session.context()?;
    let pace = &session.custody()?.pace;
    let quota = quota::quota(session.pool()?, session.tenant(), pace).await?;
    let bill = bill::markup(session, query, context.now).await?;
    let buttons = pause_all::buttons(session).await?;
    let lanes = [(Api::Flights, &quota.flights), (Api::Hotels, &quota.hotels)];
    let body = html! {
        div class="head" {
            div {
                h1 { "Usage" }
                p class="sub" { "Each billed request is one of your plan at the marketplace. This page costs none." }
            }
            div class="actions" { (buttons) }
        }
        (notice)
        div class="grid2" { @for (api, lane) in lanes { (lane_card(api, lane, context.now)) } }
        (bill)
        div class="grid2" { @for (api, lane) in lanes { (limits::form(session, api, lane)) } }
        (key::form(session))
    };
    Ok(page_with_status(
        status,
        session,
        "Usage",
        NavItem::Usage,
        body,
    ))
}

/// The name of an API for people.
fn api_name(api: Api) -> &'static str {
    match api {
        Api::Flights => "Flights",
        Api::Hotels => "Hotels",
    }
}

fn lane_card(api: Api, lane: &LaneQuota, now: Timestamp) -> Markup {
    let plan = lane.plan_requests_limit.zip(lane.plan_requests_remaining);
    html! {
        section class="card" {
            div class="card-head" {
                h2 { (api_name(api)) " plan" }
                @match &lane.paused {
                    Some(paused) => { (parts::chip(Tone::Warn, &format!("paused: {}", pause_words(paused.reason)))) }
                    None => { (parts::chip(Tone::Good, "open")) }
                }
            }
            @match plan {
                Some((limit, left)) => { (plan_bar(lane, limit, left, now)) }
                None => {
                    p class="notice" {
                        "The marketplace has not reported this plan yet. It does with the first answer to a search; "
                        "until then you can name your plan below."
                    }
                }
            }
            dl class="kv" {
                dt { "Pace of scans" } dd { (pace_words(lane)) }
                dt { "In flight" } dd { (lane.in_flight) " of at most " (numbers::count(lane.max_in_flight)) }
                dt { "Reserve" } dd { (reserve_words(lane)) }
                @if let Some(seen) = lane.plan_seen_at { dt { "Last reported" } dd { (parts::time(seen)) } }
                @if let Some(paused) = &lane.paused {
                    dt { "Paused until" }
                    dd { @match paused.until { Some(until) => { (parts::time(until)) } None => { (mend_words(paused.reason)) } } }
                }
            }
        }
    }
}

fn plan_bar(lane: &LaneQuota, limit: u64, left: u64, now: Timestamp) -> Markup {
    let reserve = lane.bounds.keep_in_reserve.min(left);
    let used = limit.saturating_sub(left);
    let is_old = lane.plan_resets_at.is_some_and(|resets| resets <= now);
    html! {
        p { b class="big" { (numbers::count(left)) } " of " (numbers::count(limit)) " requests left" }
        @if parts::is_visible_share(used.saturating_add(reserve), limit) {
            (segments("Plan", limit, &[
                Segment { name: "used", class: "used", count: used },
                Segment { name: "kept in reserve", class: "reserve", count: reserve },
                Segment { name: "left for scans", class: "rest", count: left - reserve },
            ]))
        } @else {
            p class="hint" { (numbers::count(used)) " used" @if reserve > 0 { ", " (numbers::count(reserve)) " kept in reserve" } "." }
        }
        @if let Some(resets) = lane.plan_resets_at {
            @if is_old {
                p class="hint" { "A new period began " (parts::time(resets)) "; the numbers are of the one before." }
            } @else {
                p class="hint" { "The next period begins " (parts::time(resets)) "." }
            }
        }
    }
}

fn pace_words(lane: &LaneQuota) -> String {
    let source = match lane.pace_source {
        PaceSource::Start => "the start value until the marketplace reports a rate",
        PaceSource::Headers => "as the marketplace reports",
        PaceSource::After429 => "reduced after a 429; it grows again by itself",
        PaceSource::Caller => "your own limit or plan",
    };
    format!(
        "{} searches a minute, {source}",
        numbers::rate(lane.searches_per_minute)
    )
}

fn reserve_words(lane: &LaneQuota) -> String {
    match lane.bounds.keep_in_reserve {
        0 => "none: scans may use the whole plan".to_owned(),
        kept => format!("{} requests stay for your own calls", numbers::count(kept)),
    }
}

/// Why a lane waits.
fn pause_words(reason: PauseReason) -> String {
    match reason {
        PauseReason::RateLimited => "rate window full".to_owned(),
        PauseReason::QuotaExhausted => "plan used up".to_owned(),
        PauseReason::ReserveReached => "reserve reached".to_owned(),
        other => trip::words(other.as_str()),
    }
}

/// What ends a pause that has no end of its own.
fn mend_words(reason: PauseReason) -> &'static str {
    match reason {
        PauseReason::KeyRejected | PauseReason::NotSubscribed => {
            "you resume a scan or monitor with a good key, or change the key below"
        }
        PauseReason::ReserveReached => "you lower the reserve below, or a new period begins",
        _ => "a scan of it is resumed",
    }
}
