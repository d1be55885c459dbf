//! A line of the list of everything that happened: a scan, a run, an alert or a delivery.

use farescan_contract::ids::AlertId;
use farescan_contract::monitors::{Alert, RuleType};
use farescan_contract::scans::Scan;
use farescan_contract::webhooks::Delivery;
use jiff::Timestamp;
use serde_json::Value as Json;

use crate::alert::{self, Reported};
use crate::sheet::{Cell, Link, Tone, Value, cell};
use crate::{delivery, rule, scan, trip};

/// What a line says.
#[derive(Debug, Clone, PartialEq)]
pub struct ActivityLine {
    pub at: Timestamp,
    /// `Scan`, `Run`, `Alert` or `Delivery`.
    pub kind: &'static str,
    pub of: Link,
    /// What it is about: a label, or the route or hotel with its dates.
    pub title: String,
    pub details: Cell,
    pub status: Cell,
    /// The price that it found.
    pub price: Option<Value>,
    /// The requests that it spent.
    pub requests: Option<u32>,
}

/// A scan, or the run of a monitor.
pub fn of_scan(of: &Scan, reported: Reported) -> ActivityLine {
    let title = trip::title(of.endpoint, &of.request, &of.sweep);
    let facts = trip::facts(of.endpoint, &of.request, &of.sweep).join(" · ");
    let (title, trip) = match of.label.clone() {
        Some(label) => (label, Some(Value::Text(title))),
        None => (title, None),
    };
    let best = of.best.as_ref();
    ActivityLine {
        at: of.created_at,
        kind: if of.monitor_id.is_some() {
            "Run"
        } else {
            "Scan"
        },
        of: Link::of(of.id),
        title,
        details: cell([
            trip,
            Some(facts.into()),
            monitor(of.monitor_id.map(Link::of), reported.monitor),
        ]),
        status: scan::status(of),
        price: best.map(|best| Value::Money(best.price, Some(best.currency.clone()))),
        requests: Some(of.requests.spent),
    }
}

/// A stored alert. One that this program cannot read is still a line.
pub fn of_alert(
    at: Timestamp,
    id: AlertId,
    stored: &Json,
    reported: impl Fn(&Alert) -> Reported,
) -> ActivityLine {
    let line = |title: String, details, status, price| ActivityLine {
        at,
        kind: "Alert",
        of: Link::of(id),
        title,
        details,
        status,
        price,
        requests: None,
    };
    let Ok(of) = serde_json::from_value::<Alert>(stored.clone()) else {
        return line(
            alert::OTHER_VERSION.to_owned(),
            Cell::new(),
            Cell::new(),
            None,
        );
    };
    let Reported {
        monitor: name,
        trip,
        ..
    } = reported(&of);
    let rule = match of.rule_type.parse::<RuleType>() {
        Ok(known) => rule::type_name(known).to_owned(),
        Err(_) => trip::capitalised(&trip::words(&of.rule_type)),
    };
    let sentence = alert::title(&of);
    let link = Some(Link::of(of.monitor_id));
    let (title, sentence) = match trip {
        Some(trip) => (trip, Some(sentence.into())),
        None => (
            sentence,
            Some(alert::swept(&of))
                .filter(|swept| !swept.is_empty())
                .map(Value::Text),
        ),
    };
    line(
        title,
        cell([sentence, monitor(link, name)]),
        vec![Value::word(Tone::Info, rule)],
        of.price
            .map(|price| Value::Money(price, of.currency.clone())),
    )
}

/// A delivery.
pub fn of_delivery(of: &Delivery, reported: Reported) -> ActivityLine {
    let what = delivery::event(&of.event_type).to_owned();
    let (title, what) = match reported.trip {
        Some(trip) => (trip, Some(what.into())),
        None => (what, None),
    };
    let tries = (of.try_count > 1).then(|| format!("{} tries", of.try_count));
    ActivityLine {
        at: of.created_at,
        kind: "Delivery",
        of: Link::of(of.id),
        title,
        details: cell([
            what,
            tries.map(Value::Text),
            monitor(of.monitor_id.map(Link::of), reported.monitor),
        ]),
        status: delivery::status(of),
        price: None,
        requests: None,
    }
}

fn monitor(link: Option<Link>, name: Option<String>) -> Option<Value> {
    Some(Value::Link(link?, Some(name?)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_alert_that_cannot_be_read_is_still_a_line() {
        let (at, id) = (Timestamp::UNIX_EPOCH, AlertId::new());
        let of = of_alert(at, id, &json!({"id": 7}), |_| Reported::default());
        assert_eq!(
            (of.at, of.kind, of.of, of.title.as_str()),
            (at, "Alert", Link::of(id), alert::OTHER_VERSION)
        );
    }
}
