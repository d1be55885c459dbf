//! Items as pages, CSV and NDJSON: the same rows in every format.

use serde_json::{Value, json};

use crate::support::app::{HttpResponse, KEY};
use crate::support::{SearchOutcome, TestService, array, fares};

const CSV: &str = "text/csv";
const NDJSON: &str = "application/x-ndjson";

/// The columns: first the search and its result, last the optional fields.
const HEADER: &str = "position,search.from_airport,search.to_airport,search.departure_date,best_price,currency,search_status,reason,state,\
                      results,observed_at,id,scan_id,attempts,requests_spent,latency_ms,error";
const OPTIONAL: &str = "search.max_stops,search.airline_codes,search.exclude_airline_codes,search.departure_time_min,\
                        search.departure_time_max,search.departure_arrival_time_min,search.departure_arrival_time_max,search.sort_type,\
                        search.currency,search.max_price,search.seat_type,search.passengers,search.limit,search.use_fallback,\
                        search.strict,search.use_ext_proxy";

async fn as_form(service: &TestService, key: &str, form: &str, path: &str) -> HttpResponse {
    service
        .send(
            service
                .request("GET", path)
                .header("x-api-key", key)
                .header("accept", form),
        )
        .await
}

async fn text(service: &TestService, form: &str, path: &str) -> String {
    let answer = as_form(service, KEY, form, path).await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    answer.text()
}

/// Every row of a list, page by page.
async fn paged(service: &TestService, path: &str) -> Vec<Value> {
    let (mut next, mut rows) = (path.to_owned(), Vec::new());
    loop {
        let page = service.get(&next).await;
        rows.extend(array(&page["data"]).iter().cloned());
        let Some(cursor) = page["next_cursor"].as_str() else {
            return rows;
        };
        next = format!("{path}&cursor={cursor}");
    }
}

/// The expected text of a cell.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Items of which one is pending and one in flight.
async fn running() -> (TestService, String) {
    let service = TestService::start().await;
    let id = service.submit(&fares(7)).await;
    let outcomes = [
        SearchOutcome::Ok(300),
        SearchOutcome::Empty,
        SearchOutcome::Ok(100),
        SearchOutcome::Degraded("blocked_page"),
        SearchOutcome::Failed,
        SearchOutcome::InFlight,
    ];
    for (claimed, outcome) in service.claim().await.iter().zip(outcomes) {
        service.begin(claimed).await;
        service.finish(claimed, outcome).await;
    }
    (service, id)
}

#[tokio::test]
async fn a_file_has_the_rows_of_all_pages_in_order() {
    let (service, id) = running().await;
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
        let rows = paged(&service, &format!("{path}?limit=2&{filter}")).await;
        assert_eq!(rows.len(), count, "{filter}");
        let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
        assert_eq!(
            text(&service, NDJSON, &format!("{path}?{filter}")).await,
            lines,
            "{filter}"
        );

        let csv = text(&service, CSV, &format!("{path}?{filter}")).await;
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
async fn a_file_has_its_type_and_name() {
    let (service, id) = running().await;
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
        let answer = as_form(&service, KEY, accept, &path).await;
        let found = [
            "content-type",
            "content-disposition",
            "vary",
            "cache-control",
        ]
        .map(|name| answer.header(name));
        assert_eq!(
            found,
            [content_type, disposition.as_str(), "accept", "no-store"],
            "{accept}"
        );
        assert!(!answer.header("x-request-id").is_empty());
    }
}

#[tokio::test]
async fn the_columns_of_an_endpoint_are_always_the_same() {
    let service = TestService::start().await;
    let empty = service.submit(&fares(1)).await;
    let path = format!("/v1/scans/{empty}/items");
    assert_eq!(
        text(&service, CSV, &format!("{path}?state=failed")).await,
        format!("{HEADER},{OPTIONAL}\r\n"),
        "without a row too"
    );
    assert!(
        text(&service, CSV, &path)
            .await
            .starts_with(&format!("{HEADER},{OPTIONAL}\r\n0,"))
    );
    assert_eq!(
        text(&service, CSV, &format!("{path}?state=failed&expand=answer")).await,
        format!("{HEADER},answer,{OPTIONAL}\r\n")
    );
    assert_eq!(
        text(&service, NDJSON, &format!("{path}?state=failed")).await,
        ""
    );
}

