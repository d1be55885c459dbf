//! The gateway between a caller and the marketplace: what it adds to a call, what a request costs it, and what 2,000 slow ones take in
//! memory; beside the direct call and nginx, by turns, so that all meet the same machine.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::load::{Target, all_at_once, closed_loop, open_loop};
use super::meter::{Span, Times, Who, load, middle, ms};
use super::nginx::Nginx;
use super::stage::{Program, Stage};
use super::upstream::Upstream;
use super::{Res, runs};

const BYTES: usize = 6_144;
const DELAY_MS: u64 = 50;
const PER_SECOND: f64 = 1_000.0;
/// How long each is asked before the next one's turn.
const TURN: Duration = Duration::from_secs(5);
const PLACES: usize = 64;
const SLOW: usize = 2_000;
/// Long enough for all of them to be accepted, on a slow machine too.
const SLOW_MS: u64 = 12_000;

/// Whoever stands between.
struct Way {
    name: &'static str,
    who: Option<Who>,
    target: Arc<Target>,
}

/// All three.
pub async fn run() -> Res<()> {
    let stage = Stage::new().await?;
    let upstreams = [
        Upstream::start(DELAY_MS, BYTES)?,
        Upstream::start(0, BYTES)?,
        Upstream::start(SLOW_MS, BYTES)?,
    ];
    let nginx = Nginx::start(
        stage.folder(),
        &upstreams.each_ref().map(|upstream| upstream.address),
    )
    .await?;
    if nginx.is_none() {
        println!(
            "\ngateway: NGINX IS NOT INSTALLED (apt-get install nginx-light), so the figures beside it are missing"
        );
    }
    let mut gateways = Vec::new();
    for upstream in &upstreams {
        let gateway = stage.serve(&upstream.url())?;
        let address = gateway.listening().await?.ok_or("no address")?;
        gateways.push((gateway, address));
    }
    added(
        &ways(0, &upstreams, &gateways, nginx.as_ref()),
        &upstreams[0],
    )
    .await?;
    most(
        &ways(1, &upstreams, &gateways, nginx.as_ref()),
        &upstreams[1],
    )
    .await?;
    slow(
        &ways(2, &upstreams, &gateways, nginx.as_ref()),
        &upstreams[2],
    )
    .await?;
    for (gateway, _) in gateways {
        gateway.stop().await?;
    }
    stage.close().await;
    Ok(())
}

fn ways(
    at: usize,
    upstreams: &[Upstream],
    gateways: &[(Program, SocketAddr)],
    nginx: Option<&Nginx>,
) -> Vec<Way> {
    let native = |address| {
        let headers = vec![
            ("x-marketplace-key", "bench-caller-gateway".to_owned()),
            ("x-marketplace-host", "localhost".to_owned()),
        ];
        Target::new(
            address,
            "/api/google_flights/oneway/v1",
            headers,
            &question(),
            BYTES,
        )
    };
    let (gateway, address) = &gateways[at];
    let through = Target::new(
        *address,
        "/v1/flights/oneway",
        vec![("x-api-key", "bench-caller-gateway".to_owned())],
        &question(),
        BYTES - 100,
    );
    let mut ways = vec![
        Way {
            name: "direct",
            who: None,
            target: native(upstreams[at].address),
        },
        Way {
            name: "gateway",
            who: Some(Who::Process(gateway.pid())),
            target: through,
        },
    ];
    if let Some(nginx) = nginx {
        ways.push(Way {
            name: "nginx",
            who: Some(Who::Tree(nginx.pid())),
            target: native(nginx.addresses[at]),
        });
    }
    ways
}

fn question() -> Value {
    json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2027-01-14", "currency": "USD", "limit": 50})
}

