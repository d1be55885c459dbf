//! The demo's walkthrough: a month of fares, a retry of the one degraded date, a hotel from five
//! markets with as many samples as tell a gap from chance, a monitor with an alert (`monitor`).
//!
//! It calls the service over HTTP and prints the answers.

use std::io::Write;

use farescan_sheets::scan::outcomes;
use jiff::civil::Date;
use serde_json::{Value, json};

use crate::cli::past::{MARKETS, fare, month_of_31_days, stay};
use crate::contract::{Item, ItemPage, RetryAccepted, Scan, ScanStatus};
use crate::ids::{AlertId, MonitorId, ScanId};
use crate::sandbox::DayShift;
use farescan_client::Failure;
use farescan_client::client::ApiClient;
use farescan_client::progress::{View, follow};
use farescan_client::scan_table::render;
use farescan_client::terminal::Screen;

/// One run of the walkthrough.
pub struct Walkthrough<'a, W: Write> {
    pub client: &'a ApiClient,
    pub out: W,
    /// What `out` shows.
    pub screen: Screen,
    pub today: Date,
    /// The sandbox's day, relative to `today`.
    pub days: DayShift,
    /// Whether the whole body of each request is shown.
    pub is_verbose: bool,
}

/// The monitor of a walkthrough and its newest alert.
pub struct WatchedPrice {
    pub monitor: MonitorId,
    /// `None` if no rule fired.
    pub alert: Option<AlertId>,
}

/// The scans of a walkthrough, for the next steps.
pub struct WalkthroughScans {
    pub fares: ScanId,
    pub hotel: ScanId,
    /// The first date of the month.
    pub first: Date,
    /// The query of its history.
    pub route: &'static str,
    /// The date whose search was retried.
    pub retried: String,
    pub watched: WatchedPrice,
}

impl<W: Write> Walkthrough<'_, W> {
    /// Runs all parts.
    pub async fn run_all(mut self) -> Result<WalkthroughScans, Failure> {
        let (first, last) = month_of_31_days(self.today)?;
        let fares = self.fares(first, last).await?;
        let (retried, scan) = self.retry(fares).await?;
        let best = scan.best.ok_or("the month has no price")?;
        let hotel = self.hotel().await?;
        let watched = self.watch_price((first, last), &best).await?;
        Ok(WalkthroughScans {
            fares,
            hotel,
            first,
            route: "from_airport=TLV&to_airport=LHR",
            retried,
            watched,
        })
    }

    async fn fares(&mut self, first: Date, last: Date) -> Result<ScanId, Failure> {
        let body = json!({
            "endpoint": "flights/oneway",
            "request": fare(),
            "sweep": {"departure_date": {"from": first, "to": last}},
        });
        writeln!(
            self.out,
            "1. A month of fares, Tel Aviv to London: one request, 31 searches\n"
        )?;
        let dates = format!("flights/oneway, TLV → LHR, {first} to {last}");
        let scan = self.run(&dates, &body).await?;
        self.table(&scan).await?;
        Ok(scan.id)
    }

    /// Returns the retried date and the scan afterwards.
    async fn retry(&mut self, id: ScanId) -> Result<(String, Scan), Failure> {
        let degraded = self.items(id, "&search_status=degraded").await?;
        let Some(item) = degraded.first() else {
            return Err("no search of the demo was degraded: the sandbox should make one".into());
        };
        let reason = item.reason.as_deref().unwrap_or("no reason given");
        let date = item
            .search
            .get("departure_date")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        writeln!(
            self.out,
            "\n2. The search for {date} did not complete ({reason}),\n   so the scan retries it and nothing else\n"
        )?;
        let body = json!({"search_status": ["degraded"]});
        writeln!(self.out, "   POST /v1/scans/{id}/retry\n   {body}")?;
        let _: RetryAccepted = self
            .client
            .post(&format!("/v1/scans/{id}/retry"), &body)
            .await?;
        let scan = self.ended(id).await?;
        self.table(&scan).await?;
        let spent = scan.requests.spent;
        writeln!(
            self.out,
            "\n   {spent} requests spent: {} for the month, {} for the retry",
            scan.items.total,
            spent - scan.items.total
        )?;
        Ok((date, scan))
    }

    async fn hotel(&mut self) -> Result<ScanId, Failure> {
        let stay = stay(self.today)?;
        let checkin = stay["checkin_date"].as_str().unwrap_or_default().to_owned();
        let body = json!({
            "endpoint": "hotels/by-name",
            "request": stay,
            "sweep": {"proxy_country": MARKETS, "samples": 3},
        });
        writeln!(
            self.out,
            "\n3. Three nights from five markets, three times each: Hotel Arts, Barcelona\n"
        )?;
        let markets = MARKETS.join(", ");
        let markets = format!("hotels/by-name, {checkin}, from {markets}, 3 times");
        let scan = self.run(&markets, &body).await?;
        self.table(&scan).await?;
        Ok(scan.id)
    }

    /// Submits a scan and follows it to its end.
    async fn run(&mut self, summary: &str, body: &Value) -> Result<Scan, Failure> {
        self.show_request("/v1/scans", summary, body)?;
        let scan: Scan = self.client.post("/v1/scans", body).await?;
        self.ended(scan.id).await
    }

    /// Shows a request in one line, or with its whole body.
    pub(super) fn show_request(
        &mut self,
        path: &str,
        summary: &str,
        body: &Value,
    ) -> Result<(), Failure> {
        writeln!(self.out, "   POST {path}  {summary}")?;
        if self.is_verbose {
            // On several lines: a terminal would wrap one line inside words.
            let body = serde_json::to_string_pretty(body)?.replace('\n', "\n   ");
            writeln!(self.out, "   {body}")?;
        }
        Ok(())
    }

    async fn ended(&mut self, id: ScanId) -> Result<Scan, Failure> {
        let scan = follow(self.client, id, self.view()).await?;
        let outcomes = outcomes(&scan.items);
        writeln!(self.out, "   {id} is {}: {outcomes}\n", scan.status)?;
        match scan.status {
            ScanStatus::Completed | ScanStatus::Incomplete => Ok(scan),
            other => Err(format!("scan {id} stopped as {other}").into()),
        }
    }

    async fn table(&mut self, scan: &Scan) -> Result<(), Failure> {
        let table = render(self.client, scan, self.screen).await?;
        Ok(writeln!(self.out, "{table}")?)
    }

    fn view(&self) -> View {
        if self.screen.live {
            View::Bar
        } else {
            View::Silent
        }
    }

    async fn items(&self, id: ScanId, filter: &str) -> Result<Vec<Item>, Failure> {
        let page: ItemPage = self
            .client
            .get(&format!("/v1/scans/{id}/items?limit=100{filter}"))
            .await?;
        Ok(page.data)
    }
}
