//! A delivery: what is sent to a webhook, and what became of each try.

use farescan_contract::ids::MonitorId;
use farescan_contract::webhooks::{
    Delivery, DeliveryDetail, DeliveryReason, DeliveryStatus, DeliveryTry, TryError,
};

use crate::alert::Reported;
use crate::numbers::count;
use crate::sheet::{Cell, Column, Figure, Link, Section, Sheet, Table, Tone, Value};

/// Deliveries as rows.
pub fn table(deliveries: &[Delivery], reported: impl Fn(MonitorId) -> Reported) -> Table {
    let columns = [
        Column::text("Event"),
        Column::text("Occurred"),
        Column::text("Status"),
        Column::number("Tries"),
        Column::text("Next try or end").rank(1),
        Column::text("Monitor").rank(3),
        Column::detail("Trip").rank(2),
    ];
    let rows = deliveries.iter().map(|delivery| {
        let Reported { monitor, trip } = reported(delivery.monitor_id);
        let end = delivery.ended_at.map(|at| Value::Time("ended", at));
        let due = delivery.next_try_at.map(|at| Value::Time("due", at));
        let cells = [
            vec![delivery.event_type.clone().into()],
            vec![Value::Time("", delivery.created_at)],
            status(delivery),
            vec![Value::Count(delivery.try_count.into())],
            end.or(due).into_iter().collect(),
            vec![Value::Link(Link::Monitor(delivery.monitor_id), monitor)],
            trip.into_iter().map(Value::Text).collect(),
        ];
        (Some(Link::Delivery(delivery.id)), cells)
    });
    Table::new("Deliveries", columns, rows)
}

/// A delivery with its tries, newest first.
pub fn sheet(detail: &DeliveryDetail, reported: Reported) -> Sheet {
    let delivery = &detail.delivery;
    let Reported { monitor, trip } = reported;
    let monitor = Value::Link(Link::Monitor(delivery.monitor_id), monitor);
    let occurred = Value::Time("occurred", delivery.created_at);
    let ended = delivery.ended_at.map(|at| Value::Time("ended", at));
    let mut facts = status(delivery);
    facts.extend(trip.map(Value::Strong));
    facts.extend([monitor, occurred].into_iter().chain(ended));
    let due = delivery.next_try_at;
    let due = due.map(|at| Figure::new("Next try", Value::Time("", at)));
    let is_tried = !detail.tries.is_empty();
    let columns = [
        Column::number("Try"),
        Column::text("Began"),
        Column::number("Took").rank(2),
        Column::text("Result"),
        Column::text("The receiver's answer").rank(1),
    ];
    let tries = detail.tries.iter().map(|one| (None, try_cells(one)));
    Sheet {
        title: delivery.event_type.clone(),
        facts,
        sections: vec![Section {
            title: "Tries",
            sentence: (!is_tried).then(|| "Not tried yet.".to_owned()),
            figures: due.into_iter().collect(),
            table: is_tried.then(|| Table::new("Tries", columns, tries)),
            ..Section::default()
        }],
        ..Sheet::default()
    }
}

fn try_cells(one: &DeliveryTry) -> [Cell; 5] {
    let word = |tone, word: &str| Value::Word(tone, word.to_owned());
    let mut result = match (one.error, one.ended_at) {
        (Some(of), _) => vec![word(Tone::Bad, "failed"), error(of).into()],
        (None, Some(_)) => vec![word(Tone::Good, "delivered")],
        (None, None) => vec![word(Tone::Info, "running")],
    };
    let status = one.http_status;
    result.extend(status.map(|status| Value::Muted(format!("HTTP {status}"))));
    let answer = one.response.clone().filter(|text| !text.is_empty());
    let took = one.latency_ms;
    [
        vec![Value::Count(one.number.into())],
        vec![Value::Time("", one.started_at)],
        took.map(|ms| format!("{} ms", count(ms)).into())
            .into_iter()
            .collect(),
        result,
        answer.map(Value::Code).into_iter().collect(),
    ]
}

pub const fn status_name(status: DeliveryStatus) -> &'static str {
    match status {
        DeliveryStatus::Pending => "Pending",
        DeliveryStatus::Delivered => "Delivered",
        DeliveryStatus::Failed => "Failed",
    }
}

/// The status, and why it failed.
pub fn status(delivery: &Delivery) -> Cell {
    let tone = match delivery.status {
        DeliveryStatus::Pending => Tone::Info,
        DeliveryStatus::Delivered => Tone::Good,
        DeliveryStatus::Failed => Tone::Bad,
    };
    let word = Value::Word(tone, status_name(delivery.status).to_owned());
    let why = delivery
        .reason
        .map(|why| Value::Muted(reason(why).to_owned()));
    std::iter::once(word).chain(why).collect()
}

/// Why a delivery failed.
pub const fn reason(reason: DeliveryReason) -> &'static str {
    match reason {
        DeliveryReason::TriesSpent => "all tries failed",
        DeliveryReason::TestFailed => "the test's only try failed",
        DeliveryReason::Gone => "the receiver answered 410",
        DeliveryReason::EndpointOff => "the webhook was switched off",
        DeliveryReason::EndpointClosed => "the webhook was removed",
        DeliveryReason::WorkerLost => "the processes of its tries died",
    }
}

const fn error(error: TryError) -> &'static str {
    match error {
        TryError::HttpStatus => "not answered with 2xx",
        TryError::Timeout => "no answer within 10 seconds",
        TryError::Unresolved => "the host has no public address; nothing was sent",
        TryError::AddressRefused => "the URL is not allowed any more; nothing was sent",
        TryError::Unconnected => "the connection or TLS failed",
        TryError::Broken => "the connection closed before the answer",
        TryError::SecretUnreadable => "the signing secret cannot be read; nothing was sent",
        TryError::WorkerLost => "the process died; it may have arrived",
    }
}
