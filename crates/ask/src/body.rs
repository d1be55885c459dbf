//! A question as a body of the API.

use farescan_contract::monitors::MonitorRequest;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Number, Value, json};

use crate::question::{Checks, Question, QuestionSubject, SAMPLES, SeatClass};

/// The most requests of a run of a watch.
const MAX_RUN: u32 = 18;
/// The fewest, which the API asks for.
const MIN_RUN: u32 = 2;
/// A market that differs by so many percent is an alert.
const GAP_PERCENT: u8 = 5;
/// The field of the limit of a month.
const MOST_A_MONTH: &str = "max_requests_per_month";

/// The day of the last 06:00 UTC. A watch that is made before 06:00 looks on that day.
pub fn day_of_last_check(now: Timestamp) -> Date {
    let then = now.checked_sub(SignedDuration::from_hours(6));
    then.unwrap_or(now).to_zoned(TimeZone::UTC).date()
}

impl Question {
    /// The body of a scan that searches everything.
    pub fn scan(&self) -> Map<String, Value> {
        let mut request = Map::new();
        let mut sweep = Map::new();
        let mut vary = |name: &str, values: &[String]| match values {
            [one] => drop(request.insert(name.to_owned(), one.as_str().into())),
            [] => {}
            several => drop(sweep.insert(name.to_owned(), json!(several))),
        };
        let markets = |markets: &[&str]| -> Vec<String> {
            markets
                .iter()
                .map(|code| code.to_ascii_lowercase())
                .collect()
        };
        match &self.subject {
            QuestionSubject::Flights { from, to, .. } => {
                vary("from_airport", from);
                vary("to_airport", to);
            }
            QuestionSubject::Hotel {
                name,
                area,
                markets: of,
            } => {
                vary("hotel_name", std::slice::from_ref(name));
                vary("area", area.as_slice());
                vary("proxy_country", &markets(of));
            }
            QuestionSubject::Hotels {
                destination,
                markets: of,
            } => {
                vary("destination", std::slice::from_ref(destination));
                vary("proxy_country", &markets(of));
            }
        }
        self.set_dates(&mut request, &mut sweep);
        self.set_options(&mut request);
        if self.compares_markets() {
            sweep.insert("samples".to_owned(), SAMPLES.into());
        }
        let mut body = Map::from_iter([
            ("endpoint".to_owned(), self.endpoint().into()),
            ("request".to_owned(), request.into()),
        ]);
        if !sweep.is_empty() {
            body.insert("sweep".to_owned(), sweep.into());
        }
        body
    }

    /// The same scan, which searches only what can still be the cheapest; of a question with an amount
    /// only until a price below it is found.
    pub fn find(&self) -> Map<String, Value> {
        let mut body = self.scan();
        let strategy = match self.amount() {
            Some(below) => json!({"find": "below", "below": below}),
            None => json!({"find": "cheapest"}),
        };
        body.insert("strategy".to_owned(), strategy);
        body
    }

    /// The price below which an answer is wanted, as a field of a body.
    fn amount(&self) -> Option<Number> {
        self.below?.normalize().to_string().parse().ok()
    }

    /// The body of a monitor that looks at 06:00 UTC for a price below the amount, and alerts;
    /// `None` without an amount. Of `searches` each run makes at most [`run_limit`].
    pub fn monitor(&self, searches: u32, today: Date) -> Option<Map<String, Value>> {
        let below = self.amount()?;
        let checks = self.watch_checks();
        let watched = self.beginning_on(checks.first_day(today));
        let mut scan = watched.scan();
        if searches > 1 {
            let watch = json!({"watch": "below", "below": below});
            scan.insert("strategy".to_owned(), watch);
        }
        scan.insert("max_requests".to_owned(), run_limit(searches).into());
        let alerts = json!([{"type": "price_below", "amount": below}]);
        let cron = checks.cron();
        let name = watched.monitor_name(false);
        let mut body = MonitorRequest::draft(&name, [&cron, "UTC"], scan, alerts);
        let most = run_limit(searches) * checks.runs_of_month();
        body.insert(MOST_A_MONTH.to_owned(), most.into());
        Some(body)
    }

