//! A call that was made before the answer that is to be confirmed.

use farescan::queue::abandon::abandon_with_lock_timeout;
use farescan::queue::store::LaneClaims;
use serde_json::json;

use super::{AlertTest, MOMENT, answer, below, dates, judged};
use crate::support::{SearchOutcome, TestService};

/// Its answer comes while the item, which has taken a stored answer meanwhile, waits for its second
/// search.
#[tokio::test(flavor = "multi_thread")]
async fn the_late_answer_of_an_earlier_call_confirms_nothing() {
    let service = TestService::start().await;
    service.accept_key_by_steps().await;
    let mut body = dates(1, &below(200));
    body["scan"]["max_age_seconds"] = json!(3_600);
    let equal = body["scan"].clone();
    body["scan"]["retry"] = json!({"max_attempts": 2, "delay_seconds": 600});
    let id = service.create_monitor(&body).await;
    let slot = service.next_slot(&id).await;
    service.tick(slot).await;
    let lost = service.claim().await.remove(0);
    service.begin(&lost).await;
    let lane = LaneClaims {
        tenant: lost.claim.tenant,
        api: "flights".to_owned(),
        items: vec![lost.claim.item.uuid()],
        numbers: vec![lost.claim.number],
    };
    abandon_with_lock_timeout(service.pool(), &lane)
        .await
        .unwrap();

    let worker = service.start_worker(8);
    let test = AlertTest { service, worker };
    test.respond_with(|asked| answer(150, asked));
    test.submit(&equal).await;
    test.all_ended().await;
    let AlertTest { service, worker } = test;
    worker.stop().await;
    service.tick(slot + MOMENT).await;
    let open = "select count(*) from scan_items where state = 'pending' and earlier is not null";
    assert_eq!(service.count(open).await, 1, "it is to be confirmed");
    let before = service.upstream.count();
    service.finish(&lost, SearchOutcome::Ok(150)).await;

    let worker = service.start_worker(8);
    let test = AlertTest { service, worker };
    test.respond_with(|asked| answer(300, asked));
    let slot = test.second_half(&id, slot).await;
    assert_eq!(judged(&slot), [&json!(0), &json!(0)], "{slot}");
    let scan = test.scan(slot["scan_id"].as_str().unwrap()).await;
    assert_eq!(scan["best"]["price"], 300);
    assert_eq!(test.upstream.count() - before, 1, "it is searched");
    test.close().await;
}
