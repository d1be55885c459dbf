//! Real processes that are killed or stopped during a delivery.

use std::time::Duration;

use farescan::contract::webhooks::{DeliveryDetail, DeliveryStatus};
use farescan::ids::{DeliveryId, TenantId};
use farescan::webhooks::read;
use rustix::process::Signal;

use super::harness::{enqueue, is_signed, webhook_under};
use crate::faults::process::FarescanProcess;
use crate::support::app::{KEY, tenant};
use crate::support::reply::{Gate, Reply};
use crate::support::upstream::ScriptedServer;
use crate::worker::fixture::WorkerFixture;

const OPEN: [(&str, &str); 2] = [
    ("FARESCAN_WEBHOOKS_ALLOW_INSECURE", "true"),
    ("FARESCAN_LOG", "trace"),
];

async fn when(
    fixture: &WorkerFixture,
    tenant: TenantId,
    id: DeliveryId,
    what: &str,
    so: impl Fn(&DeliveryDetail) -> bool,
) -> DeliveryDetail {
    let end = tokio::time::Instant::now() + Duration::from_secs(300);
    loop {
        let seen = read::detail(fixture.pool(), tenant, id)
            .await
            .unwrap()
            .unwrap();
        if so(&seen) {
            return seen;
        }
        assert!(
            tokio::time::Instant::now() < end,
            "timed out waiting until {what}: {seen:#?}"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn is_delivered(seen: &DeliveryDetail) -> bool {
    seen.delivery.status == DeliveryStatus::Delivered
}

fn errors(seen: &DeliveryDetail) -> Vec<Option<&'static str>> {
    seen.tries
        .iter()
        .rev()
        .map(|tried| tried.error.map(|error| error.as_str()))
        .collect()
}

/// The logs of all processes.
fn logs(fixture: &WorkerFixture) -> String {
    let files = std::fs::read_dir(fixture.spool.path())
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let logs = files.filter(|path| path.extension().is_some_and(|extension| extension == "log"));
    logs.map(|path| std::fs::read_to_string(path).unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_killed_during_deliveries_loses_none() {
    let fixture = WorkerFixture::new().await;
    let tenant = tenant(fixture.pool(), &fixture.ring, KEY).await;
    let receiver = ScriptedServer::start().await;
    let gate = Gate::closed();
    receiver.reply(Reply::status(200).gated_by(&gate));
    let mut sent = Vec::new();
    for number in 0..4 {
        let url = format!("{}/hook/{number}?token=hunter2", receiver.url());
        let (monitor, secret) = webhook_under(&fixture.ring, fixture.pool(), tenant, &url).await;
        sent.push((
            enqueue(fixture.pool(), tenant, monitor).await,
            secret.clone(),
        ));
        sent.push((enqueue(fixture.pool(), tenant, monitor).await, secret));
    }
    let killed = FarescanProcess::start_worker(&fixture, 1, &OPEN);
    // As many as one caller has at one host.
    receiver.wait_for_in_flight(2).await;
    killed.kill();
    let died = tokio::time::Instant::now();
    let next = FarescanProcess::start_worker(&fixture, 1, &OPEN);
    gate.open();
    let mut lost = 0;
    for (id, _) in &sent {
        let seen = when(&fixture, tenant, *id, "it is delivered", is_delivered).await;
        assert!(
            matches!(errors(&seen)[..], [None] | [Some("worker_lost"), None]),
            "{seen:#?}"
        );
        lost += seen.tries.len() - 1;
    }
    let took = died.elapsed();
    next.signal(Signal::TERM);
    assert!(next.wait_for_exit().await.success());
    assert_eq!(
        (lost, receiver.count()),
        (2, 10),
        "only the two in flight were sent once more"
    );
    for call in receiver.calls() {
        let secret = &sent
            .iter()
            .find(|(id, _)| call.header("webhook-id") == id.to_string())
            .unwrap()
            .1;
        assert!(is_signed(&call, secret), "{call:#?}");
    }
    let logs = logs(&fixture);
    assert!(
        logs.contains("webhook delivery tried") && logs.len() > 10_000,
        "logs at trace"
    );
    for (_, secret) in &sent {
        assert!(
            !logs.contains(&secret[6..]) && !logs.contains("hunter2"),
            "a secret or a URL is in the logs"
        );
    }
    println!(
        "4 of 8 deliveries in flight at kill -9, 8 delivered, all within {:.0} s of it",
        took.as_secs_f64()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_process_does_not_overwrite_a_later_result() {
    let fixture = WorkerFixture::new().await;
    let tenant = tenant(fixture.pool(), &fixture.ring, KEY).await;
    let receiver = ScriptedServer::start().await;
    receiver.replies([Reply::hang(), Reply::status(200)]);
    let (monitor, _) = webhook_under(
        &fixture.ring,
        fixture.pool(),
        tenant,
        &format!("{}/", receiver.url()),
    )
    .await;
    let stopped = FarescanProcess::start_worker(&fixture, 1, &OPEN);
    stopped.wait_for_log("listening").await;
    let id = enqueue(fixture.pool(), tenant, monitor).await;
    receiver.wait_for_in_flight(1).await;
    stopped.signal(Signal::STOP);
    let alive = FarescanProcess::start_worker(&fixture, 1, &OPEN);
    let seen = when(&fixture, tenant, id, "the other delivers it", is_delivered).await;
    assert_eq!(errors(&seen), [Some("worker_lost"), None]);
    stopped.signal(Signal::CONT);
    stopped
        .wait_for_log("result arrived after its lease expired")
        .await;
    let late = read::detail(fixture.pool(), tenant, id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        late.delivery, seen.delivery,
        "the late failure has no effect"
    );
    assert_eq!(errors(&late), [Some("timeout"), None]);
    // Both processes continue.
    for _ in 0..4 {
        let id = enqueue(fixture.pool(), tenant, monitor).await;
        when(&fixture, tenant, id, "it is delivered", is_delivered).await;
    }
    assert_eq!(receiver.count(), 6);
    stopped.kill();
    alive.kill();
}
