//! The spool returns every whole record, whatever happens to its file.

use std::os::unix::fs::PermissionsExt as _;

use bytes::Bytes;
use jiff::SignedDuration;
use proptest::prelude::*;
use serde_json::json;
use tempfile::TempDir;

use super::frame::MAGIC;
use super::*;
use crate::contract::{Api, Endpoint, Request, SearchStatus};
use crate::ids::{AttemptId, ItemId, ScanId, TenantId};
use crate::queue::completed_call::CompletedCall;
use crate::queue::store::ClaimRow;
use crate::queue::{Claim, WorkerId};
use crate::search::{
    Answer, CallerKey, Finding, Incomplete, Outcome, PlanQuota, RateLimit, Search,
};

const MIB: u64 = 1024 * 1024;

fn spool(folder: &TempDir) -> Spool {
    Spool::open(folder.path().join("spool"), MIB).unwrap()
}

fn payload(number: u8) -> Vec<u8> {
    vec![number; usize::from(number) + 1]
}

/// Reads and removes all payloads.
fn drained(spool: &mut Spool) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    while let Some(chunk) = spool.read().unwrap() {
        all.extend(chunk.payloads().to_vec());
        spool.remove_chunk(&chunk).unwrap();
    }
    all
}

/// The only file with this extension.
fn only_file(folder: &TempDir, extension: &str) -> PathBuf {
    let entries = std::fs::read_dir(folder.path().join("spool")).unwrap();
    let mut found: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == extension))
        .collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

fn files(folder: &TempDir) -> usize {
    std::fs::read_dir(folder.path().join("spool"))
        .unwrap()
        .count()
}

#[test]
fn concurrent_processes_do_not_adopt_each_others_files() {
    let folder = TempDir::new().unwrap();
    std::thread::scope(|scope| {
        for number in 0..4_u8 {
            let folder = &folder;
            scope.spawn(move || {
                for _ in 0..50 {
                    let mut spool = spool(folder);
                    spool.append(&[payload(number)]).unwrap();
                    spool.adopt().unwrap();
                    drained(&mut spool);
                }
            });
        }
    });
    assert_eq!(files(&folder), 0);
}

#[test]
fn payloads_are_read_in_order_and_the_file_is_removed() {
    let folder = TempDir::new().unwrap();
    let mut spool = spool(&folder);
    assert!(spool.read().unwrap().is_none());
    spool.append(&[payload(1), payload(2)]).unwrap();
    spool.append(&[payload(0)]).unwrap();
    assert_eq!(drained(&mut spool), [payload(1), payload(2), payload(0)]);
    assert_eq!(files(&folder), 0, "a drained file is removed");
    spool.append(&[payload(3)]).unwrap();
    assert_eq!(drained(&mut spool), [payload(3)]);
}

#[test]
fn a_read_payload_stays_until_it_is_removed() {
    let folder = TempDir::new().unwrap();
    let mut spool = spool(&folder);
    spool.append(&[payload(1)]).unwrap();
    let chunk = spool.read().unwrap().unwrap();
    spool.append(&[payload(2)]).unwrap();
    assert!(
        !spool.remove_chunk(&chunk).unwrap(),
        "the second is not stored"
    );
    assert_eq!(drained(&mut spool), [payload(2)]);
}

#[test]
fn only_the_user_may_access_the_folder_and_its_files() {
    let folder = TempDir::new().unwrap();
    let mut spool = spool(&folder);
    spool.append(&[payload(1)]).unwrap();
    let quarantined = spool.quarantine(&payload(9)).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder.path().join("spool")), 0o700);
    assert_eq!(
        (mode(&only_file(&folder, "spool")), mode(&quarantined)),
        (0o600, 0o600)
    );
}

#[test]
fn the_file_of_a_dead_process_is_adopted_once() {
    let folder = TempDir::new().unwrap();
    let (mut dead, mut alive, mut successor) = (spool(&folder), spool(&folder), spool(&folder));
    dead.append(&[payload(1), payload(2)]).unwrap();
    alive.append(&[payload(3)]).unwrap();
    assert_eq!(successor.adopt().unwrap(), 0, "both live");
    drop(dead);
    successor.append(&[payload(4)]).unwrap();
    assert_eq!(
        (
            successor.adopt().unwrap(),
            alive.adopt().unwrap(),
            successor.adopt().unwrap()
        ),
        (1, 0, 0)
    );
    assert_eq!(
        drained(&mut successor),
        [payload(1), payload(2), payload(4)],
        "the oldest first"
    );
    assert_eq!(drained(&mut alive), [payload(3)]);
    assert_eq!(files(&folder), 0);
}

