//! The part of the walkthrough about prices over time: a monitor of the dates around the cheapest
//! one, run on several days of the sandbox until a rule fires.

use std::io::Write;
use std::time::Duration;

use farescan_sheets::numbers::count;
use jiff::ToSpan as _;
use jiff::civil::Date;
use rust_decimal::Decimal;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::walkthrough::{Walkthrough, WatchedPrice};
use crate::contract::Scan;
use crate::contract::monitors::{Alert, Monitor, MonitorPage, SlotPage};
use crate::contract::scans::BestPrice;
use crate::ids::MonitorId;
use farescan_client::Failure;
use farescan_client::format::price_or;
use farescan_client::pages::rows;
use farescan_client::progress::{View, follow, line_of_text};
use farescan_client::render::{Column, ListTable, sparkline};

/// Its name distinguishes it from monitors of the demo's user.
const NAME: &str = "Demo: around the cheapest date";
/// Runs, each on another day of the sandbox; the last is on the real day. With these numbers at
/// least one date becomes cheaper by [`DROP_PERCENT`], in each of 32 months that were tried.
const RUNS: i32 = 8;
/// Days between two runs.
const DAYS_APART: i32 = 2;
/// Watched dates before and after the cheapest.
const AROUND: i32 = 5;
const DROP_PERCENT: u8 = 3;
/// How long the evaluation of an ended run may take.
const EVALUATION_LIMIT: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(100);

/// One run: the sandbox's day, and the scan that it made.
struct DatedRun {
    day: Date,
    scan: Scan,
}

