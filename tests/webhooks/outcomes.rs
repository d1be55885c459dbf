//! The outcomes of deliveries, by the behaviour of the receiver.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use farescan::contract::webhooks::{DeliveryDetail, DeliveryStatus, TryError};
use farescan::webhooks::retry_schedule::DELAYS;

use super::harness::{WebhookTest, address};
use crate::support::reply::Reply;
use crate::support::upstream::ScriptedServer;

/// The result of a try as a word.
fn describe_try(detail: &DeliveryDetail, number: u32) -> String {
    let tried = detail
        .tries
        .iter()
        .find(|tried| tried.number == number)
        .unwrap();
    match (tried.http_status, tried.error) {
        (Some(status), _) => status.to_string(),
        (None, error) => error.map_or("under way", TryError::as_str).to_owned(),
    }
}

/// All tries in order; equal consecutive ones are counted.
fn describe_tries(detail: &DeliveryDetail) -> String {
    let mut words: Vec<(String, usize)> = Vec::new();
    for number in 1..=detail.delivery.try_count {
        let word = describe_try(detail, number);
        match words.last_mut() {
            Some((last, count)) if *last == word => *count += 1,
            _ => words.push((word, 1)),
        }
    }
    words
        .into_iter()
        .map(|(word, count)| {
            if count > 1 {
                format!("{count} × {word}")
            } else {
                word
            }
        })
        .collect::<Vec<_>>()
        .join(", ")
}

/// Makes each next try due until the delivery has ended.
async fn deliver_until_ended(hooks: &WebhookTest, id: farescan::ids::DeliveryId) -> DeliveryDetail {
    for number in 1..=8 {
        let seen = hooks.tried(id, number).await;
        if seen.delivery.status != DeliveryStatus::Pending {
            return seen;
        }
        hooks.due_now(id).await;
    }
    hooks.ended(id).await
}

/// A name, its addresses and the behaviour of its receiver.
struct Case {
    what: &'static str,
    leads: &'static [&'static [Place]],
    replies: Vec<Reply>,
    fate: &'static str,
}

#[derive(Clone, Copy)]
enum Place {
    /// The address of the receiver.
    Own,
    /// A listening address that must not be reached.
    Trap,
    /// An address of a private network.
    Private,
    /// A port without a listener.
    Nobody,
}

