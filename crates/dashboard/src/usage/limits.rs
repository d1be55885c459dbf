//! The caller's own limits of a lane: `PUT /v1/quota/{api}` as a form.

use axum::Router;
use axum::extract::Path;
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::post;
use farescan_sheets::numbers;
use farescan_sheets::plan::api_name;
use maud::{Markup, html};
use serde_json::{Map, Value};

use super::refused;
use crate::failure::{PageFailure, correctable};
use crate::form::{FormFields, SessionForm, token_field};
use crate::session::Session;
use farescan_core::account::lane_bounds::set_lane_bounds;
use farescan_core::app::AppState;
use farescan_core::app::error::ApiError;
use farescan_core::contract::plans::MarketplacePlan;
use farescan_core::contract::quota::{LaneBounds, LaneQuota};
use farescan_core::contract::{Api, ValidationErrors};

/// The fields with a number.
const NUMBERS: [(&str, &str, &str); 3] = [
    (
        "requests_per_minute",
        "Searches a minute, at most",
        "Empty: as fast as the plan allows",
    ),
    (
        "max_in_flight",
        "Searches at once, at most",
        "Empty: the service's own limit",
    ),
    (
        "keep_in_reserve",
        "Requests that scans leave for your own calls",
        "Scans pause when only these are left",
    ),
];

pub(super) fn routes() -> Router<AppState> {
    Router::new().route("/usage/limits/{api}", post(set))
}

pub(super) fn form(session: &Session, api: Api, lane: &LaneQuota) -> Markup {
    let bounds = lane.bounds;
    let value = |name: &str| match name {
        "requests_per_minute" => bounds.requests_per_minute.map(u64::from),
        "max_in_flight" => bounds.max_in_flight.map(u64::from),
        _ => Some(bounds.keep_in_reserve).filter(|kept| *kept > 0),
    };
    html! {
        section class="card" id=(format!("limits-{api}")) {
            h2 { "Your limits for " (api_name(api).to_lowercase()) }
            p class="sub" { "They apply from the next search on, to all scans and monitors. Synchronous searches are not held back." }
            form class="stack" method="post" action=(format!("/usage/limits/{api}")) {
                (token_field(session))
                div class="field" {
                    label for=(format!("{api}-plan")) { "Your plan" }
                    select id=(format!("{api}-plan")) name="plan" {
                        option value="" { "not named: wait for the marketplace's report" }
                        @for plan in MarketplacePlan::all(api) {
                            option value=(plan.name) selected[bounds.plan == Some(plan.name)] { (plan_words(plan)) }
                        }
                    }
                }
                @for (name, label, hint) in NUMBERS {
                    div class="field" {
                        label for=(format!("{api}-{name}")) { (label) }
                        input id=(format!("{api}-{name}")) name=(name) inputmode="numeric" value=[value(name)];
                        span class="hint" { (hint) }
                    }
                }
                button type="submit" { "Save these limits" }
                span class="hint" { "Saving costs nothing. An empty field removes its limit." }
            }
        }
    }
}

fn plan_words(plan: &MarketplacePlan) -> String {
    let requests = numbers::count(plan.requests_per_month);
    let rate = plan
        .requests_per_minute
        .map_or_else(String::new, |rate| format!(", {rate} a minute"));
    format!("{}: {requests} requests a month{rate}", plan.name)
}

/// The body of the API; text that is no number stays, for the validation to name.
fn bounds(fields: &FormFields) -> Result<LaneBounds, ValidationErrors> {
    let mut body = Map::new();
    if let Some(plan) = fields.text("plan") {
        body.insert("plan".to_owned(), plan.into());
    }
    for (name, ..) in NUMBERS {
        if let Some(text) = fields.text(name) {
            let number = text
                .parse::<u64>()
                .map_or_else(|_| text.into(), Value::from);
            body.insert(name.to_owned(), number);
        }
    }
    LaneBounds::from_body(&body)
}

async fn set(Path(api): Path<String>, form: SessionForm) -> Result<Response, PageFailure> {
    let SessionForm { session, fields } = form;
    let api = Api::parse(&api).ok_or_else(|| PageFailure::not_found("API"))?;
    let done = match bounds(&fields) {
        Ok(bounds) => {
            let context = session.submit_context().await?;
            let pace = &session.custody()?.pace;
            let set = set_lane_bounds(context, api, &bounds, pace).await;
            set.map_err(ApiError::from)
        }
        Err(errors) => Err(errors.into()),
    };
    match correctable(done)? {
        Ok(_) => Ok(Redirect::to(&format!("{}#limits-{api}", super::PATH)).into_response()),
        Err(error) => {
            let what = format!("The limits for {api} were not saved");
            refused(&session, &what, &error).await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(form: &str) -> Result<LaneBounds, String> {
        bounds(&FormFields::parse(form.as_bytes())).map_err(|errors| errors.to_string())
    }

    #[test]
    fn an_empty_field_is_no_limit_and_a_wrong_one_is_named() {
        assert_eq!(
            read("plan=&requests_per_minute=&max_in_flight=+&keep_in_reserve="),
            LaneBounds::from_body(&Map::new()).map_err(|errors| errors.to_string())
        );
        let set = read("plan=pro&keep_in_reserve=200").unwrap();
        assert_eq!(set.keep_in_reserve.map(|kept| kept.get()), Some(200));
        let error = read("requests_per_minute=fast").unwrap_err();
        assert!(
            error.contains("requests_per_minute") && error.contains("fast"),
            "{error}"
        );
    }
}
