//! Makes the dictionaries that answers are compressed with (docs/decisions/0051), from answers of
//! the sandbox: `script/bench dictionaries <version>`.
//!
//! The same program makes the same files. A file that exists stays as it is, because stored answers
//! name it: a new dictionary has a new version, and an entry in `crates/core/src/search/compression.rs`.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use farescan::contract::{Api, Endpoint};
use farescan::sandbox::{self, SandboxOptions};
use jiff::ToSpan as _;
use jiff::civil::{Date, date};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::Res;
use super::load::post;

/// Twice as much makes answers of `flights/oneway` and of `hotels/search` no smaller.
const BYTES_OF_FLIGHTS: usize = 32_768;
const BYTES_OF_HOTELS: usize = 16_384;
/// Another one than that of [`super::bytes`].
const SEED: u64 = 77;
const KEY: &str = "sandbox-unlimited.dictionaries";
/// Current dates of different years, so that no year is worth a place.
const TODAYS: [Date; 3] = [date(2026, 12, 1), date(2027, 7, 10), date(2029, 3, 20)];
/// Samples of each endpoint on each of these dates.
const SAMPLES: usize = 400;
/// None of them is in [`super::bytes`].
const ROUTES: [(&str, &str); 16] = [
    ("TLV", "CDG"),
    ("FRA", "JFK"),
    ("LHR", "BCN"),
    ("MAD", "FCO"),
    ("AMS", "DXB"),
    ("SIN", "BKK"),
    ("LAX", "SFO"),
    ("GRU", "LIM"),
    ("IST", "ATH"),
    ("VIE", "BER"),
    ("DUB", "WAW"),
    ("SYD", "HND"),
    ("ORD", "MIA"),
    ("CPH", "ARN"),
    ("LHR", "BUD"),
    ("DEL", "BOM"),
];
const PLACES: [&str; 12] = [
    "Paris", "Rome", "Berlin", "Tokyo", "Bangkok", "Dubai", "Athens", "Boston", "Lima", "Cairo",
    "Sydney", "Madrid",
];
const CURRENCIES: [&str; 4] = ["USD", "EUR", "GBP", "ILS"];

pub async fn run(version: u32) -> Res<()> {
    let mut sandboxes = Vec::new();
    for today in TODAYS {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        sandboxes.push((today, listener.local_addr()?));
        let options = SandboxOptions {
            seed: SEED,
            latency_factor: 0.0,
            today: Some(today),
            ..SandboxOptions::default()
        };
        tokio::spawn(sandbox::serve(listener, options, std::future::pending()));
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/core/src/search/dictionaries");
    for (place, endpoint) in Endpoint::SEARCHES.iter().enumerate() {
        let name = format!(
            "{}-{version}.zstd-dict",
            endpoint.as_str().replace('/', "-")
        );
        if folder.join(&name).exists() {
            println!("{name}: exists");
            continue;
        }
        let mut samples = Vec::new();
        for &(today, sandbox) in &sandboxes {
            for number in 0..SAMPLES {
                samples.push(answer(sandbox, *endpoint, today, number).await?);
            }
        }
        let id = 40_000 + 100 * (u32::try_from(place)? + 1) + version;
        let bytes = match endpoint.api() {
            Api::Flights => BYTES_OF_FLIGHTS,
            Api::Hotels => BYTES_OF_HOTELS,
        };
        let mut dictionary = zstd::dict::from_samples(&samples, bytes)?;
        // Behind the magic number stands the id, in place of which the training draws one.
        dictionary[4..8].copy_from_slice(&id.to_le_bytes());
        let mean = samples.iter().map(Vec::len).sum::<usize>() / samples.len();
        println!(
            "{name}: id {id}, {} bytes, of {} answers of {mean} bytes",
            dictionary.len(),
            samples.len()
        );
        fs::write(folder.join(&name), dictionary)?;
    }
    Ok(())
}

async fn answer(
    sandbox: SocketAddr,
    endpoint: Endpoint,
    today: Date,
    number: usize,
) -> Res<Vec<u8>> {
    let (from, to) = ROUTES[number % ROUTES.len()];
    let place = PLACES[number % PLACES.len()];
    let currency = CURRENCIES[number / ROUTES.len() % CURRENCIES.len()];
    // Days and lengths of stays that do not go with the routes.
    let first = today.checked_add(i64::try_from(4 + number * 37 % 300)?.days())?;
    let last = first.checked_add(i64::try_from(1 + number * 5 % 13)?.days())?;
    let flight = json!({"from_airport": from, "to_airport": to, "departure_date": first.to_string(), "currency": currency,
                        "limit": 50, "strict": true});
    let stay = json!({"checkin_date": first.to_string(), "checkout_date": last.to_string(), "currency": currency, "adults": 1 + number % 3});
    let (path, body) = match endpoint {
        Endpoint::FlightsOneway => ("/api/google_flights/oneway/v1", flight),
        Endpoint::FlightsRoundtrip => (
            "/api/google_flights/roundtrip/v1",
            with(flight, "return_date", json!(last.to_string())),
        ),
        _ => {
            let search = with(stay.clone(), "destination", json!(place));
            if endpoint == Endpoint::HotelsSearch {
                ("/search", search)
            } else {
                let found: Value =
                    serde_json::from_slice(&call(sandbox, "/search", &search).await?)?;
                let hotels = found["properties"].as_array().ok_or("no properties")?;
                let name = &hotels[number % hotels.len()]["name"];
                if endpoint == Endpoint::HotelsByName {
                    ("/hotel_by_name", with(stay, "hotel_name", name.clone()))
                } else {
                    let known: Value = serde_json::from_slice(
                        &call(sandbox, "/resolve", &json!({"hotel_name": name})).await?,
                    )?;
                    (
                        "/hotel",
                        with(stay, "hotel_booking_id", known["hotel_booking_id"].clone()),
                    )
                }
            }
        }
    };
    call(sandbox, path, &body).await
}

fn with(mut body: Value, field: &str, value: Value) -> Value {
    body[field] = value;
    body
}

async fn call(sandbox: SocketAddr, path: &str, body: &Value) -> Res<Vec<u8>> {
    let (status, answer) = post(sandbox, path, &[("x-rapidapi-key", KEY)], body).await?;
    if status != 200 {
        return Err(format!(
            "{path} {body}: {status} {}",
            String::from_utf8_lossy(&answer)
        )
        .into());
    }
    Ok(answer.to_vec())
}
