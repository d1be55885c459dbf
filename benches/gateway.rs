//! The gateway's cost: added latency, CPU of a request, and memory of 1,000 slow requests; compared
//! in alternating rounds with direct calls and nginx.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::environment::{BenchEnvironment, Program};
use super::load::{Target, all_at_once, closed_loop, open_loop};
use super::meter::{Measurement, ProcessSet, Times, load, median, ms};
use super::nginx::Nginx;
use super::upstream::Upstream;
use super::{Res, runs};

const BYTES: usize = 6_144;
const DELAY_MS: u64 = 50;
const PER_SECOND: f64 = 1_000.0;
/// The length of a round of one variant.
const ROUND_TIME: Duration = Duration::from_secs(5);
const CONCURRENCY: usize = 64;
const SLOW: usize = 1_000;
/// Long enough to accept all of them, on a slow machine too.
const SLOW_MS: u64 = 12_000;

/// What stands between the client and the upstream.
struct Variant {
    name: &'static str,
    processes: Option<ProcessSet>,
    target: Arc<Target>,
}

/// Runs all three comparisons.
pub async fn run() -> Res<()> {
    let upstreams = [
        Upstream::start(DELAY_MS, BYTES)?,
        Upstream::start(0, BYTES)?,
        Upstream::start(SLOW_MS, BYTES)?,
    ];
    // A database belongs to one marketplace, so each upstream has its own.
    let mut environments = Vec::new();
    let mut gateways = Vec::new();
    for upstream in &upstreams {
        let env = BenchEnvironment::new().await?;
        let mut gateway = env.serve(&upstream.url())?;
        let address = gateway.listening().await?.ok_or("no address")?;
        gateways.push((gateway, address));
        environments.push(env);
    }
    let nginx = Nginx::start(
        environments[0].folder(),
        &upstreams.each_ref().map(|upstream| upstream.address),
    )
    .await?;
    if nginx.is_none() {
        println!(
            "\ngateway: NGINX IS NOT INSTALLED (apt-get install nginx-light), so the figures beside it are missing"
        );
    }
    compare_latency(
        &variants(0, &upstreams, &gateways, nginx.as_ref()),
        &upstreams[0],
    )
    .await?;
    compare_throughput(
        &variants(1, &upstreams, &gateways, nginx.as_ref()),
        &upstreams[1],
    )
    .await?;
    compare_memory(
        &variants(2, &upstreams, &gateways, nginx.as_ref()),
        &upstreams[2],
    )
    .await?;
    for (gateway, _) in gateways {
        gateway.stop().await?;
    }
    for env in environments {
        env.close().await;
    }
    Ok(())
}

fn variants(
    at: usize,
    upstreams: &[Upstream],
    gateways: &[(Program, SocketAddr)],
    nginx: Option<&Nginx>,
) -> Vec<Variant> {
    let native = |address| {
        let headers = vec![
            ("x-marketplace-key", "bench-caller-gateway".to_owned()),
            ("x-marketplace-host", "localhost".to_owned()),
        ];
        Target::new(
            address,
            "/api/google_flights/oneway/v1",
            headers,
            &search_body(),
            BYTES,
        )
    };
    let (gateway, address) = &gateways[at];
    let through = Target::new(
        *address,
        "/v1/flights/oneway",
        vec![("x-api-key", "bench-caller-gateway".to_owned())],
        &search_body(),
        BYTES - 100,
    );
    let mut variants = vec![
        Variant {
            name: "direct",
            processes: None,
            target: native(upstreams[at].address),
        },
        Variant {
            name: "gateway",
            processes: Some(ProcessSet::Process(gateway.pid())),
            target: through,
        },
    ];
    if let Some(nginx) = nginx {
        variants.push(Variant {
            name: "nginx",
            processes: Some(ProcessSet::Tree(nginx.pid())),
            target: native(nginx.addresses[at]),
        });
    }
    variants
}

fn search_body() -> Value {
    json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": "2027-01-14", "currency": "USD", "limit": 50})
}

