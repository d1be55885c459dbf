//! The history as Parquet, read back by the crate's own reader. (By others: docs/scaling.md.)

use bytes::Bytes;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::Field;
use parquet::record::reader::RowIter;
use serde_json::{Map, Value, json};

use crate::history::fixture::HistoryFixture;
use crate::support::app::KEY;

const PARQUET: &str = "application/vnd.apache.parquet";
const FARES: &str = "/v1/history/flights?from_airport=TLV&to_airport=LHR";

/// A value as JSON.
fn json_value(field: &Field) -> Value {
    let date = |days: i32| {
        jiff::civil::date(1970, 1, 1)
            .saturating_add(jiff::Span::new().days(days))
            .to_string()
    };
    match field {
        Field::Null => Value::Null,
        Field::Bool(truth) => (*truth).into(),
        Field::Long(number) => (*number).into(),
        Field::Double(number) => (*number).into(),
        Field::Str(text) => text.as_str().into(),
        Field::Date(days) => date(*days).into(),
        Field::TimestampMicros(time) => jiff::Timestamp::from_microsecond(*time)
            .unwrap()
            .to_string()
            .into(),
        Field::Bytes(bytes) => String::from_utf8(bytes.data().to_vec()).unwrap().into(),
        other => panic!("no column has such a value: {other:?}"),
    }
}

fn rows(file: Bytes) -> Vec<Value> {
    let reader = SerializedFileReader::new(file).unwrap();
    let rows = RowIter::from_file_into(Box::new(reader)).map(Result::unwrap);
    rows.map(|row| {
        row.get_column_iter()
            .map(|(name, field)| (name.clone(), json_value(field)))
            .collect::<Map<_, _>>()
            .into()
    })
    .collect()
}

/// A row of NDJSON as its columns: objects are JSON text, and all numbers are floats.
fn flat_row(row: &Value) -> Value {
    let column = |value: &Value| match value {
        Value::Object(_) | Value::Array(_) => value.to_string().into(),
        Value::Number(number) => json!(number.as_f64()),
        other => other.clone(),
    };
    row.as_object()
        .unwrap()
        .iter()
        .map(|(name, value)| (name.clone(), column(value)))
        .collect::<Map<_, _>>()
        .into()
}

async fn file(
    fixture: &HistoryFixture,
    key: &str,
    path: &str,
    form: &str,
) -> crate::support::app::HttpResponse {
    fixture
        .send(
            fixture
                .request("GET", path)
                .header("x-api-key", key)
                .header("accept", form),
        )
        .await
}

/// Every list, with every kind of value and gap in it.
#[tokio::test]
async fn a_parquet_file_has_the_rows_and_types_of_its_list() {
    let fixture = HistoryFixture::open().await;
    let day = |number: i64| {
        jiff::civil::date(2030, 1, 1)
            .saturating_add(jiff::Span::new().days(number))
            .to_string()
    };
    let fares = (0..700).map(|number| {
        fixture.fare(
            &day(number / 4),
            -number,
            (number % 7 != 0).then_some(number + 1),
        )
    });
    let rates = (0..50).map(|number| {
        let mut body = json!({"hotel_name": "=Żółw \"Grand\"", "checkin_date": day(number), "checkout_date": day(number + 2)});
        if number % 2 == 0 {
            body["proxy_country"] = "de".into();
        }
        fixture.observation("hotels/by-name", body, -number, Some(number + 1))
    });
    let seen: Vec<_> = fares.chain(rates).collect();
    fixture.insert(&seen).await;
    let hotel = "hotel_name=%3D%C5%BB%C3%B3%C5%82w+%22Grand%22";
    for (path, name, count) in [
        (FARES.to_owned(), "flights", 700),
        (format!("{FARES}&currency=EUR"), "flights", 0),
        (format!("/v1/history/hotels?{hotel}"), "hotels", 50),
        (
            "/v1/history/flights/latest?from_airport=TLV&to_airport=LHR&departure_from=2030-01-01&departure_to=2030-12-31"
                .to_owned(),
            "flights-latest",
            175,
        ),
        ("/v1/history/flights/series?from_airport=TLV&to_airport=LHR".to_owned(), "flights-series", 0),
        (format!("/v1/history/hotels/series?{hotel}&bucket=week"), "hotels-series", 0),
    ] {
        let answer = file(&fixture, KEY, &path, PARQUET).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, PARQUET), "{path}");
        assert_eq!(answer.header("content-disposition"), format!("attachment; filename=\"{name}.parquet\""));
        let without_age = |row: Value| {
            let mut row = row;
            row.as_object_mut().unwrap().shift_remove("age_seconds");
            row
        };
        let rows_read: Vec<_> = rows(answer.bytes.into()).into_iter().map(|row| without_age(flat_row(&row))).collect();
        let lines = file(&fixture, KEY, &path, "application/x-ndjson").await.text();
        let lines: Vec<_> = lines.lines().map(|line| without_age(flat_row(&serde_json::from_str(line).unwrap()))).collect();
        assert_eq!(rows_read, lines, "{path}");
        assert!(count == 0 || rows_read.len() == count, "{path}: {} rows", rows_read.len());
    }
    let reader =
        SerializedFileReader::new(Bytes::from(file(&fixture, KEY, FARES, PARQUET).await.bytes))
            .unwrap();
    let columns = reader
        .metadata()
        .file_metadata()
        .schema_descr()
        .columns()
        .iter();
    let types: Vec<_> = columns
        .map(|column| {
            format!(
                "{} {} {:?}",
                column.name(),
                column.physical_type(),
                column.logical_type_ref()
            )
        })
        .collect();
    insta::assert_snapshot!(types.join("\n"));
}

/// More than one row group, and a file without rows.
#[tokio::test]
async fn row_groups_are_bounded_and_an_empty_file_is_valid() {
    let fixture = HistoryFixture::open().await;
    fixture
        .insert(&[fixture.fare("2030-01-01", 0, Some(1))])
        .await;
    crate::history::seed::routes(fixture.pool(), fixture.tenant, 1, 125, 200).await;
    let path = "/v1/history/flights?from_airport=RAA&to_airport=LHR";
    let answer = file(&fixture, KEY, path, PARQUET).await;
    let reader = SerializedFileReader::new(Bytes::from(answer.bytes)).unwrap();
    let groups: Vec<_> = reader
        .metadata()
        .row_groups()
        .iter()
        .map(|group| group.num_rows())
        .collect();
    assert_eq!(groups, [10_000, 10_000, 5_000]);
    let nothing = file(&fixture, "another-key-0123456789", path, PARQUET).await;
    let reader = SerializedFileReader::new(Bytes::from(nothing.bytes)).unwrap();
    let metadata = reader.metadata().file_metadata();
    assert_eq!(
        (metadata.num_rows(), metadata.schema_descr().num_columns()),
        (0, 17)
    );
    let paged = file(&fixture, KEY, &format!("{path}&limit=5"), PARQUET).await;
    assert_eq!(paged.kind(), "400 invalid_request");
    assert!(
        paged.message().starts_with("`limit`"),
        "{}",
        paged.message()
    );
}
