//! Items as pages, CSV and NDJSON: the same rows, whichever form is asked for.

use serde_json::{Value, json};

use crate::scans::office::{Comes, Office, fares};
use crate::support::app::{Answer, KEY};

const CSV: &str = "text/csv";
const NDJSON: &str = "application/x-ndjson";

/// What was searched and found stands first, the fields that a search may leave out last.
const HEADER: &str = "position,search.from_airport,search.to_airport,search.departure_date,best_price,currency,search_status,reason,state,\
                      results,observed_at,id,scan_id,attempts,requests_spent,latency_ms,error";
const OPTIONAL: &str = "search.max_stops,search.airline_codes,search.exclude_airline_codes,search.departure_time_min,\
                        search.departure_time_max,search.departure_arrival_time_min,search.departure_arrival_time_max,search.sort_type,\
                        search.currency,search.max_price,search.seat_type,search.passengers,search.limit,search.use_fallback,\
                        search.strict,search.use_ext_proxy";

async fn as_form(office: &Office, key: &str, form: &str, path: &str) -> Answer {
    office
        .app
        .send(
            office
                .app
                .request("GET", path)
                .header("x-api-key", key)
                .header("accept", form),
        )
        .await
}

async fn text(office: &Office, form: &str, path: &str) -> String {
    let answer = as_form(office, KEY, form, path).await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    answer.text()
}

/// Every row of a list, page by page.
async fn paged(office: &Office, path: &str) -> Vec<Value> {
    let (mut next, mut rows) = (path.to_owned(), Vec::new());
    loop {
        let page = office.get(&next).await;
        rows.extend(page["data"].as_array().unwrap().iter().cloned());
        let Some(cursor) = page["next_cursor"].as_str() else {
            return rows;
        };
        next = format!("{path}&cursor={cursor}");
    }
}

/// What a cell should hold.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Six searches, one of them still pending and one under way.
async fn running() -> (Office, String) {
    let office = Office::open().await;
    let id = office.order(&fares(7)).await;
    let comes = [
        Comes::Ok(300),
        Comes::Empty,
        Comes::Ok(100),
        Comes::Degraded("blocked_page"),
        Comes::Refused,
        Comes::NotYet,
    ];
    for (claimed, comes) in office.claim().await.iter().zip(comes) {
        office.begin(claimed).await;
        office.end(claimed, comes).await;
    }
    (office, id)
}

#[tokio::test]
async fn a_file_has_the_rows_of_all_pages_in_their_order() {
    let (office, id) = running().await;
    let path = format!("/v1/scans/{id}/items");
    for (filter, count) in [
        ("", 7),
        ("sort=price", 7),
        ("expand=answer", 7),
        ("state=done", 4),
        ("state=pending", 1),
        ("search_status=ok&sort=price", 2),
        ("reason=blocked_page&expand=answer", 1),
        ("state=cancelled", 0),
    ] {
        let rows = paged(&office, &format!("{path}?limit=2&{filter}")).await;
        assert_eq!(rows.len(), count, "{filter}");
        let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
        assert_eq!(
            text(&office, NDJSON, &format!("{path}?{filter}")).await,
            lines,
            "{filter}"
        );

        let csv = text(&office, CSV, &format!("{path}?{filter}")).await;
        let mut reader = csv::Reader::from_reader(csv.as_bytes());
        let names: Vec<_> = reader
            .headers()
            .unwrap()
            .iter()
            .map(str::to_owned)
            .collect();
        let cells: Vec<Vec<_>> = reader
            .records()
            .map(|row| row.unwrap().iter().map(str::to_owned).collect())
            .collect();
        let expected: Vec<Vec<_>> = rows
            .iter()
            .map(|row| {
                names
                    .iter()
                    .map(|name| {
                        cell(
                            row.pointer(&format!("/{}", name.replace('.', "/")))
                                .unwrap_or(&Value::Null),
                        )
                    })
                    .collect()
            })
            .collect();
        assert_eq!(cells, expected, "{filter}");
    }
}