#[test]
fn an_adopted_file_can_be_adopted_again() {
    let folder = TempDir::new().unwrap();
    let mut dead = spool(&folder);
    dead.append(&(0..250).map(payload).collect::<Vec<_>>())
        .unwrap();
    drop(dead);
    let mut successor = spool(&folder);
    successor.adopt().unwrap();
    let chunk = successor.read().unwrap().unwrap();
    assert_eq!(chunk.payloads().len(), 100);
    successor.remove_chunk(&chunk).unwrap();
    drop(successor);
    let mut next = spool(&folder);
    next.adopt().unwrap();
    assert_eq!(
        drained(&mut next),
        (0..250).map(payload).collect::<Vec<_>>()
    );
}

#[test]
fn new_calls_stop_at_four_fifths_and_appends_fail_when_full() {
    let folder = TempDir::new().unwrap();
    let mut spool = spool(&folder);
    let tenth = vec![7; usize::try_from(MIB / 10).unwrap() - 10];
    for tenths in 1..=9 {
        spool.append(std::slice::from_ref(&tenth)).unwrap();
        assert_eq!(spool.has_capacity(), tenths < 8, "{tenths}");
    }
    assert_eq!(
        spool
            .append(&[tenth.clone(), tenth.clone()])
            .unwrap_err()
            .kind(),
        io::ErrorKind::QuotaExceeded
    );
    assert_eq!(
        drained(&mut spool).len(),
        9,
        "an append that fails leaves nothing"
    );
    assert!(spool.has_capacity());
}

#[test]
fn a_payload_longer_than_the_maximum_is_rejected() {
    let folder = TempDir::new().unwrap();
    let mut spool = Spool::open(folder.path().join("spool"), 64 * MIB).unwrap();
    assert_eq!(
        spool
            .append(&[vec![0; frame::MAX_PAYLOAD + 1]])
            .unwrap_err()
            .kind(),
        io::ErrorKind::InvalidInput
    );
    spool.append(&[vec![0; frame::MAX_PAYLOAD]]).unwrap();
    assert_eq!(drained(&mut spool).len(), 1);
}

#[test]
fn files_of_other_versions_stay_and_drafts_are_removed() {
    let folder = TempDir::new().unwrap();
    let mut spool = spool(&folder);
    let theirs = folder.path().join("spool/0192.spool");
    std::fs::write(&theirs, "farescan spool 2 and more").unwrap();
    std::fs::write(folder.path().join("spool/0193.new"), "").unwrap();
    assert_eq!((spool.adopt().unwrap(), files(&folder)), (0, 1));
    assert!(theirs.exists());
}

#[test]
fn a_folder_error_names_the_setting() {
    let folder = TempDir::new().unwrap();
    let occupied = folder.path().join("file");
    std::fs::write(&occupied, "").unwrap();
    let error = create_folder(&occupied.join("spool"))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("FARESCAN_SPOOL_DIR") && error.contains("file/spool"),
        "{error}"
    );
}

#[test]
fn the_payloads_that_fit_are_appended() {
    let folder = TempDir::new().unwrap();
    let mut spool = spool(&folder);
    let third = vec![7; usize::try_from(MIB / 3).unwrap() - 100];
    let (count, ended) =
        spool.append_as_many_as_fit(&[third.clone(), third.clone(), third.clone(), third.clone()]);
    assert_eq!(
        (count, ended.unwrap_err().kind()),
        (3, io::ErrorKind::QuotaExceeded)
    );
    assert_eq!(drained(&mut spool).len(), 3);
}