fn cases() -> Vec<Case> {
    const OWN: &[&[Place]] = &[&[Place::Own]];
    let case = |what, leads, replies: Vec<Reply>, fate| Case {
        what,
        leads,
        replies,
        fate,
    };
    let fails = |status| Reply::status(status).body("no");
    vec![
        case(
            "takes it",
            OWN,
            vec![Reply::status(204)],
            "delivered after 204",
        ),
        case(
            "accepts it, and the body of its response never ends",
            OWN,
            vec![Reply::text("half of it").stalled_body()],
            "delivered after 200",
        ),
        case(
            "fails twice, then accepts it",
            OWN,
            vec![fails(500), fails(404), Reply::status(200)],
            "delivered after 500, 404, 200",
        ),
        case(
            "fails",
            OWN,
            vec![fails(503)],
            "failed (tries_spent) after 8 × 503",
        ),
        case(
            "hangs, then accepts it",
            OWN,
            vec![Reply::hang(), Reply::status(200)],
            "delivered after timeout, 200",
        ),
        case(
            "breaks the connection",
            OWN,
            vec![Reply::reset(), Reply::status(200)],
            "delivered after broken, 200",
        ),
        case(
            "is no HTTP",
            OWN,
            vec![Reply::garbage(), Reply::status(200)],
            "delivered after broken, 200",
        ),
        case(
            "answers 410",
            OWN,
            vec![Reply::status(410)],
            "failed (gone) after 410; switched off (gone)",
        ),
        case(
            "redirects to a private address",
            OWN,
            vec![Reply::status(302)],
            "failed (tries_spent) after 8 × 302",
        ),
        case(
            "resolves to a private address",
            &[&[Place::Private]],
            vec![],
            "failed (tries_spent) after 8 × unresolved",
        ),
        case(
            "resolves to another address of this machine",
            &[&[Place::Trap]],
            vec![],
            "failed (tries_spent) after 8 × unresolved",
        ),
        case(
            "resolves to an allowed address and a private one",
            &[&[Place::Own, Place::Trap]],
            vec![],
            "failed (tries_spent) after 8 × unresolved",
        ),
        case(
            "changes its address between check and connection",
            &[&[Place::Own], &[Place::Trap]],
            vec![Reply::status(200)],
            "delivered after 200",
        ),
        case(
            "changes its address between two tries",
            &[&[Place::Own], &[Place::Trap], &[Place::Own]],
            vec![fails(500), Reply::status(200)],
            "delivered after 500, unresolved, 200",
        ),
        case(
            "has no address",
            &[&[]],
            vec![],
            "failed (tries_spent) after 8 × unresolved",
        ),
        case(
            "is not there",
            &[&[Place::Nobody]],
            vec![],
            "failed (tries_spent) after 8 × unconnected",
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn each_receiver_behaviour_has_its_documented_outcome() {
    let hooks = WebhookTest::open().await;
    let trap = ScriptedServer::start_at("127.0.0.2:0").await;
    let deliverer = hooks.deliverer();
    let mut table = String::new();
    for (number, case) in cases().into_iter().enumerate() {
        let name = format!("case{number}.test");
        let receiver = ScriptedServer::start().await;
        let at = |place: &Place| match place {
            Place::Own => address(&receiver),
            Place::Trap => address(&trap),
            Place::Private => SocketAddr::from(([169, 254, 169, 254], 80)),
            Place::Nobody => SocketAddr::from(([127, 0, 0, 1], 1)),
        };
        let leads: Vec<Vec<SocketAddr>> = case
            .leads
            .iter()
            .map(|places| places.iter().map(at).collect())
            .collect();
        hooks
            .names
            .resolve_to(&name, &leads.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let to_trap = format!("{}/private", trap.url());
        let replies = case
            .replies
            .into_iter()
            .map(|reply| reply.header("location", &to_trap))
            .collect::<Vec<_>>();
        if !replies.is_empty() {
            receiver.replies(replies);
        }
        let (monitor, secret) = hooks
            .webhook(&format!("http://{name}/hook?token=hunter2"))
            .await;
        let id = hooks.enqueue(monitor).await;
        let seen = deliver_until_ended(&hooks, id).await;
        let reason = seen
            .delivery
            .reason
            .map_or(String::new(), |reason| format!(" ({reason})"));
        let off = hooks
            .endpoint(monitor)
            .await
            .unwrap()
            .off_reason
            .map_or(String::new(), |why| format!("; switched off ({why})"));
        let fate = format!(
            "{}{reason} after {}{off}",
            seen.delivery.status,
            describe_tries(&seen)
        );
        assert_eq!(fate, case.fate, "{}: {seen:#?}", case.what);
        for call in receiver.calls() {
            assert!(
                super::harness::is_signed(&call, &secret),
                "{}: {call:#?}",
                case.what
            );
            assert_eq!(
                (call.header("webhook-id"), call.header("content-type")),
                (id.to_string().as_str(), "application/json")
            );
            assert_eq!(call.path, "/hook?token=hunter2");
        }
        // One lookup per try: a second one could return another address.
        assert_eq!(
            hooks.names.lookups(&name),
            seen.tries.len(),
            "{}",
            case.what
        );
        writeln!(table, "{:50} {fate}", case.what).unwrap();
    }
    assert_eq!(
        trap.count(),
        0,
        "a forbidden address was reached: {:#?}",
        trap.calls()
    );
    deliverer.stop().await;
    println!("{table}");
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_are_retried_at_the_documented_times() {
    let hooks = WebhookTest::open().await;
    let (receiver, monitor) = hooks.receiver("fails.test").await;
    receiver.reply(Reply::status(500).body("no\u{1b}[31m way\0"));
    let id = hooks.enqueue(monitor).await;
    let deliverer = hooks.deliverer();
    let mut events = Vec::new();
    for (number, delay) in (1..).zip(DELAYS) {
        let seen = hooks.tried(id, number).await;
        let ended = seen.tries[0].ended_at.unwrap();
        let wait =
            Duration::try_from(seen.delivery.next_try_at.unwrap().duration_since(ended)).unwrap();
        assert!(
            wait + Duration::from_millis(50) >= delay
                && wait <= delay.mul_f64(1.1) + Duration::from_secs(5),
            "{number}: {wait:?}"
        );
        assert_eq!(
            seen.tries[0].response.as_deref(),
            Some("no\u{fffd}[31m way\u{fffd}"),
            "the response is stored as safe text"
        );
        events.push(format!("{:.0} s", wait.as_secs_f64()));
        hooks.due_now(id).await;
    }
    assert_eq!(hooks.ended(id).await.delivery.try_count, 8);
    assert_eq!(receiver.count(), 8);
    let webhook = hooks.endpoint(monitor).await.unwrap();
    assert!(
        webhook.failing_since.is_some() && webhook.off_at.is_none(),
        "one failed delivery does not switch the webhook off"
    );
    deliverer.stop().await;
    println!("next tries after {}", events.join(", "));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_after_delays_the_next_try() {
    let hooks = WebhookTest::open().await;
    let (receiver, monitor) = hooks.receiver("busy.test").await;
    receiver.reply(Reply::status(429).header("retry-after", "900"));
    let id = hooks.enqueue(monitor).await;
    let deliverer = hooks.deliverer();
    let seen = hooks.tried(id, 1).await;
    let wait = seen
        .delivery
        .next_try_at
        .unwrap()
        .duration_since(seen.tries[0].ended_at.unwrap())
        .as_secs();
    assert!((899..=905).contains(&wait), "{wait}");
    deliverer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_stored_part_of_a_response_is_read() {
    let hooks = WebhookTest::open().await;
    let (receiver, monitor) = hooks.receiver("talks.test").await;
    receiver.reply(Reply::huge());
    let id = hooks.enqueue(monitor).await;
    let deliverer = hooks.deliverer();
    let seen = hooks.ended(id).await;
    assert_eq!(seen.delivery.status, DeliveryStatus::Delivered);
    assert_eq!(seen.tries[0].response.as_ref().unwrap().len(), 1024);
    deliverer.stop().await;
}