#[tokio::test]
async fn a_file_says_what_it_is() {
    let (office, id) = running().await;
    let path = format!("/v1/scans/{id}/items");
    for (accept, content_type, disposition) in [
        (
            CSV,
            "text/csv; charset=utf-8; header=present",
            format!("attachment; filename=\"{id}.csv\""),
        ),
        (
            NDJSON,
            "application/x-ndjson",
            format!("attachment; filename=\"{id}.ndjson\""),
        ),
        ("application/json", "application/json", String::new()),
        ("text/html, */*;q=0.8", "application/json", String::new()),
    ] {
        let answer = as_form(&office, KEY, accept, &path).await;
        let told = [
            "content-type",
            "content-disposition",
            "vary",
            "cache-control",
        ]
        .map(|name| answer.header(name));
        assert_eq!(
            told,
            [content_type, disposition.as_str(), "accept", "no-store"],
            "{accept}"
        );
        assert!(!answer.header("x-request-id").is_empty());
    }
}

#[tokio::test]
async fn the_columns_of_an_endpoint_are_always_the_same() {
    let office = Office::open().await;
    let empty = office.order(&fares(1)).await;
    let path = format!("/v1/scans/{empty}/items");
    assert_eq!(
        text(&office, CSV, &format!("{path}?state=failed")).await,
        format!("{HEADER},{OPTIONAL}\r\n"),
        "without a row too"
    );
    assert!(
        text(&office, CSV, &path)
            .await
            .starts_with(&format!("{HEADER},{OPTIONAL}\r\n0,"))
    );
    assert_eq!(
        text(&office, CSV, &format!("{path}?state=failed&expand=answer")).await,
        format!("{HEADER},answer,{OPTIONAL}\r\n")
    );
    assert_eq!(
        text(&office, NDJSON, &format!("{path}?state=failed")).await,
        ""
    );
}

#[tokio::test]
async fn what_others_write_is_no_formula() {
    let (office, id) = running().await;
    let evil = "=HYPERLINK(\"http://evil.example\",\"x\")";
    let set = "update scan_items set error = $1, body = body || jsonb_build_object('currency', '@x') where position = 0";
    sqlx::query(set)
        .bind(evil)
        .execute(office.db.pool())
        .await
        .unwrap();
    let csv = text(&office, CSV, &format!("/v1/scans/{id}/items")).await;
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let names = reader.headers().unwrap().clone();
    let row = reader.records().next().unwrap().unwrap();
    let of = |name: &str| &row[names.iter().position(|column| column == name).unwrap()];
    assert_eq!(
        (of("error"), of("search.currency"), of("best_price")),
        (format!("'{evil}").as_str(), "'@x", "300")
    );
}

#[tokio::test]
async fn another_callers_scan_is_unknown_in_every_form() {
    let (office, id) = running().await;
    for form in ["application/json", CSV, NDJSON] {
        for (key, id) in [
            ("another-key-0123456789", id.as_str()),
            (KEY, "scn_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b"),
            (KEY, "none"),
        ] {
            let answer = as_form(&office, key, form, &format!("/v1/scans/{id}/items")).await;
            assert_eq!(
                (answer.kind().as_str(), answer.header("content-disposition")),
                ("404 not_found", ""),
                "{form} {key} {id}"
            );
        }
    }
}

#[tokio::test]
async fn what_cannot_be_given_is_named() {
    let (office, id) = running().await;
    let path = format!("/v1/scans/{id}/items");
    for accept in ["text/html", "application/json;q=0", "image/*, text/plain"] {
        let answer = as_form(&office, KEY, accept, &path).await;
        assert_eq!(
            (answer.kind().as_str(), answer.header("vary")),
            ("406 invalid_request", "accept"),
            "{accept}"
        );
        let held =
            format!("`Accept` holds {accept}; allowed: application/json (pages), or text/csv, ");
        assert!(answer.message().starts_with(&held), "{}", answer.message());
    }
    for form in [CSV, NDJSON] {
        for (query, field) in [
            ("limit=5", "limit"),
            ("cursor=6974", "cursor"),
            ("sort=price&limit=5", "limit"),
            ("colour=red", "colour"),
        ] {
            let answer = as_form(&office, KEY, form, &format!("{path}?{query}")).await;
            assert_eq!(answer.kind(), "400 invalid_request", "{form} {query}");
            assert!(
                answer.message().starts_with(&format!("`{field}` holds")),
                "{query}: {}",
                answer.message()
            );
        }
        assert_eq!(
            as_form(&office, KEY, form, &format!("{path}?limit="))
                .await
                .status,
            200,
            "an empty value is none"
        );
    }
}