/// Compares latency and CPU; the first variant is the direct call.
async fn compare_latency(variants: &[Variant], upstream: &Upstream) -> Res<()> {
    println!(
        "\ngateway: open loop at {PER_SECOND}/s, upstream {DELAY_MS} ms and {BYTES} bytes, {ROUND_TIME:?} each in turn; latency from the planned send time"
    );
    for variant in variants {
        // Warms up connections and code.
        open_loop(&variant.target, PER_SECOND, Duration::from_secs(1), 0).await?;
    }
    let mut rounds = Vec::new();
    for round in 1..=runs() {
        let mut figures = Vec::new();
        for variant in variants {
            let mut parts = vec![
                ("upstream", ProcessSet::Process(upstream.pid())),
                ("bench", ProcessSet::Process(std::process::id())),
            ];
            parts.extend(variant.processes.map(|processes| (variant.name, processes)));
            let measurement = Measurement::start(&parts)?;
            let times = open_loop(
                &variant.target,
                PER_SECOND,
                ROUND_TIME,
                u64::try_from(round)?,
            )
            .await?;
            let usage = measurement.finish()?;
            println!(
                "  round {round}, {}: {} answers, median {}, p99 {}; {usage}",
                variant.name,
                times.count(),
                ms(times.median()),
                ms(times.p99())
            );
            figures.push((times, usage.cpu(variant.name)));
        }
        rounds.push(figures);
    }
    let of = |at: usize, figure: fn(&Times) -> Duration| {
        median(
            rounds
                .iter()
                .map(|round| figure(&round[at].0).as_secs_f64() * 1e6)
                .collect(),
        )
    };
    for (at, variant) in variants.iter().enumerate().skip(1) {
        let cpu: Vec<_> = rounds
            .iter()
            .map(|round| {
                round[at].1 * 1e6 / f64::from(u32::try_from(round[at].0.count()).unwrap_or(1))
            })
            .collect();
        println!(
            "  {} adds {:.0} µs at the median and {:.0} µs at p99 to the direct call; {:.0} µs of CPU a request (medians of rounds)",
            variant.name,
            of(at, Times::median) - of(0, Times::median),
            of(at, Times::p99) - of(0, Times::p99),
            median(cpu)
        );
    }
    println!("  (aim for the gateway: median below 100 µs, p99 below 2 ms)");
    Ok(())
}

async fn compare_throughput(variants: &[Variant], upstream: &Upstream) -> Res<()> {
    println!(
        "\ngateway: closed loop over {CONCURRENCY} connections, upstream without delay and {BYTES} bytes, {ROUND_TIME:?} each in turn"
    );
    let mut per_core: Vec<Vec<f64>> = vec![Vec::new(); variants.len()];
    for round in 1..=runs() {
        for (at, variant) in variants.iter().enumerate() {
            let Some(processes) = variant.processes else {
                continue;
            };
            closed_loop(&variant.target, CONCURRENCY, Duration::from_millis(500)).await?;
            let measurement = Measurement::start(&[
                (variant.name, processes),
                ("upstream", ProcessSet::Process(upstream.pid())),
                ("bench", ProcessSet::Process(std::process::id())),
            ])?;
            let count = f64::from(u32::try_from(
                closed_loop(&variant.target, CONCURRENCY, ROUND_TIME).await?,
            )?);
            let usage = measurement.finish()?;
            per_core[at].push(count / usage.cpu(variant.name));
            let rate = count / usage.wall.as_secs_f64();
            println!(
                "  round {round}, {}: {rate:.0}/s, {:.0} a second and core, {:.0} µs of CPU each; {usage}",
                variant.name,
                count / usage.cpu(variant.name),
                usage.cpu(variant.name) * 1e6 / count
            );
        }
    }
    let medians: Vec<_> = per_core.into_iter().map(median).collect();
    match medians[..] {
        [_, gateway, nginx] => println!(
            "  gateway {gateway:.0} and nginx {nginx:.0} requests a second and core: {:.2} of nginx's (aim 0.6)",
            gateway / nginx
        ),
        [_, gateway] => {
            println!("  gateway {gateway:.0} requests a second and core; nginx is not installed");
        }
        _ => {}
    }
    Ok(())
}

async fn compare_memory(variants: &[Variant], upstream: &Upstream) -> Res<()> {
    println!(
        "\ngateway: memory with {SLOW} requests at once, upstream {SLOW_MS} ms and {BYTES} bytes"
    );
    for variant in variants {
        let Some(processes) = variant.processes else {
            continue;
        };
        all_at_once(&variant.target, 10).await?;
        let idle = processes.memory()?;
        let target = Arc::clone(&variant.target);
        let requests = tokio::spawn(async move { all_at_once(&target, SLOW).await });
        while upstream.counts().await?.1 < SLOW {
            if requests.is_finished() {
                requests.await??;
                return Err("not all requests were in flight at once".into());
            }
            sleep(Duration::from_millis(20)).await;
        }
        let waiting = processes.memory()?;
        requests.await??;
        let after = processes.memory()?;
        println!(
            "  {}: {idle:.0} MB idle, {waiting:.0} MB while all wait ({:.1} KB each), {after:.0} MB after; load {}",
            variant.name,
            (waiting - idle) * 1024.0 / f64::from(u32::try_from(SLOW)?),
            load()?
        );
    }
    Ok(())
}
