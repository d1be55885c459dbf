//! The pace of two processes on one lane, measured by the marketplace's ledger.

use std::collections::HashMap;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::process::FarescanProcess;
use crate::worker::fixture::WorkerFixture;

/// The largest excess of any window over burst and rate, with `late` seconds added to each window.
fn max_excess(times: &[f64], per_minute: f64, burst: f64, late: f64) -> f64 {
    let over = |first: usize, last: usize| {
        let seen = f64::from(u32::try_from(last - first + 1).unwrap());
        seen - burst - (times[last] - times[first] + late) * per_minute / 60.0
    };
    let windows =
        (0..times.len()).flat_map(|first| (first..times.len()).map(move |last| (first, last)));
    windows
        .map(|(first, last)| over(first, last))
        .fold(f64::MIN, f64::max)
}

/// A lane at 1,800 calls a minute for 3 s; with `FARESCAN_SOAK=1` at 150 a minute for 30 s.
///
/// The claims must match the pace exactly. A call reaches the marketplace some time after its
/// claim, so the ledger's windows may exceed it by the longest such delay of this run.
#[tokio::test(flavor = "multi_thread")]
async fn two_processes_share_one_pace_in_every_window() {
    let soak = std::env::var_os("FARESCAN_SOAK").is_some();
    let (per_minute, burst, seconds, due) = if soak {
        (150, 5.0, 30.0, 80)
    } else {
        (1_800, 60.0, 3.0, 150)
    };
    let rate = f64::from(per_minute);
    let mut fixture = WorkerFixture::new().await;
    fixture.pace.flights_per_minute = per_minute;
    fixture.upstream.answer_fares(120);
    let processes = [
        FarescanProcess::start(&fixture, 32),
        FarescanProcess::start(&fixture, 32),
    ];
    fixture.submit(340, &json!({})).await;
    let began = Instant::now();
    // The lane's pace bounds how soon this many calls can arrive.
    while fixture.upstream.count() < due {
        assert!(
            began.elapsed() < crate::support::WAIT_LIMIT,
            "{} of {due} calls",
            fixture.upstream.count()
        );
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let took = began.elapsed().as_secs_f64();
    for process in processes {
        process.kill();
    }

    let (clock, now) = (
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_secs_f64(),
        Instant::now(),
    );
    let given: Vec<(Value, f64)> = rows!(
        fixture.pool(),
        "select body, extract(epoch from claimed_at)::float8 from scan_items where attempt > 0"
    );
    let mut grants: Vec<f64> = given.iter().map(|(_, at)| *at).collect();
    grants.sort_by(f64::total_cmp);
    let given: HashMap<String, f64> = given
        .into_iter()
        .map(|(body, at)| (body["departure_date"].to_string(), at))
        .collect();
    let calls = fixture.upstream.calls();
    let ledger: Vec<f64> = calls
        .iter()
        .map(|call| clock - now.duration_since(call.at).as_secs_f64())
        .collect();
    let delays = calls
        .iter()
        .zip(&ledger)
        .map(|(call, at)| at - given[&call.body["departure_date"].to_string()]);
    let late = delays.fold(0.0, f64::max);

    let workers: i64 = fixture
        .count("select count(distinct worker_id) from attempts")
        .await;
    println!(
        "{} calls of {workers} processes in {took:.2} s at {per_minute} a minute, burst {burst}; the longest delay between a claim \
         and its call is {:.0} ms; the fullest window has {:+.2} calls against burst + rate by claims, {:+.2} in the ledger, {:+.2} with that delay",
        calls.len(),
        late * 1_000.0,
        max_excess(&grants, rate, burst, 0.0),
        max_excess(&ledger, rate, burst, 0.0),
        max_excess(&ledger, rate, burst, late),
    );
    assert_eq!(workers, 2, "both processes made calls");
    assert!(
        max_excess(&grants, rate, burst, 1e-3) <= 0.0,
        "claimed faster than the pace"
    );
    assert!(
        max_excess(&ledger, rate, burst, late + 1e-3) <= 0.0,
        "the ledger is above burst + rate"
    );
    assert!(
        took >= seconds - late - 1.0,
        "{} calls in {took} s",
        calls.len()
    );
}