#[tokio::test]
async fn the_description_names_the_forms() {
    let office = Office::open().await;
    let description = office.get("/openapi.json").await;
    for (path, row) in [
        ("/v1/scans/{id}/items", "Item"),
        ("/v1/history/flights", "FlightObservation"),
        ("/v1/history/hotels", "HotelObservation"),
        ("/v1/history/flights/latest", "FlightLatest"),
        ("/v1/history/hotels/latest", "HotelLatest"),
    ] {
        let answers = &description["paths"][path]["get"]["responses"];
        let content = answers["200"]["content"].as_object().unwrap();
        assert_eq!(
            content.keys().collect::<Vec<_>>(),
            [
                "application/json",
                CSV,
                NDJSON,
                "application/vnd.apache.parquet"
            ],
            "{path}"
        );
        assert_eq!(
            content[NDJSON]["schema"],
            json!({"$ref": format!("#/components/schemas/{row}")}),
            "{path}"
        );
        assert!(answers["406"].is_object(), "{path}");
    }
}

#[tokio::test]
async fn format_goes_before_accept() {
    let (office, id) = running().await;
    let path = format!("/v1/scans/{id}/items");
    for (format, accept) in [
        ("csv", CSV),
        ("ndjson", NDJSON),
        ("parquet", "application/vnd.apache.parquet"),
    ] {
        for sent in ["text/html,*/*;q=0.8", "application/json", "image/png"] {
            let answer = as_form(&office, KEY, sent, &format!("{path}?format={format}")).await;
            let same = as_form(&office, KEY, accept, &path).await;
            assert_eq!(
                (answer.status, answer.header("content-type")),
                (200, same.header("content-type")),
                "{format} {sent}"
            );
            assert_eq!(
                answer.header("content-disposition"),
                format!("attachment; filename=\"{id}.{format}\"")
            );
        }
        let paged = as_form(
            &office,
            KEY,
            "*/*",
            &format!("{path}?format={format}&limit=5"),
        )
        .await;
        assert_eq!(
            paged.message(),
            format!(
                "`limit` holds \"5\"; allowed: nothing, since {accept} has all rows; pages are application/json"
            )
        );
    }
    let json = as_form(&office, KEY, CSV, &format!("{path}?format=json&limit=1")).await;
    assert_eq!(
        (json.status, json.header("content-type")),
        (200, "application/json")
    );
    assert!(
        json.header("link").contains("format=json"),
        "{}",
        json.header("link")
    );
    let wrong = as_form(&office, KEY, CSV, &format!("{path}?format=xlsx")).await;
    assert_eq!(
        wrong.message(),
        "`format` holds \"xlsx\"; allowed: one of `json`, `csv`, `ndjson`, `parquet`"
    );
    for path in [
        "/v1/history/flights",
        "/v1/history/flights/latest",
        "/v1/history/flights/series",
    ] {
        let path = format!(
            "{path}?from_airport=TLV&to_airport=LHR&departure_from=2027-01-01&departure_to=2027-01-31&format=csv"
        );
        let answer = as_form(&office, KEY, "*/*", &path).await;
        assert_eq!(
            answer.header("content-type"),
            "text/csv; charset=utf-8; header=present",
            "{path}: {}",
            answer.text()
        );
    }
}

#[tokio::test]
async fn a_grid_is_json_or_406() {
    let (office, id) = running().await;
    let history = "/v1/history/flights/grid?from_airport=TLV&to_airport=LHR&departure_from=2027-01-01&departure_to=2027-01-31&rows=departure_date";
    for path in [
        format!("/v1/scans/{id}/grid?rows=departure_date"),
        format!("/v1/scans/{id}/compare/{id}"),
        history.to_owned(),
    ] {
        for accept in ["application/json", "*/*", "text/csv, */*;q=0.1"] {
            assert_eq!(
                as_form(&office, KEY, accept, &path).await.status,
                200,
                "{path} {accept}"
            );
        }
        let refused = as_form(&office, KEY, CSV, &path).await;
        assert_eq!(refused.kind(), "406 invalid_request", "{path}");
        assert_eq!(
            refused.message(),
            "`Accept` holds text/csv; allowed: application/json"
        );
    }
}