impl<W: Write> Walkthrough<'_, W> {
    /// Creates the monitor, runs it on each day, and shows the prices and the alert.
    pub(super) async fn watch_price(
        &mut self,
        month: (Date, Date),
        best: &BestPrice,
    ) -> Result<WatchedPrice, Failure> {
        writeln!(
            self.out,
            "\n4. A monitor of the cheapest dates: {RUNS} runs, each {DAYS_APART} days of the sandbox later\n"
        )?;
        self.delete_earlier().await?;
        let dates = self.dates_around(month, best).await?;
        let body = json!({
            "name": NAME,
            "schedule": {"cron": "0 6 * * *", "timezone": "UTC"},
            "scan": {
                "endpoint": "flights/oneway",
                "request": {"from_airport": "TLV", "to_airport": "LHR", "currency": "USD"},
                "sweep": {"departure_date": {"from": dates.0, "to": dates.1}},
            },
            "alerts": [
                {"type": "drop_percent", "percent": DROP_PERCENT, "scope": "cell"},
            ],
        });
        let summary = format!(
            "{} to {}, alert {DROP_PERCENT} % below the runs before",
            dates.0, dates.1
        );
        self.show_request("/v1/monitors", &summary, &body)?;
        let monitor: Monitor = self.client.post("/v1/monitors", &body).await?;
        let runs = self.run_on_each_day(monitor.id).await?;
        let slots = self.evaluated(monitor.id).await?;
        self.show_runs(&runs, &slots)?;
        let alert = self.newest_alert(monitor.id).await?;
        self.show_alert(alert.as_ref())?;
        Ok(WatchedPrice {
            monitor: monitor.id,
            alert: alert.map(|alert| alert.id),
        })
    }

    /// Deletes the monitor of an earlier demo in this folder. Its scans and prices stay.
    async fn delete_earlier(&self) -> Result<(), Failure> {
        let page: MonitorPage = self.client.get("/v1/monitors?limit=500").await?;
        for monitor in page.data.iter().filter(|monitor| monitor.name == NAME) {
            let path = format!("/v1/monitors/{}", monitor.id);
            self.client
                .send(reqwest::Method::DELETE, &path, None::<&()>, None)
                .await?;
        }
        Ok(())
    }

    /// The dates around the cheapest one, within the month.
    async fn dates_around(
        &self,
        (first, last): (Date, Date),
        best: &BestPrice,
    ) -> Result<(Date, Date), Failure> {
        let item: crate::contract::Item =
            self.client.get(&format!("/v1/items/{}", best.item)).await?;
        let date = item.search.get("departure_date").and_then(Value::as_str);
        let date: Date = date.ok_or("the cheapest item has no date")?.parse()?;
        let from = date.checked_sub(AROUND.days())?.max(first);
        let to = date.checked_add(AROUND.days())?.min(last);
        Ok((from, to))
    }

    /// Runs the monitor once on each day, the real day last. Prices come from searches alone: the
    /// sandbox answers as of its day.
    async fn run_on_each_day(&self, monitor: MonitorId) -> Result<Vec<DatedRun>, Failure> {
        let mut runs = Vec::new();
        let progress = self.screen.live.then(line_of_text);
        for number in 1..=RUNS {
            let back = (RUNS - number) * DAYS_APART;
            if let Some(progress) = &progress {
                progress.set_message(format!("   run {number} of {RUNS} …"));
            }
            self.days.set(-back);
            let run: Scan = self
                .client
                .command(&format!("/v1/monitors/{monitor}/run"))
                .await?;
            let scan = follow(self.client, run.id, View::Silent).await?;
            let day = self.today.checked_sub(back.days())?;
            runs.push(DatedRun { day, scan });
        }
        if let Some(progress) = progress {
            progress.finish_and_clear();
        }
        Ok(runs)
    }

    /// The slots of the runs, the newest first, when the rules have been evaluated for all.
    async fn evaluated(&self, monitor: MonitorId) -> Result<SlotPage, Failure> {
        let path = format!("/v1/monitors/{monitor}/slots?limit=50");
        let end = Instant::now() + EVALUATION_LIMIT;
        loop {
            let slots: SlotPage = self.client.get(&path).await?;
            if slots.data.iter().all(|slot| slot.judged.is_some()) {
                return Ok(slots);
            }
            if Instant::now() > end {
                return Err(format!("the rules of {monitor} were not evaluated in time").into());
            }
            tokio::time::sleep(POLL).await;
        }
    }

    fn show_runs(&mut self, runs: &[DatedRun], slots: &SlotPage) -> Result<(), Failure> {
        let prices: Vec<Option<Decimal>> = runs
            .iter()
            .map(|run| Some(run.scan.best.as_ref()?.price))
            .collect();
        let mut table = ListTable::new([
            Column::text("Sandbox's day"),
            Column::number("Lowest, USD"),
            Column::number("Alerts"),
        ]);
        for (run, price) in runs.iter().zip(&prices) {
            let slot = slots
                .data
                .iter()
                .find(|slot| slot.scan_id == Some(run.scan.id));
            let alerts = slot
                .and_then(|slot| slot.judged)
                .map(|judged| judged.alerts);
            table.row([
                run.day.to_string().into(),
                price_or(*price, "–").into(),
                alerts
                    .filter(|alerts| *alerts > 0)
                    .map(count)
                    .unwrap_or_default()
                    .into(),
            ]);
        }
        writeln!(
            self.out,
            "\n{}\n   {}  lowest price of each run\n",
            table.render(self.screen),
            sparkline(&prices)
        )?;
        Ok(())
    }

    async fn newest_alert(&self, monitor: MonitorId) -> Result<Option<Alert>, Failure> {
        let path = format!("/v1/monitors/{monitor}/alerts?limit=1");
        let alerts: Vec<Alert> = rows(self.client, &path, Some(1)).await?;
        Ok(alerts.into_iter().next())
    }

    fn show_alert(&mut self, alert: Option<&Alert>) -> Result<(), Failure> {
        let Some(alert) = alert else {
            writeln!(self.out, "   No rule fired.")?;
            return Ok(());
        };
        let date = alert.cell.get("departure_date").and_then(Value::as_str);
        let lowest = alert.reference.as_ref().map(|mark| mark.price);
        writeln!(
            self.out,
            "   Alert: {} USD{}; the lowest before was {}",
            price_or(alert.price, "–"),
            date.map(|date| format!(" on {date}")).unwrap_or_default(),
            price_or(lowest, "–"),
        )?;
        Ok(())
    }
}