#[test]
fn a_completed_call_survives_the_round_trip() {
    let body = json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2030-01-14", "currency": "EUR"});
    let body = body.as_object().unwrap().clone();
    let claim_row = ClaimRow {
        claim: Claim {
            worker: WorkerId(7),
            tenant: TenantId::new(),
            item: ItemId::new(),
            number: 3,
        },
        lane: Api::Flights,
        scan: ScanId::new(),
        endpoint: "flights/oneway".to_owned(),
        body: body.clone(),
        upstream_filters: false,
        upstream_limit: None,
        verbatim: false,
        shares: false,
        grant: None,
    };
    let search = Search::for_item(
        Request::check(Endpoint::FlightsOneway, &body)
            .unwrap()
            .request,
        50,
        false,
    );
    let row = json!({"airline": "Example Air", "price_as_number": 120.55, "buy_link": "https://x.example/?curr=EUR",
                     "price_insights_low": 100.1, "price_insights_high": 200, "stops": 1});
    let answer = Answer {
        body: json!([row]).into(),
        results: 1,
        stated: Some(SearchStatus::Ok),
        reason: Some("why".to_owned()),
    };
    let outcome = |finding| Outcome {
        finding,
        http_status: Some(200),
        search_headers: vec![("x-search-status".to_owned(), "ok".to_owned())],
        plan_headers: Vec::new(),
        plan: PlanQuota {
            limit: Some(5_000),
            remaining: Some(7),
            reset_seconds: Some(600),
            window: None,
        },
        billed_requests: 2,
        latency: std::time::Duration::from_millis(1_600),
    };
    let now = jiff::Timestamp::now();
    let limit = RateLimit {
        body: Bytes::new(),
        content_type: None,
        retry_after: Some("30".to_owned()),
    };
    for finding in [
        Finding::Answer(answer),
        Finding::Incomplete(Incomplete::Timeout),
        Finding::RateLimited(limit),
        Finding::Refused {
            message: "no".to_owned(),
        },
    ] {
        let outcome = outcome(finding);
        let before = CompletedCall::new(&claim_row, &search, &outcome, now)
            .with_outcome(&outcome.to_stored(&CallerKey::new("key")));
        let before = before.with_attempt(AttemptId::new());
        let after = entry::read(&entry::write(&before, &claim_row).unwrap()).unwrap();
        assert_eq!(after.record, before.record);
        assert!(before.stored_outcome.is_some());
        assert_eq!(
            (
                after.lane,
                &after.answer,
                &after.stored_outcome,
                &after.best
            ),
            (
                before.lane,
                &before.answer,
                &before.stored_outcome,
                &before.best
            )
        );
        assert_eq!(after.observation, before.observation);
        assert_eq!(
            (after.plan, after.record.attempt_id.is_some()),
            (outcome.plan, true)
        );
        assert_eq!(
            after
                .aged(now + SignedDuration::from_secs(60))
                .plan
                .reset_seconds,
            Some(540)
        );
    }
}

/// The bytes of a dead process's file with these payloads, and the end of each record.
fn written(payloads: &[Vec<u8>]) -> (Vec<u8>, Vec<usize>) {
    let folder = TempDir::new().unwrap();
    let mut spool = spool(&folder);
    let mut ends = Vec::new();
    for payload in payloads {
        spool.append(std::slice::from_ref(payload)).unwrap();
        ends.push(usize::try_from(spool.size()).unwrap());
    }
    (std::fs::read(only_file(&folder, "spool")).unwrap(), ends)
}

/// What a later process reads from such a file.
fn found(bytes: &[u8]) -> (Vec<Vec<u8>>, TempDir) {
    let folder = TempDir::new().unwrap();
    let mut successor = spool(&folder);
    std::fs::write(folder.path().join("spool/0192.spool"), bytes).unwrap();
    successor.adopt().unwrap();
    (drained(&mut successor), folder)
}

fn payloads() -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_truncated_file_returns_its_whole_records(payloads in payloads(), at in any::<prop::sample::Index>()) {
        let (bytes, ends) = written(&payloads);
        let cut = MAGIC.len() + at.index(bytes.len() + 1 - MAGIC.len());
        let whole = ends.iter().filter(|end| **end <= cut).count();
        let (found, folder) = found(&bytes[..cut]);
        prop_assert_eq!(&found, &payloads[..whole]);
        prop_assert_eq!(files(&folder), 0, "a torn end is not damage");
    }

    #[test]
    fn a_damaged_byte_loses_one_record_or_those_after_it(
        payloads in payloads(), at in any::<prop::sample::Index>(), flip in 1_u8..,
    ) {
        let (mut bytes, ends) = written(&payloads);
        let front = MAGIC.len();
        let at = front + at.index(bytes.len() - front);
        bytes[at] ^= flip;
        let hit = ends.iter().position(|end| at < *end).unwrap();
        let begin = if hit == 0 { front } else { ends[hit - 1] };
        let expected: Vec<_> = if at < begin + frame::HEADER_LEN {
            payloads[..hit].to_vec()
        } else {
            payloads.iter().enumerate().filter(|(position, _)| *position != hit).map(|(_, payload)| payload.clone()).collect()
        };
        let (found, folder) = found(&bytes);
        prop_assert_eq!(found, expected);
        prop_assert!(only_file(&folder, "damaged").exists(), "the damaged file is kept");
    }
}
