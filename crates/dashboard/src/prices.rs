//! `/prices`: the stored prices of a route, hotel or place. Nothing here sends a search.
//!
//! Here: the choice of a route or hotel. Not here: its page (`show`), charts (`over_time`), files (`export`).

mod chosen;
mod export;
mod known;
mod over_time;
mod product;
mod show;
mod stats;
mod subject;
mod table;
mod trip;

use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::get;
use maud::{Markup, html};

pub(super) use self::known::{KnownPrices, known};
pub(super) use self::subject::PriceSubject;
use super::failure::PageFailure;
use super::form::FormFields;
use super::layout::{NavItem, page};
use super::parts;
use super::session::Session;
use farescan_core::app::AppState;
use farescan_core::app::error::ApiError;
use farescan_core::contract::{Api, Endpoint};
use farescan_core::history::places::{self, KnownPlace};

pub(super) const PATH: &str = "/prices";
const FLIGHTS_PATH: &str = "/prices/flights";
const HOTELS_PATH: &str = "/prices/hotels";

pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route(PATH, get(choose))
        .route(FLIGHTS_PATH, get(flights))
        .route(HOTELS_PATH, get(hotels))
        .merge(export::routes())
}

async fn choose(session: Session) -> Result<Response, PageFailure> {
    choose_page(&session, None).await
}

async fn flights(session: Session, query: FormFields) -> Result<Response, PageFailure> {
    show_or_choose(&session, &query, PriceSubject::route(&query)).await
}

async fn hotels(session: Session, query: FormFields) -> Result<Response, PageFailure> {
    show_or_choose(&session, &query, PriceSubject::place(&query)).await
}

async fn show_or_choose(
    session: &Session,
    query: &FormFields,
    subject: Option<PriceSubject>,
) -> Result<Response, PageFailure> {
    let Some(subject) = subject else {
        return Ok(Redirect::to(PATH).into_response());
    };
    match show::page(session, query, &subject).await {
        // A wrong airport code or date: the form says so.
        Err(PageFailure::Api(error)) if !error.details().is_empty() => {
            choose_page(session, Some(&error)).await
        }
        shown => shown,
    }
}

async fn choose_page(session: &Session, error: Option<&ApiError>) -> Result<Response, PageFailure> {
    let known = match session.tenant() {
        Some(tenant) => {
            places::places(&mut *session.history_pool()?.acquire().await?, tenant).await?
        }
        None => Vec::new(),
    };
    let (routes, stays): (Vec<_>, Vec<_>) = known
        .iter()
        .partition(|place| place.endpoint.api() == Api::Flights);
    let body = html! {
        (parts::head(&html! {}, "Trips", &html! { "The routes and hotels that you have searched. Looking here costs no request." }, &html! {}))
        @if let Some(error) = error { (parts::faults(error, "These prices cannot be shown:")) }
        @if known.is_empty() {
            div class="card" {
                (parts::empty_state(&html! {
                    p { "No prices yet. Every finished search of a scan is kept here, with the time it was found." }
                    a class="button primary" href="/scans/new" { "New scan" }
                }))
            }
        } @else {
            div class="grid2" {
                (list("Routes", "Flights", &by_route(&routes)))
                (list("Hotels and places", "Hotels", &by_place(&stays)))
            }
        }
        (forms(&known))
    };
    let status = error.map_or(StatusCode::OK, ApiError::status);
    Ok((status, page(session, "Trips", NavItem::Trips, body)).into_response())
}

/// A route or place with a link, and what was searched there.
struct Choice {
    subject: PriceSubject,
    what: Vec<&'static str>,
}

/// One choice for a route, whether one way or round trip.
fn by_route(known: &[&KnownPlace]) -> Vec<Choice> {
    let mut choices: Vec<Choice> = Vec::new();
    for place in known {
        let subject = PriceSubject::Route {
            from: place.from_airport.clone().unwrap_or_default(),
            to: place.place.clone(),
        };
        add_choice(&mut choices, subject, place);
    }
    choices.sort_by_key(|choice| choice.subject.title());
    choices
}

fn by_place(known: &[&KnownPlace]) -> Vec<Choice> {
    let mut choices = Vec::new();
    for place in known {
        let field = match place.endpoint {
            Endpoint::HotelsSearch => "destination",
            Endpoint::HotelsRooms => "hotel_booking_id",
            _ => "hotel_name",
        };
        let subject = PriceSubject::Place {
            field,
            text: place.place.clone(),
        };
        add_choice(&mut choices, subject, place);
    }
    choices
}

fn add_choice(choices: &mut Vec<Choice>, subject: PriceSubject, place: &KnownPlace) {
    let what = match place.endpoint {
        Endpoint::FlightsOneway => "one way",
        Endpoint::FlightsRoundtrip => "round trip",
        Endpoint::HotelsSearch => "hotels of a place",
        Endpoint::HotelsRooms => "rooms",
        Endpoint::HotelsByName | Endpoint::HotelsResolve => "hotel by name",
    };
    match choices.iter_mut().find(|choice| choice.subject == subject) {
        Some(choice) => choice.what.push(what),
        None => choices.push(Choice {
            subject,
            what: vec![what],
        }),
    }
}

fn list(title: &str, empty: &str, choices: &[Choice]) -> Markup {
    html! {
        section class="card" {
            h2 { (title) }
            @if choices.is_empty() {
                (parts::empty_state(&html! { p { (empty) ": none yet. Scan some dates first." } a class="button" href="/scans/new" { "New scan" } }))
            } @else {
                div class="scroll" tabindex="0" role="region" aria-label=(title) {
                    table class="rows" {
                        thead { tr { th scope="col" { "Searched" } th scope="col" { "As" } } }
                        tbody {
                            @for choice in choices {
                                tr {
                                    @let name = choice.subject.title();
                                    td { a class="clip" href=(choice.subject.path()) title=(name) { (name) } }
                                    td class="muted" { (choice.what.join(", ")) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Forms for a route or hotel that the lists do not show.
fn forms(known: &[KnownPlace]) -> Markup {
    let mut airports: Vec<_> = known
        .iter()
        .filter(|place| place.endpoint.api() == Api::Flights)
        .flat_map(|place| {
            [
                place.from_airport.as_deref().unwrap_or_default(),
                &place.place,
            ]
        })
        .collect();
    airports.sort_unstable();
    airports.dedup();
    html! {
        section class="card" {
            h2 { "Another route or hotel" }
            div class="stack" {
                form class="filters" method="get" action=(FLIGHTS_PATH) {
                    div class="field" { label for="from" { "From" } input id="from" name="from_airport" list="airports" placeholder="TLV" required maxlength="3" size="6"; }
                    div class="field" { label for="to" { "To" } input id="to" name="to_airport" list="airports" placeholder="LHR" required maxlength="3" size="6"; }
                    button type="submit" { "Show fares" }
                }
                form class="filters" method="get" action=(HOTELS_PATH) {
                    div class="field" { label for="hotel" { "Hotel, as in your scans" } input id="hotel" name="hotel_name" placeholder="Hotel Arts" required size="24"; }
                    button type="submit" { "Show rates" }
                }
                datalist id="airports" { @for airport in airports { option value=(airport) {} } }
            }
        }
    }
}
