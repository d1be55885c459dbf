//! `/usage`: what the plans have left and when they end, the bill, and the caller's own limits.
//!
//! Here: the page. Not here: its forms (`limits`, `key`).

pub(super) mod bill;
mod key;
mod limits;
mod pause_all;

use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use farescan_sheets::plan;
use jiff::Timestamp;
use maud::{Markup, html};

use super::charts::{Segment, segments};
use super::failure::PageFailure;
use super::form::FormFields;
use super::layout::{NavItem, page};
use super::parts::{self, Tone};
use super::session::Session;
use super::sheet;
use farescan_core::account::quota;
use farescan_core::app::AppState;
use farescan_core::app::error::ApiError;
use farescan_core::contract::Api;
use farescan_core::contract::quota::LaneQuota;

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

/// The page, with what was refused above.
async fn refused(session: &Session, what: &str, error: &ApiError) -> Result<Response, PageFailure> {
    let notice = html! {
        div class="notice bad" role="alert" { (what) ": " (error.message()) }
    };
    let status = StatusCode::UNPROCESSABLE_ENTITY;
    render(session, status, &FormFields::default(), &notice).await
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
        (parts::head(&html! {}, "Usage and limits", &html! { "Each billed request is one of your plan at the marketplace. This page costs none." }, &buttons))
        (notice)
        div class="grid2" { @for (api, lane) in lanes { (lane_card(api, lane, context.now)) } }
        (bill)
        div class="grid2" { @for (api, lane) in lanes { (limits::form(session, api, lane)) } }
        (key::form(session))
    };
    Ok((
        status,
        page(session, "Usage and limits", NavItem::Account, body),
    )
        .into_response())
}

fn lane_card(api: Api, lane: &LaneQuota, now: Timestamp) -> Markup {
    let plan = plan::sheet(api, lane, now);
    let tone = if lane.paused.is_some() {
        Tone::Warn
    } else {
        Tone::Good
    };
    html! {
        section class="card" {
            div class="card-head" {
                h2 { (plan.title) }
                span { (sheet::state(tone, &plan)) }
            }
            (plan_bar(lane))
            (sheet::pairs(&plan.figures))
            @for notice in &plan.notices { (sheet::notice(notice, None)) }
        }
    }
}

fn plan_bar(lane: &LaneQuota) -> Markup {
    let Some((limit, left)) = lane.plan_requests_limit.zip(lane.plan_requests_remaining) else {
        return html! {};
    };
    let reserve = lane.bounds.keep_in_reserve.min(left);
    let used = limit.saturating_sub(left);
    html! {
        @if parts::is_visible_share(used.saturating_add(reserve), limit) {
            (segments("Plan", limit, &[
                Segment { name: "used", class: "used", count: used },
                Segment { name: "kept in reserve", class: "reserve", count: reserve },
                Segment { name: "left for scans", class: "rest", count: left - reserve },
            ]))
        }
    }
}