    /// The body of a monitor that compares the markets of a hotel at 06:00 UTC, and reports each week's run or
    /// alerts of each day's differences; `None` for other questions. If it `rolls`, its first run compares the
    /// dates of the question, and each run dates that are as far after it; dates before the first run are
    /// counted from the run before it. `checked` is [`day_of_last_check`].
    pub fn parity_monitor(
        &self,
        searches: u32,
        checked: Date,
        rolls: bool,
    ) -> Option<Map<String, Value>> {
        let QuestionSubject::Hotel { markets, .. } = &self.subject else {
            return None;
        };
        let (baseline, [_, ..]) = markets.split_first()? else {
            return None;
        };
        let checks = self.watch_checks();
        let first = checks.first_day(checked);
        let watched = if rolls {
            self.clone()
        } else {
            self.beginning_on(first)
        };
        let mut scan = watched.scan();
        if rolls {
            // There are no negative days, so earlier dates would be lost. The run before the first one is
            // on the same day of the week.
            let before = match checks {
                _ if self.from >= first => first,
                Checks::Daily => checked,
                Checks::Weekly(_) => first.saturating_sub(jiff::Span::new().days(7)),
            };
            roll(&mut scan, before);
        }
        // A week's report is wanted also when nothing has changed; each day's would be noise.
        let rule = match checks {
            Checks::Weekly(_) => json!({"type": "every_run"}),
            Checks::Daily => json!({
                "type": "parity_gap_percent", "percent": GAP_PERCENT, "baseline": baseline.to_ascii_lowercase()
            }),
        };
        let (name, cron) = (watched.monitor_name(rolls), checks.cron());
        let mut body = MonitorRequest::draft(&name, [&cron, "UTC"], scan, vec![rule]);
        // Each search twice.
        let most = searches.saturating_mul(2 * checks.runs_of_month());
        body.insert(MOST_A_MONTH.to_owned(), most.into());
        Some(body)
    }

    /// Without the days that have passed when a watch first looks, if others are left.
    fn beginning_on(&self, first: Date) -> Self {
        Self {
            from: self.from.max(first.min(self.to)),
            ..self.clone()
        }
    }

    const fn endpoint(&self) -> &'static str {
        match (&self.subject, self.nights.is_empty()) {
            (QuestionSubject::Flights { .. }, true) => "flights/oneway",
            (QuestionSubject::Flights { .. }, false) => "flights/roundtrip",
            (QuestionSubject::Hotel { .. }, _) => "hotels/by-name",
            (QuestionSubject::Hotels { .. }, _) => "hotels/search",
        }
    }

    fn set_dates(&self, request: &mut Map<String, Value>, sweep: &mut Map<String, Value>) {
        let name = if self.is_of_flights() {
            "departure_date"
        } else {
            "checkin_date"
        };
        if self.from == self.to && self.nights.is_empty() {
            request.insert(name.to_owned(), self.from.to_string().into());
        } else {
            let mut range = json!({"from": self.from.to_string(), "to": self.to.to_string()});
            if !self.weekdays.is_empty() {
                range["weekdays"] = self.weekdays.iter().map(|day| day.as_str()).collect();
            }
            sweep.insert(name.to_owned(), range);
        }
        if !self.nights.is_empty() {
            sweep.insert("nights".to_owned(), json!(self.nights));
        }
    }

    /// What differs from the default of the API: a default is never sent.
    fn set_options(&self, request: &mut Map<String, Value>) {
        let mut set = |name: &str, value: Value| drop(request.insert(name.to_owned(), value));
        if self.currency != "USD" {
            set("currency", self.currency.into());
        }
        let QuestionSubject::Flights {
            max_stops, cabin, ..
        } = &self.subject
        else {
            if self.adults != 2 {
                set("adults", self.adults.into());
            }
            if self.children > 0 {
                set("children", self.children.into());
            }
            return;
        };
        if (self.adults, self.children) != (1, 0) {
            let kinds = (0..self.adults)
                .map(|_| 1)
                .chain((0..self.children).map(|_| 2));
            set("passengers", kinds.collect::<Vec<u8>>().into());
        }
        if let Some(stops) = max_stops {
            let names: &[&str] = if self.nights.is_empty() {
                &["max_stops"]
            } else {
                &["max_departure_stops", "max_return_stops"]
            };
            for name in names {
                set(name, (*stops).into());
            }
        }
        if let Some(cabin) = cabin {
            let seat = match cabin {
                SeatClass::Economy => 1,
                SeatClass::Business => 3,
            };
            set("seat_type", seat.into());
        }
    }
}

/// The most requests of a run of a watch over so many searches.
pub const fn run_limit(searches: u32) -> u32 {
    if searches < MIN_RUN {
        MIN_RUN
    } else if searches > MAX_RUN {
        MAX_RUN
    } else {
        searches
    }
}

/// Dates as days after a run.
fn roll(scan: &mut Map<String, Value>, run: Date) {
    fn each(value: &mut Value, run: Date) {
        match value {
            Value::Object(fields) => fields.values_mut().for_each(|value| each(value, run)),
            Value::String(text) => {
                if let Ok(date) = text.parse::<Date>() {
                    let days = date.since(run).map_or(0, |span| span.get_days());
                    *text = format!("+{}d", days.max(0));
                }
            }
            _ => {}
        }
    }
    for part in ["request", "sweep"] {
        if let Some(value) = scan
            .get_mut(part)
            .and_then(|part| part.get_mut("checkin_date"))
        {
            each(value, run);
        }
    }
}
