//! Two processes on one lane, by the marketplace's ledger.

use std::collections::HashMap;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::process::Serve;
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::worker::stage::Stage;

/// The most that any window has above what burst and rate allow in it; `late` seconds are added to each window.
fn worst(times: &[f64], per_minute: f64, burst: f64, late: f64) -> f64 {
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

/// A lane at 150 a minute, two processes, 30 s with `FARESCAN_SOAK=1`; in short the same at 1,800 a minute for 3 s.
///
/// What the lane gives out is held exactly. A call reaches the marketplace some time after it was given out (put on record, a thread, a
/// connection), one a little later than another: so the ledger's windows are allowed the longest such delay of this run, no more.
#[tokio::test(flavor = "multi_thread")]
async fn two_processes_keep_to_one_pace_in_every_window() {
    let soak = std::env::var_os("FARESCAN_SOAK").is_some();
    let (per_minute, burst, seconds, due) = if soak {
        (150, 5.0, 30.0, 80)
    } else {
        (1_800, 60.0, 3.0, 150)
    };
    let rate = f64::from(per_minute);
    let mut stage = Stage::new().await;
    stage.pace.flights_per_minute = per_minute;
    stage
        .upstream
        .on_any()
        .answer(|call| Reply::json(json!([fare(120, &call.body)])));
    let processes = [Serve::start(&stage, 32), Serve::start(&stage, 32)];
    stage.submit(340, &json!({})).await;
    let began = Instant::now();
    // The condition is the lane's: so many calls cannot come sooner.
    while stage.upstream.count() < due {
        assert!(
            began.elapsed() < crate::support::PATIENCE,
            "{} of {due} calls",
            stage.upstream.count()
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
    let given: Vec<(Value, f64)> = sqlx::query_as(
        "select body, extract(epoch from claimed_at)::float8 from scan_items where attempt > 0",
    )
    .fetch_all(stage.pool())
    .await
    .unwrap();
    let mut grants: Vec<f64> = given.iter().map(|(_, at)| *at).collect();
    grants.sort_by(f64::total_cmp);
    let given: HashMap<String, f64> = given
        .into_iter()
        .map(|(body, at)| (body["departure_date"].to_string(), at))
        .collect();
    let calls = stage.upstream.calls();
    let ledger: Vec<f64> = calls
        .iter()
        .map(|call| clock - now.duration_since(call.at).as_secs_f64())
        .collect();
    let delays = calls
        .iter()
        .zip(&ledger)
        .map(|(call, at)| at - given[&call.body["departure_date"].to_string()]);
    let late = delays.fold(0.0, f64::max);

    let workers: i64 = stage
        .count("select count(distinct worker_id) from attempts")
        .await;
    println!(
        "{} calls of {workers} processes in {took:.2} s at {per_minute} a minute, burst {burst}; the latest came {:.0} ms after it was \
         given out; the fullest window has {:+.2} calls against burst + rate as given out, {:+.2} in the ledger, {:+.2} with that delay",
        calls.len(),
        late * 1_000.0,
        worst(&grants, rate, burst, 0.0),
        worst(&ledger, rate, burst, 0.0),
        worst(&ledger, rate, burst, late),
    );
    assert_eq!(workers, 2, "both took part");
    assert!(
        worst(&grants, rate, burst, 1e-3) <= 0.0,
        "given out faster than the pace"
    );
    assert!(
        worst(&ledger, rate, burst, late + 1e-3) <= 0.0,
        "the ledger is above burst + rate"
    );
    assert!(
        took >= seconds - late - 1.0,
        "{} calls in {took} s",
        calls.len()
    );
}