/// A round's figures of each way, those of the direct call first.
async fn added(ways: &[Way], upstream: &Upstream) -> Res<()> {
    println!(
        "\ngateway: open loop at {PER_SECOND}/s, upstream {DELAY_MS} ms and {BYTES} bytes, {TURN:?} each by turns; latency from the planned send time"
    );
    for way in ways {
        // Connections and code are there when it counts.
        open_loop(&way.target, PER_SECOND, Duration::from_secs(1), 0).await?;
    }
    let mut rounds = Vec::new();
    for round in 1..=runs() {
        let mut figures = Vec::new();
        for way in ways {
            let mut parts = vec![
                ("upstream", Who::Process(upstream.pid())),
                ("bench", Who::Process(std::process::id())),
            ];
            parts.extend(way.who.map(|who| (way.name, who)));
            let span = Span::begin(&parts)?;
            let times = open_loop(&way.target, PER_SECOND, TURN, u64::try_from(round)?).await?;
            let spent = span.end()?;
            println!(
                "  round {round}, {}: {} answers, median {}, p99 {}; {spent}",
                way.name,
                times.count(),
                ms(times.median()),
                ms(times.p99())
            );
            figures.push((times, spent.cpu(way.name)));
        }
        rounds.push(figures);
    }
    let of = |at: usize, figure: fn(&Times) -> Duration| {
        middle(
            rounds
                .iter()
                .map(|round| figure(&round[at].0).as_secs_f64() * 1e6)
                .collect(),
        )
    };
    for (at, way) in ways.iter().enumerate().skip(1) {
        let cpu: Vec<_> = rounds
            .iter()
            .map(|round| {
                round[at].1 * 1e6 / f64::from(u32::try_from(round[at].0.count()).unwrap_or(1))
            })
            .collect();
        println!(
            "  {} adds {:.0} µs at the median and {:.0} µs at p99 to the direct call; {:.0} µs of CPU a request (medians of rounds)",
            way.name,
            of(at, Times::median) - of(0, Times::median),
            of(at, Times::p99) - of(0, Times::p99),
            middle(cpu)
        );
    }
    println!("  (aim for the gateway: median below 100 µs, p99 below 2 ms)");
    Ok(())
}

async fn most(ways: &[Way], upstream: &Upstream) -> Res<()> {
    println!(
        "\ngateway: closed loop from {PLACES} places, upstream at once and {BYTES} bytes, {TURN:?} each by turns"
    );
    let mut per_core: Vec<Vec<f64>> = vec![Vec::new(); ways.len()];
    for round in 1..=runs() {
        for (at, way) in ways.iter().enumerate() {
            let Some(who) = way.who else { continue };
            closed_loop(&way.target, PLACES, Duration::from_millis(500)).await?;
            let span = Span::begin(&[
                (way.name, who),
                ("upstream", Who::Process(upstream.pid())),
                ("bench", Who::Process(std::process::id())),
            ])?;
            let count = f64::from(u32::try_from(
                closed_loop(&way.target, PLACES, TURN).await?,
            )?);
            let spent = span.end()?;
            per_core[at].push(count / spent.cpu(way.name));
            let rate = count / spent.wall.as_secs_f64();
            println!(
                "  round {round}, {}: {rate:.0}/s, {:.0} a second and core, {:.0} µs of CPU each; {spent}",
                way.name,
                count / spent.cpu(way.name),
                spent.cpu(way.name) * 1e6 / count
            );
        }
    }
    let middles: Vec<_> = per_core.into_iter().map(middle).collect();
    match middles[..] {
        [_, gateway, nginx] => println!(
            "  gateway {gateway:.0} and nginx {nginx:.0} requests a second and core: {:.2} of nginx's (aim 0.6)",
            gateway / nginx
        ),
        [_, gateway] => {
            println!("  gateway {gateway:.0} requests a second and core; nginx is not installed")
        }
        _ => {}
    }
    Ok(())
}

async fn slow(ways: &[Way], upstream: &Upstream) -> Res<()> {
    println!(
        "\ngateway: memory with {SLOW} requests at once, upstream {SLOW_MS} ms and {BYTES} bytes"
    );
    for way in ways {
        let Some(who) = way.who else { continue };
        all_at_once(&way.target, 10).await?;
        let idle = who.memory()?;
        let target = Arc::clone(&way.target);
        let asked = tokio::spawn(async move { all_at_once(&target, SLOW).await });
        while upstream.counts().await?.1 < SLOW {
            if asked.is_finished() {
                asked.await??;
                return Err("they were not all underway at once".into());
            }
            sleep(Duration::from_millis(20)).await;
        }
        let waiting = who.memory()?;
        asked.await??;
        let after = who.memory()?;
        println!(
            "  {}: {idle:.0} MB idle, {waiting:.0} MB while all wait ({:.1} KB each), {after:.0} MB after; load {}",
            way.name,
            (waiting - idle) * 1024.0 / f64::from(u32::try_from(SLOW)?),
            load()?
        );
    }
    Ok(())
}
