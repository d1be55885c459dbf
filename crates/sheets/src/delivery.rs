//! A delivery: what is sent to a webhook, and what became of each try.

use farescan_contract::ids::{ChannelId, MonitorId};
use farescan_contract::webhooks::{
    Delivery, DeliveryDetail, DeliveryReason, DeliveryStatus, DeliveryTry, TryError,
};

use crate::alert::Reported;
use crate::item::latency;
use crate::sheet::{Cell, Column, Figure, Link, Section, Sheet, Table, Tone, Value, cell};

/// Deliveries as rows. `channel` is the name of one.
pub fn table(
    deliveries: &[Delivery],
    reported: impl Fn(MonitorId) -> Reported,
    channel: impl Fn(ChannelId) -> Option<String>,
) -> Table {
    let columns = [
        Column::text("Event"),
        Column::text("To").rank(2),
        Column::text("Occurred"),
        Column::text("Status"),
        Column::number("Tries"),
        Column::text("Next try or end").rank(1),
        Column::text("Monitor").rank(3),
        Column::detail("Trip").rank(2),
    ];
    let rows = deliveries.iter().map(|delivery| {
        let Reported { monitor, trip, .. } = delivery.monitor_id.map(&reported).unwrap_or_default();
        let due = delivery.next_try_at.map(|at| Value::Time("due", at));
        let cells = [
            vec![delivery.event_type.clone().into()],
            vec![receiver(delivery, &channel)],
            vec![Value::at(delivery.created_at)],
            status(delivery),
            vec![Value::Count(delivery.try_count.into())],
            cell([ended(delivery).or(due)]),
            vec![of(delivery, monitor)],
            cell([trip.map(Value::Text)]),
        ];
        (Some(Link::of(delivery.id)), cells)
    });
    Table::new("Deliveries", columns, rows)
}

/// The last ones of one monitor.
pub fn recent(deliveries: &[Delivery]) -> Table {
    let table = table(deliveries, |_| Reported::default(), |_| None);
    let is_of_monitor =
        |column: &Column| ["Monitor", "To"].contains(&column.title.as_str()) || column.is_detail;
    table.without(is_of_monitor)
}

/// Its monitor. A message to a channel may be of several, and a test is of none.
fn of(delivery: &Delivery, name: Option<String>) -> Value {
    match delivery.monitor_id {
        Some(id) => Value::Link(Link::of(id), name),
        None => Value::muted("a channel"),
    }
}

/// The channel's name; a deleted channel has none.
fn receiver(delivery: &Delivery, channel: impl Fn(ChannelId) -> Option<String>) -> Value {
    match delivery.channel_id {
        Some(id) => match channel(id) {
            Some(name) => Value::Link(Link::of(id), Some(name)),
            None => Value::muted("a deleted channel"),
        },
        None => Value::muted("the webhook"),
    }
}

fn ended(delivery: &Delivery) -> Option<Value> {
    delivery.ended_at.map(|at| Value::Time("ended", at))
}

/// A delivery with its tries, newest first.
pub fn sheet(detail: &DeliveryDetail, reported: Reported) -> Sheet {
    let delivery = &detail.delivery;
    let Reported { monitor, trip, .. } = reported;
    let monitor = of(delivery, monitor);
    let occurred = Value::Time("occurred", delivery.created_at);
    let mut facts = status(delivery);
    let trip = trip.map(Value::Strong);
    facts.extend(cell([trip, Some(monitor), Some(occurred), ended(delivery)]));
    let columns = [
        Column::number("Try"),
        Column::text("Began"),
        Column::number("Took").rank(2),
        Column::text("Result"),
        Column::text("The receiver's answer").rank(1),
    ];
    let tries = detail.tries.iter().map(|one| (None, try_cells(one)));
    let none = detail.tries.is_empty();
    let tries = Section {
        sentence: none.then(|| "Not tried yet.".to_owned()),
        figures: Figure::of("Next try", delivery.next_try_at.map(Value::at))
            .into_iter()
            .collect(),
        table: Some(Table::new("Tries", columns, tries)),
        ..Section::new("Tries")
    };
    Sheet {
        title: delivery.event_type.clone(),
        facts,
        sections: vec![tries],
        ..Sheet::default()
    }
}

