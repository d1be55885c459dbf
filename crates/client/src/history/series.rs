//! Prices over time: a sparkline, and a row for each day or week.

use std::io::Write as _;

use farescan_sheets::cell::CellValue;
use farescan_sheets::numbers::{amount, counted};
use farescan_sheets::prices::product;
use jiff::civil::Date;
use rust_decimal::Decimal;

use super::SeriesArgs;
use crate::Failure;
use crate::dates::Dates;
use crate::format::price_or;
use crate::pages::{Query, print_nothing};
use crate::render::{CellTone, Column, ListTable, Text, exact_text, sparkline};
use farescan_contract::history_verdict::HistoryVerdict;
use farescan_contract::series::{FlightBucket, FlightSeries, HotelBucket, HotelSeries};

/// One row, of a flight or a hotel.
struct SeriesRow {
    /// What distinguishes the products.
    product: String,
    bucket: Date,
    minimum: Option<Decimal>,
    median: Option<Decimal>,
    maximum: Option<Decimal>,
    /// How many implausible prices are left out, and the lowest of them.
    implausible: (u64, Option<Decimal>),
    band: Option<(Decimal, Decimal)>,
    searches: u64,
    degraded: u64,
    /// On the lowest price, if it was asked for.
    verdict: Option<HistoryVerdict>,
}

/// `history series`.
pub(super) async fn run(args: SeriesArgs) -> Result<(), Failure> {
    let session = args.client.open()?;
    let dates = args.depart.as_ref().or(args.checkin.as_ref());
    let what = if args.hotel.is_some() {
        "checkin"
    } else {
        "departure"
    };
    let one = dates.and_then(Dates::single);
    let range = dates.filter(|_| one.is_none()).and_then(Dates::bounds);
    let path = if args.hotel.is_some() {
        "/v1/history/hotels/series"
    } else {
        "/v1/history/flights/series"
    };
    let path = Query::new(path)
        .with(
            "from_airport",
            args.from.as_ref().map(|code| code.to_ascii_uppercase()),
        )
        .with(
            "to_airport",
            args.to.as_ref().map(|code| code.to_ascii_uppercase()),
        )
        .with("hotel_name", args.hotel.as_ref())
        .with(&format!("{what}_date"), one)
        .with(&format!("{what}_from"), range.map(|(first, _)| first))
        .with(&format!("{what}_to"), range.map(|(_, last)| last))
        .with("proxy_country", args.market.as_ref())
        .with("currency", args.currency.as_ref())
        .with("bucket", Some(args.bucket))
        .with("history_verdict", args.verdict.then_some(true))
        .path();
    let rows = if args.hotel.is_some() {
        session.read(&path).await?.map(hotel_rows)
    } else {
        session.read(&path).await?.map(flight_rows)
    };
    let Some(rows) = rows else {
        return Ok(());
    };
    let mut out = anstream::stdout();
    if rows.is_empty() {
        return print_nothing(&session.client, "Nothing is known about it yet.\n  next: `farescan scan` searches it once, `farescan monitors create` again and again").await;
    }
    let mut from = 0;
    while from < rows.len() {
        let same = |row: &&SeriesRow| row.product == rows[from].product;
        let count = rows[from..].iter().take_while(same).count();
        let product = &rows[from..from + count];
        writeln!(out, "{}", rows[from].product)?;
        writeln!(
            out,
            "{}\n{}",
            line(product),
            table(product, one).render(session.screen)
        )?;
        if let Some(left_out) = left_out(product) {
            writeln!(out, "{left_out}")?;
        }
        if let Some(verdict) = last_verdict(product) {
            writeln!(out, "{verdict}")?;
        }
        from += count;
    }
    Ok(())
}

/// The sparkline of the lowest prices, with the lowest and the last.
fn line(rows: &[SeriesRow]) -> String {
    let prices: Vec<_> = rows.iter().map(|row| row.minimum).collect();
    let lowest = rows
        .iter()
        .filter_map(|row| Some((row.minimum?, row.bucket)))
        .min_by_key(|(price, _)| *price);
    let last = rows
        .iter()
        .rev()
        .find_map(|row| Some((row.minimum?, row.bucket)));
    let text = |name: &str, found: Option<(Decimal, Date)>| {
        found
            .map(|(price, day)| format!("  {name} {} on {day}", amount(price)))
            .unwrap_or_default()
    };
    format!(
        "{}{}{}",
        sparkline(&prices),
        text("lowest", lowest),
        text("last", last)
    )
}

/// What the brackets mean.
fn left_out(rows: &[SeriesRow]) -> Option<String> {
    let count: u64 = rows.iter().map(|row| row.implausible.0).sum();
    (count > 0).then(|| {
        let prices = counted(count, "price");
        format!("Left out as implausible, the lowest of a row in brackets above: {prices}")
    })
}

