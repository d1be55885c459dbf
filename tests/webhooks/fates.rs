//! What becomes of a delivery, case by case.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use farescan::contract::webhooks::{DeliveryDetail, DeliveryStatus, TryError};
use farescan::webhooks::schedule::DELAYS;

use super::post::{Post, address};
use crate::support::reply::Reply;
use crate::support::upstream::Upstream;

/// What a try came to, in a word.
fn word(detail: &DeliveryDetail, number: u32) -> String {
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

/// All tries in their order, runs of equal ones counted.
fn words(detail: &DeliveryDetail) -> String {
    let mut words: Vec<(String, usize)> = Vec::new();
    for number in 1..=detail.delivery.try_count {
        let word = word(detail, number);
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

/// Tries until it has ended, each next try as if its time had come.
async fn through(post: &Post, id: farescan::ids::DeliveryId) -> DeliveryDetail {
    for number in 1..=8 {
        let seen = post.tried(id, number).await;
        if seen.delivery.status != DeliveryStatus::Pending {
            return seen;
        }
        post.due_now(id).await;
    }
    post.ended(id).await
}

/// A name, where it leads, and what its receiver does.
struct Case {
    what: &'static str,
    leads: &'static [&'static [Place]],
    replies: Vec<Reply>,
    fate: &'static str,
}

#[derive(Clone, Copy)]
enum Place {
    /// The receiver.
    Own,
    /// Where something listens that must not be reached.
    Trap,
    /// An address of a private network.
    Private,
    /// A port where nobody listens.
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
            "takes it, and its answer's body never ends",
            OWN,
            vec![Reply::text("half of it").stalled_body()],
            "delivered after 200",
        ),
        case(
            "fails twice, then takes it",
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
            "hangs, then takes it",
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
            vec![Reply::noise(), Reply::status(200)],
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
            "resolves to another of this machine",
            &[&[Place::Trap]],
            vec![],
            "failed (tries_spent) after 8 × unresolved",
        ),
        case(
            "resolves to a good one and a private one",
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
async fn every_delivery_has_the_fate_that_was_promised() {
    let post = Post::open().await;
    let trap = Upstream::start_at("127.0.0.2:0").await;
    let deliverer = post.deliverer();
    let mut table = String::new();
    for (number, case) in cases().into_iter().enumerate() {
        let name = format!("case{number}.test");
        let receiver = Upstream::start().await;
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
        post.names
            .lead(&name, &leads.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let to_trap = format!("{}/private", trap.url());
        let replies = case
            .replies
            .into_iter()
            .map(|reply| reply.header("location", &to_trap))
            .collect::<Vec<_>>();
        if !replies.is_empty() {
            receiver.on_any().replies(replies);
        }
        let (monitor, secret) = post
            .webhook(&format!("http://{name}/hook?token=hunter2"))
            .await;
        let id = post.enqueue(monitor).await;
        let seen = through(&post, id).await;
        let reason = seen
            .delivery
            .reason
            .map_or(String::new(), |reason| format!(" ({reason})"));
        let off = post
            .endpoint(monitor)
            .await
            .unwrap()
            .off_reason
            .map_or(String::new(), |why| format!("; switched off ({why})"));
        let fate = format!(
            "{}{reason} after {}{off}",
            seen.delivery.status,
            words(&seen)
        );
        assert_eq!(fate, case.fate, "{}: {seen:#?}", case.what);
        for call in receiver.calls() {
            assert!(
                super::post::is_signed(&call, &secret),
                "{}: {call:#?}",
                case.what
            );
            assert_eq!(
                (call.header("webhook-id"), call.header("content-type")),
                (id.to_string().as_str(), "application/json")
            );
            assert_eq!(call.path, "/hook?token=hunter2");
        }
        // A name is looked up once a try: there is no second look that could see something else.
        assert_eq!(post.names.asked(&name), seen.tries.len(), "{}", case.what);
        writeln!(table, "{:50} {fate}", case.what).unwrap();
    }
    assert_eq!(
        trap.count(),
        0,
        "what must not be reached was reached: {:#?}",
        trap.calls()
    );
    deliverer.stop().await;
    println!("{table}");
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_are_tried_again_at_the_promised_times() {
    let post = Post::open().await;
    let (receiver, monitor) = post.receiver("fails.test").await;
    receiver
        .on_any()
        .reply(Reply::status(500).body("no\u{1b}[31m way\0"));
    let id = post.enqueue(monitor).await;
    let deliverer = post.deliverer();
    let mut told = Vec::new();
    for (number, delay) in (1..).zip(DELAYS) {
        let seen = post.tried(id, number).await;
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
            Some("no [31m way "),
            "what was answered is kept as text that does nothing"
        );
        told.push(format!("{:.0} s", wait.as_secs_f64()));
        post.due_now(id).await;
    }
    assert_eq!(post.ended(id).await.delivery.try_count, 8);
    assert_eq!(receiver.count(), 8);
    let webhook = post.endpoint(monitor).await.unwrap();
    assert!(
        webhook.failing_since.is_some() && webhook.off_at.is_none(),
        "one delivery that failed does not switch it off"
    );
    deliverer.stop().await;
    println!("next tries after {}", told.join(", "));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_asks_for_time_gets_it() {
    let post = Post::open().await;
    let (receiver, monitor) = post.receiver("busy.test").await;
    receiver
        .on_any()
        .reply(Reply::status(429).header("retry-after", "900"));
    let id = post.enqueue(monitor).await;
    let deliverer = post.deliverer();
    let seen = post.tried(id, 1).await;
    let wait = seen
        .delivery
        .next_try_at
        .unwrap()
        .duration_since(seen.tries[0].ended_at.unwrap())
        .as_secs();
    assert!((899..=905).contains(&wait), "{wait}");
    deliverer.stop().await;
}

/// Evidence is bounded, whatever comes.
#[tokio::test(flavor = "multi_thread")]
async fn no_more_of_an_answer_is_read_than_is_kept() {
    let post = Post::open().await;
    let (receiver, monitor) = post.receiver("talks.test").await;
    receiver.on_any().reply(Reply::huge());
    let id = post.enqueue(monitor).await;
    let deliverer = post.deliverer();
    let seen = post.ended(id).await;
    assert_eq!(seen.delivery.status, DeliveryStatus::Delivered);
    assert_eq!(seen.tries[0].response.as_ref().unwrap().len(), 1024);
    deliverer.stop().await;
}