fn try_cells(one: &DeliveryTry) -> [Cell; 5] {
    let answer = one.response.clone().filter(|text| !text.is_empty());
    [
        vec![Value::Count(one.number.into())],
        vec![Value::at(one.started_at)],
        cell([one.latency_ms.map(|ms| latency(ms).into())]),
        result(one),
        cell([answer.map(Value::Code)]),
    ]
}

/// What became of a try.
pub fn result(one: &DeliveryTry) -> Cell {
    let word = match (one.error, one.ended_at) {
        (Some(_), _) => Value::word(Tone::Bad, "failed"),
        (None, Some(_)) => Value::word(Tone::Good, "delivered"),
        (None, None) => Value::word(Tone::Info, "running"),
    };
    let status = one.http_status.map(|status| format!("HTTP {status}"));
    let error = one.error.map(|of| Value::from(error(of)));
    cell([Some(word), error, status.map(Value::Muted)])
}

/// The status, and why it, or its newest try, failed.
pub fn status(delivery: &Delivery) -> Cell {
    let tone = match delivery.status {
        DeliveryStatus::Pending => Tone::Info,
        DeliveryStatus::Delivered => Tone::Good,
        DeliveryStatus::Failed => Tone::Bad,
    };
    let of_try = delivery
        .last_error
        .map(|of| format!("last try: {}", error(of)));
    let why = match (delivery.reason, of_try) {
        (Some(why), Some(of_try)) => Some(format!("{}, {of_try}", reason(why))),
        (Some(why), None) => Some(reason(why).to_owned()),
        (None, of_try) => of_try,
    };
    let word = Value::word(tone, delivery.status.as_str());
    cell([Some(word), why.map(Value::Muted)])
}

/// What a delivery is, by its type of event.
pub fn event(event_type: &str) -> &str {
    match event_type {
        "monitor.alerts" => "Alerts to the webhook",
        "monitor.digest" => "Collected alerts to the webhook",
        "monitor.test" => "Test of the webhook",
        "channel.alerts" => "Message to a channel",
        "channel.confirm" => "Code to confirm an address",
        "channel.test" => "Test of a channel",
        other => other,
    }
}

/// Why a delivery failed.
pub const fn reason(reason: DeliveryReason) -> &'static str {
    match reason {
        DeliveryReason::TriesSpent => "all tries failed",
        DeliveryReason::TestFailed => "the test's only try failed",
        DeliveryReason::Gone => "the receiver is gone",
        DeliveryReason::EndpointOff => "the receiver was switched off",
        DeliveryReason::EndpointClosed => "the webhook was removed",
        DeliveryReason::WorkerLost => "the processes of its tries died",
        DeliveryReason::Refused => "the mail server refused it for good",
    }
}

const fn error(error: TryError) -> &'static str {
    match error {
        TryError::HttpStatus => "not answered with 2xx",
        TryError::Timeout => "no answer in time",
        TryError::Unresolved => "the host has no public address; nothing was sent",
        TryError::AddressRefused => "the URL is not allowed any more; nothing was sent",
        TryError::Unconnected => "the connection or TLS failed",
        TryError::Broken => "the connection closed before the answer",
        TryError::SecretUnreadable => "the signing secret cannot be read; nothing was sent",
        TryError::WorkerLost => "the process died; it may have arrived",
        TryError::MailDeferred => "the mail server did not take it now",
        TryError::MailRefused => "the mail server refused it for good",
        TryError::NotSetUp => "this kind of channel is not set up any more; nothing was sent",
    }
}