#[tokio::test]
async fn csv_cells_are_never_formulas() {
    let (service, id) = running().await;
    let evil = "=HYPERLINK(\"http://evil.example\",\"x\")";
    let set = "update scan_items set error = $1, body = body || jsonb_build_object('currency', '@x') where position = 0";
    execute!(service.pool(), set, evil);
    let csv = text(&service, CSV, &format!("/v1/scans/{id}/items")).await;
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
    let (service, id) = running().await;
    for form in ["application/json", CSV, NDJSON] {
        for (key, id) in [
            ("another-key-0123456789", id.as_str()),
            (KEY, "scn_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b"),
            (KEY, "none"),
        ] {
            let answer = as_form(&service, key, form, &format!("/v1/scans/{id}/items")).await;
            assert_eq!(
                (answer.kind().as_str(), answer.header("content-disposition")),
                ("404 not_found", ""),
                "{form} {key} {id}"
            );
        }
    }
}

#[tokio::test]
async fn an_unsupported_format_is_named() {
    let (service, id) = running().await;
    let path = format!("/v1/scans/{id}/items");
    for accept in ["text/html", "application/json;q=0", "image/*, text/plain"] {
        let answer = as_form(&service, KEY, accept, &path).await;
        assert_eq!(
            (answer.kind().as_str(), answer.header("vary")),
            ("406 invalid_request", "accept"),
            "{accept}"
        );
        let held =
            format!("`Accept`: found {accept}; expected application/json (pages), or text/csv, ");
        assert!(answer.message().starts_with(&held), "{}", answer.message());
    }
    for form in [CSV, NDJSON] {
        for (query, expected) in [
            ("limit=5", "`limit`: found"),
            ("cursor=6974", "`cursor`: found"),
            ("sort=price&limit=5", "`limit`: found"),
            ("colour=red", "unknown field `colour`"),
        ] {
            let answer = as_form(&service, KEY, form, &format!("{path}?{query}")).await;
            assert_eq!(answer.kind(), "400 invalid_request", "{form} {query}");
            assert!(
                answer.message().starts_with(expected),
                "{query}: {}",
                answer.message()
            );
        }
        assert_eq!(
            as_form(&service, KEY, form, &format!("{path}?limit="))
                .await
                .status,
            200,
            "an empty value is none"
        );
    }
}

#[tokio::test]
async fn openapi_names_the_export_formats() {
    let service = TestService::start().await;
    let description = service.get("/openapi.json").await;
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
async fn the_format_parameter_overrides_accept() {
    let (service, id) = running().await;
    let path = format!("/v1/scans/{id}/items");
    for (format, accept) in [
        ("csv", CSV),
        ("ndjson", NDJSON),
        ("parquet", "application/vnd.apache.parquet"),
    ] {
        for sent in ["text/html,*/*;q=0.8", "application/json", "image/png"] {
            let answer = as_form(&service, KEY, sent, &format!("{path}?format={format}")).await;
            let same = as_form(&service, KEY, accept, &path).await;
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
            &service,
            KEY,
            "*/*",
            &format!("{path}?format={format}&limit=5"),
        )
        .await;
        assert_eq!(
            paged.message(),
            format!(
                "`limit`: found \"5\"; expected no value, since {accept} has all rows; only application/json has pages"
            )
        );
    }
    let json = as_form(&service, KEY, CSV, &format!("{path}?format=json&limit=1")).await;
    assert_eq!(
        (json.status, json.header("content-type")),
        (200, "application/json")
    );
    assert!(
        json.header("link").contains("format=json"),
        "{}",
        json.header("link")
    );
    let wrong = as_form(&service, KEY, CSV, &format!("{path}?format=xlsx")).await;
    assert_eq!(
        wrong.message(),
        "`format`: found \"xlsx\"; expected one of `json`, `csv`, `ndjson`, `parquet`"
    );
    for path in [
        "/v1/history/flights",
        "/v1/history/flights/latest",
        "/v1/history/flights/series",
    ] {
        let path = format!(
            "{path}?from_airport=TLV&to_airport=LHR&departure_from=2027-01-01&departure_to=2027-01-31&format=csv"
        );
        let answer = as_form(&service, KEY, "*/*", &path).await;
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
    let (service, id) = running().await;
    let history = "/v1/history/flights/grid?from_airport=TLV&to_airport=LHR&departure_from=2027-01-01&departure_to=2027-01-31&rows=departure_date";
    for path in [
        format!("/v1/scans/{id}/grid?rows=departure_date"),
        format!("/v1/scans/{id}/compare/{id}"),
        history.to_owned(),
    ] {
        for accept in ["application/json", "*/*", "text/csv, */*;q=0.1"] {
            assert_eq!(
                as_form(&service, KEY, accept, &path).await.status,
                200,
                "{path} {accept}"
            );
        }
        let refused = as_form(&service, KEY, CSV, &path).await;
        assert_eq!(refused.kind(), "406 invalid_request", "{path}");
        assert_eq!(
            refused.message(),
            "`Accept`: found text/csv; expected application/json"
        );
    }
}
