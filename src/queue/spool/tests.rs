//! Whatever happens to a file, what was whole in it comes back.

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
use crate::queue::finished::Finished;
use crate::queue::store::Claimed;
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

/// Takes everything out, as a drain does.
fn drained(spool: &mut Spool) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    while let Some(chunk) = spool.read().unwrap() {
        all.extend(chunk.payloads().to_vec());
        spool.take(&chunk).unwrap();
    }
    all
}

/// The only file with this ending.
fn file(folder: &TempDir, ending: &str) -> PathBuf {
    let entries = std::fs::read_dir(folder.path().join("spool")).unwrap();
    let mut found: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == ending))
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
fn processes_that_start_at_the_same_time_do_not_take_each_others_files() {
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
fn what_goes_in_comes_out_in_its_order_and_nothing_is_left() {
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
fn what_is_read_stays_until_it_is_taken() {
    let folder = TempDir::new().unwrap();
    let mut spool = spool(&folder);
    spool.append(&[payload(1)]).unwrap();
    let chunk = spool.read().unwrap().unwrap();
    spool.append(&[payload(2)]).unwrap();
    assert!(!spool.take(&chunk).unwrap(), "the second is not stored");
    assert_eq!(drained(&mut spool), [payload(2)]);
}

#[test]
fn files_and_folder_are_for_their_user_alone() {
    let folder = TempDir::new().unwrap();
    let mut spool = spool(&folder);
    spool.append(&[payload(1)]).unwrap();
    let aside = spool.set_aside(&payload(9)).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder.path().join("spool")), 0o700);
    assert_eq!(
        (mode(&file(&folder, "spool")), mode(&aside)),
        (0o600, 0o600)
    );
}

#[test]
fn a_dead_process_is_inherited_once_and_a_live_one_is_not() {
    let folder = TempDir::new().unwrap();
    let (mut dead, mut alive, mut heir) = (spool(&folder), spool(&folder), spool(&folder));
    dead.append(&[payload(1), payload(2)]).unwrap();
    alive.append(&[payload(3)]).unwrap();
    assert_eq!(heir.adopt().unwrap(), 0, "both live");
    drop(dead);
    heir.append(&[payload(4)]).unwrap();
    assert_eq!(
        (
            heir.adopt().unwrap(),
            alive.adopt().unwrap(),
            heir.adopt().unwrap()
        ),
        (1, 0, 0)
    );
    assert_eq!(
        drained(&mut heir),
        [payload(1), payload(2), payload(4)],
        "the oldest first"
    );
    assert_eq!(drained(&mut alive), [payload(3)]);
    assert_eq!(files(&folder), 0);
}

#[test]
fn an_heir_that_dies_halfway_leaves_everything_to_the_next() {
    let folder = TempDir::new().unwrap();
    let mut dead = spool(&folder);
    dead.append(&(0..250).map(payload).collect::<Vec<_>>())
        .unwrap();
    drop(dead);
    let mut heir = spool(&folder);
    heir.adopt().unwrap();
    let chunk = heir.read().unwrap().unwrap();
    assert_eq!(chunk.payloads().len(), 100);
    heir.take(&chunk).unwrap();
    drop(heir);
    let mut next = spool(&folder);
    next.adopt().unwrap();
    assert_eq!(
        drained(&mut next),
        (0..250).map(payload).collect::<Vec<_>>()
    );
}

#[test]
fn it_is_full_at_its_bound_and_asks_for_no_more_at_four_fifths() {
    let folder = TempDir::new().unwrap();
    let mut spool = spool(&folder);
    let tenth = vec![7; usize::try_from(MIB / 10).unwrap() - 10];
    for tenths in 1..=9 {
        spool.append(std::slice::from_ref(&tenth)).unwrap();
        assert_eq!(spool.has_room(), tenths < 8, "{tenths}");
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
        "what did not fit is not there in part"
    );
    assert!(spool.has_room());
}

#[test]
fn what_no_record_can_hold_is_refused() {
    let folder = TempDir::new().unwrap();
    let mut spool = Spool::open(folder.path().join("spool"), 64 * MIB).unwrap();
    assert_eq!(
        spool
            .append(&[vec![0; frame::LONGEST + 1]])
            .unwrap_err()
            .kind(),
        io::ErrorKind::InvalidInput
    );
    spool.append(&[vec![0; frame::LONGEST]]).unwrap();
    assert_eq!(drained(&mut spool).len(), 1);
}