/// The newest verdict in words.
fn last_verdict(rows: &[SeriesRow]) -> Option<String> {
    let (row, verdict) = rows
        .iter()
        .rev()
        .find_map(|row| Some((row, row.verdict.as_ref()?)))?;
    let fell = verdict.became_cheaper.map(|fell| {
        format!(
            "; {} of {} such prices became 10 % cheaper within 14 days ({}–{} %)",
            fell.count, fell.n, fell.percent_from, fell.percent_to
        )
    });
    Some(format!(
        "The lowest price of {}: {}{}",
        row.bucket,
        verdict.sentence,
        fell.unwrap_or_default()
    ))
}

fn table(rows: &[SeriesRow], date: Option<Date>) -> ListTable {
    let mut columns = vec![Column::text("Searched")];
    if date.is_some() {
        columns.push(Column::number("Days before").rank(1));
    }
    columns.extend([
        Column::number("Lowest"),
        Column::number("Median").rank(2),
        Column::number("Highest").rank(3),
        Column::text("Usual range").rank(4),
        Column::number("Searches").rank(5),
        Column::number("Degraded").rank(6),
    ]);
    let has_implausible = rows.iter().any(|row| row.implausible.0 > 0);
    if has_implausible {
        columns.push(Column::number("Left out"));
    }
    let is_judged = rows.iter().any(|row| row.verdict.is_some());
    if is_judged {
        columns.push(Column::text("Verdict"));
    }
    let mut table = ListTable::new(columns);
    let lowest = rows.iter().filter_map(|row| row.minimum).min();
    for row in rows {
        let mut cells = vec![Text::from(row.bucket.to_string())];
        if let Some(date) = date {
            let days = row
                .bucket
                .until(date)
                .map(|span| span.get_days().to_string());
            cells.push(days.unwrap_or_default().into());
        }
        cells.extend(price_cells(row, lowest));
        if has_implausible {
            let lowest = row.implausible.1.map(CellValue::Implausible);
            cells.push(lowest.map_or_else(|| "".into(), exact_text));
        }
        if is_judged {
            cells.push(
                row.verdict
                    .as_ref()
                    .map(short_verdict)
                    .unwrap_or_default()
                    .into(),
            );
        }
        table.row(cells);
    }
    table
}

/// The prices of a bucket and its searches. `lowest` is the lowest price of the table.
fn price_cells(row: &SeriesRow, lowest: Option<Decimal>) -> [Text; 6] {
    let (mark, tone) = if row.minimum.is_some() && row.minimum == lowest {
        ("*", CellTone::Best)
    } else {
        ("", CellTone::Plain)
    };
    let band = row
        .band
        .map(|(low, high)| format!("{}–{}", amount(low), amount(high)));
    let degraded = if row.degraded > 0 {
        CellTone::Warning
    } else {
        CellTone::Plain
    };
    [
        Text::new(format!("{mark}{}", price_or(row.minimum, "–")), tone),
        price_or(row.median, "").into(),
        price_or(row.maximum, "").into(),
        band.unwrap_or_default().into(),
        row.searches.to_string().into(),
        Text::new(row.degraded.to_string(), degraded),
    ]
}

/// `low (18.3)`.
fn short_verdict(verdict: &HistoryVerdict) -> String {
    match verdict.percentile {
        Some(percentile) => format!("{} ({percentile})", verdict.class),
        None => verdict.class.to_string(),
    }
}

fn flight_rows(series: FlightSeries) -> Vec<SeriesRow> {
    let row = |bucket: FlightBucket| SeriesRow {
        product: format!(
            "{} → {}, {}",
            bucket.from_airport,
            bucket.to_airport,
            product(bucket.endpoint, &bucket.product, None, &bucket.currency)
        ),
        bucket: bucket.bucket,
        minimum: bucket.minimum,
        median: bucket.median,
        maximum: bucket.maximum,
        implausible: (bucket.implausible, bucket.lowest_implausible),
        band: bucket.price_insights_low.zip(bucket.price_insights_high),
        searches: bucket.observations,
        degraded: bucket.degraded,
        verdict: bucket.history_verdict,
    };
    series.data.into_iter().map(row).collect()
}

fn hotel_rows(series: HotelSeries) -> Vec<SeriesRow> {
    let row = |bucket: HotelBucket| {
        let market = Some(bucket.proxy_country.as_deref());
        let product = product(bucket.endpoint, &bucket.product, market, &bucket.currency);
        SeriesRow {
            product: format!("{}, {product}", bucket.place),
            bucket: bucket.bucket,
            minimum: bucket.minimum,
            median: bucket.median,
            maximum: bucket.maximum,
            implausible: (bucket.implausible, bucket.lowest_implausible),
            band: None,
            searches: bucket.observations,
            degraded: bucket.degraded,
            verdict: bucket.history_verdict,
        }
    };
    series.data.into_iter().map(row).collect()
}