#[test]
fn a_file_of_another_version_is_left_alone_and_a_draft_is_removed() {
    let folder = TempDir::new().unwrap();
    let mut spool = spool(&folder);
    let theirs = folder.path().join("spool/0192.spool");
    std::fs::write(&theirs, "farescan spool 2 and more").unwrap();
    std::fs::write(folder.path().join("spool/0193.new"), "").unwrap();
    assert_eq!((spool.adopt().unwrap(), files(&folder)), (0, 1));
    assert!(theirs.exists());
}

#[test]
fn a_folder_that_cannot_be_made_names_the_setting() {
    let folder = TempDir::new().unwrap();
    let occupied = folder.path().join("file");
    std::fs::write(&occupied, "").unwrap();
    let error = make_folder(&occupied.join("spool"))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("FARESCAN_SPOOL_DIR") && error.contains("file/spool"),
        "{error}"
    );
}

#[test]
fn of_what_does_not_fit_the_first_are_kept() {
    let folder = TempDir::new().unwrap();
    let mut spool = spool(&folder);
    let third = vec![7; usize::try_from(MIB / 3).unwrap() - 100];
    let (count, ended) =
        spool.append_most(&[third.clone(), third.clone(), third.clone(), third.clone()]);
    assert_eq!(
        (count, ended.unwrap_err().kind()),
        (3, io::ErrorKind::QuotaExceeded)
    );
    assert_eq!(drained(&mut spool).len(), 3);
}

#[test]
fn a_finished_call_comes_back_as_it_was() {
    let body = json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2030-01-14", "currency": "EUR"});
    let body = body.as_object().unwrap().clone();
    let claimed = Claimed {
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
        grant: None,
    };
    let search = Search::of_item(
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
        let before = Finished::of(&claimed, &search, &outcome, now)
            .keeping(&outcome, &CallerKey::new("key"));
        let before = before.of_attempt(AttemptId::new());
        let after = entry::read(&entry::write(&before, &claimed).unwrap()).unwrap();
        assert_eq!(after.call, before.call);
        assert!(before.kept.is_some());
        assert_eq!(
            (after.lane, &after.answer, &after.kept, &after.best),
            (before.lane, &before.answer, &before.kept, &before.best)
        );
        assert_eq!(after.observation, before.observation);
        assert_eq!(
            (after.plan, after.call.attempt_id.is_some()),
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

/// A file of a dead process that holds these payloads, as bytes, and where each record ends.
fn written(payloads: &[Vec<u8>]) -> (Vec<u8>, Vec<usize>) {
    let folder = TempDir::new().unwrap();
    let mut spool = spool(&folder);
    let mut ends = Vec::new();
    for payload in payloads {
        spool.append(std::slice::from_ref(payload)).unwrap();
        ends.push(usize::try_from(spool.size()).unwrap());
    }
    (std::fs::read(file(&folder, "spool")).unwrap(), ends)
}

/// What an heir finds in such a file.
fn found(bytes: &[u8]) -> (Vec<Vec<u8>>, TempDir) {
    let folder = TempDir::new().unwrap();
    let mut heir = spool(&folder);
    std::fs::write(folder.path().join("spool/0192.spool"), bytes).unwrap();
    heir.adopt().unwrap();
    (drained(&mut heir), folder)
}

fn payloads() -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn cut_at_any_byte_it_gives_back_the_whole_records_before_the_cut(payloads in payloads(), at in any::<prop::sample::Index>()) {
        let (bytes, ends) = written(&payloads);
        let cut = MAGIC.len() + at.index(bytes.len() + 1 - MAGIC.len());
        let whole = ends.iter().filter(|end| **end <= cut).count();
        let (found, folder) = found(&bytes[..cut]);
        prop_assert_eq!(&found, &payloads[..whole]);
        prop_assert_eq!(files(&folder), 0, "a torn end is no damage");
    }

    #[test]
    fn a_flipped_byte_is_found_and_costs_one_record_or_what_is_behind_it(
        payloads in payloads(), at in any::<prop::sample::Index>(), flip in 1_u8..,
    ) {
        let (mut bytes, ends) = written(&payloads);
        let front = MAGIC.len();
        let at = front + at.index(bytes.len() - front);
        bytes[at] ^= flip;
        let hit = ends.iter().position(|end| at < *end).unwrap();
        let begin = if hit == 0 { front } else { ends[hit - 1] };
        let expected: Vec<_> = if at < begin + frame::HEAD {
            payloads[..hit].to_vec()
        } else {
            payloads.iter().enumerate().filter(|(place, _)| *place != hit).map(|(_, payload)| payload.clone()).collect()
        };
        let (found, folder) = found(&bytes);
        prop_assert_eq!(found, expected);
        prop_assert!(file(&folder, "damaged").exists(), "what could not be read is kept");
    }
}
