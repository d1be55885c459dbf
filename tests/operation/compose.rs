//! The container's files, as Docker reads them: valid commands, known variables, minimal
//! privileges.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use clap::{CommandFactory as _, Parser as _};
use farescan::cli::Cli;
use serde_json::{Value, json};

/// Reads a file of the repository.
pub fn file(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

/// The compose file with anchors and merges resolved.
pub fn compose() -> Value {
    serde_saphyr::from_str(&file("docker-compose.yml")).unwrap()
}

/// The items of a list.
pub fn words(list: &Value) -> Vec<&str> {
    list.as_array()
        .into_iter()
        .flatten()
        .map(|word| word.as_str().unwrap())
        .collect()
}

/// Replaces `${NAME:-default}` and `${NAME:?error}` with the default, or with the value in
/// `.env.sandbox`.
pub fn interpolated(text: &str) -> String {
    match text.split_once("${") {
        Some((before, rest)) => {
            let (inner, after) = rest.split_once('}').unwrap();
            let sandbox = file(".env.sandbox");
            let set = |name: &str| {
                sandbox
                    .lines()
                    .find_map(|line| Some(line.strip_prefix(name)?.strip_prefix('=')?.to_owned()))
            };
            let value = match (inner.split_once(":-"), inner.split_once(":?")) {
                (Some((_, default)), _) => default.to_owned(),
                (None, Some((name, _))) => {
                    set(name).unwrap_or_else(|| panic!("{name} is not in .env.sandbox"))
                }
                (None, None) => String::new(),
            };
            format!("{before}{value}{}", interpolated(after))
        }
        None => text.to_owned(),
    }
}

fn services(compose: &Value) -> impl Iterator<Item = (&String, &Value)> {
    compose["services"].as_object().unwrap().iter()
}

fn is_ours(service: &Value) -> bool {
    service["image"] == "farescan:local"
}

/// Every environment variable of every command.
fn known_variables() -> BTreeSet<String> {
    fn collect(command: &clap::Command, known: &mut BTreeSet<String>) {
        known.extend(
            command
                .get_arguments()
                .filter_map(|arg| arg.get_env()?.to_str().map(str::to_owned)),
        );
        command
            .get_subcommands()
            .for_each(|command| collect(command, known));
    }
    let mut known = BTreeSet::new();
    collect(&Cli::command(), &mut known);
    known
}

#[test]
fn compose_commands_are_valid() {
    let compose = compose();
    let mut commands = Vec::new();
    for (name, service) in services(&compose).filter(|(_, service)| is_ours(service)) {
        let line = words(&service["command"]);
        let parsed = Cli::try_parse_from([&["farescan"], line.as_slice()].concat());
        assert!(parsed.is_ok(), "{name}: {}", parsed.unwrap_err());
        assert!(service["entrypoint"].is_null(), "{name}: the image's own");
        commands.push(line.join(" "));
    }
    commands.sort();
    assert_eq!(
        commands,
        [
            "keys new --out /farescan/keys/master.key --if-absent",
            "migrate",
            "sandbox --listen 0.0.0.0:8090 --latency 0.2",
            "serve --no-worker",
            "worker"
        ]
    );
    let dockerfile = file("Dockerfile");
    let is_command = |line: &&str| line.starts_with("HEALTHCHECK") || line.starts_with("CMD");
    let lines: Vec<_> = dockerfile.lines().filter(is_command).collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    for line in lines {
        let words: Vec<String> = serde_json::from_str(&line[line.find('[').unwrap()..]).unwrap();
        let arguments: Vec<_> = words
            .iter()
            .map(String::as_str)
            .filter(|word| !word.starts_with('/'))
            .collect();
        assert!(
            Cli::try_parse_from([&["farescan"], arguments.as_slice()].concat()).is_ok(),
            "{line}"
        );
    }
}

#[test]
fn compose_variables_are_known_settings() {
    let known = known_variables();
    assert!(
        known.contains("FARESCAN_ADMIN_LISTEN") && known.contains("DATABASE_URL"),
        "{known:?}"
    );
    let compose = compose();
    let mut named = BTreeSet::new();
    for (_, service) in services(&compose).filter(|(_, service)| is_ours(service)) {
        named.extend(
            service["environment"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, _)| name.clone()),
        );
    }
    let example = [file(".env.example"), file(".env.sandbox")].concat();
    let settings = example
        .lines()
        .filter_map(|line| line.trim_start_matches('#').split_once('='));
    let settings = settings.filter(|(name, _)| {
        name.bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte == b'_')
    });
    named.extend(
        settings
            .map(|(name, _)| name.to_owned())
            .filter(|name| !OF_COMPOSE.contains(&name.as_str())),
    );
    let dockerfile = file("Dockerfile");
    let set = dockerfile
        .split_whitespace()
        .filter_map(|word| word.split_once('='))
        .map(|(name, _)| name);
    named.extend(
        set.filter(|name| name.starts_with("FARESCAN_"))
            .map(str::to_owned),
    );
    assert!(named.len() > 15, "{named:?}");
    let unknown: Vec<_> = named.difference(&known).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

/// Compose's own variables: the published port and the images.
const OF_COMPOSE: &[&str] = &[
    "FARESCAN_PORT",
    "POSTGRES_IMAGE",
    "RUST_IMAGE",
    "RUNTIME_IMAGE",
];

#[test]
fn every_base_image_can_be_given_by_its_digest() {
    let compose = compose();
    for (name, service) in services(&compose) {
        if is_ours(service) {
            let args = words(&service["build"]["args"]);
            assert!(
                service["build"].is_null() || args == ["RUST_IMAGE", "RUNTIME_IMAGE"],
                "{name}: {args:?}"
            );
        } else {
            let image = service["image"].as_str().unwrap();
            assert!(image.starts_with("${POSTGRES_IMAGE:-"), "{name}: {image}");
        }
    }
    let dockerfile = file("Dockerfile");
    let bases = dockerfile
        .lines()
        .filter_map(|line| line.strip_prefix("FROM "));
    for base in bases {
        assert!(base.starts_with("${"), "{base}");
    }
}

#[test]
fn compose_services_have_minimal_privileges() {
    let compose = compose();
    for (name, service) in services(&compose) {
        assert_eq!(service["read_only"], true, "{name}");
        assert_eq!(words(&service["cap_drop"]), ["ALL"], "{name}");
        assert_eq!(
            words(&service["security_opt"]),
            ["no-new-privileges:true"],
            "{name}"
        );
        for grant in ["privileged", "cap_add", "pid", "ipc", "devices"] {
            assert!(service[grant].is_null(), "{name}: {grant}");
        }
        let root = service["user"]
            .as_str()
            .is_none_or(|user| user.starts_with('0') || user == "root");
        assert_eq!(
            root,
            name == "password",
            "{name} runs as {}",
            service["user"]
        );
        assert!(
            !root || service["network_mode"] == "none",
            "{name}: who is root is nowhere"
        );
        let published = words(&service["ports"]);
        assert!(
            published.iter().all(|port| port.starts_with("127.0.0.1:")),
            "{name}: {published:?}"
        );
        assert!(
            published.is_empty() || name == "serve",
            "a second worker could not have the same port"
        );
    }
    assert_eq!(compose["networks"]["database"]["internal"], true);
    assert_eq!(
        words(&compose["services"]["postgres"]["networks"]),
        ["database"]
    );
    assert!(
        file("Dockerfile")
            .lines()
            .any(|line| line == "USER 65532:65532")
    );
}

#[test]
fn compose_files_contain_no_password() {
    let compose = compose();
    for (name, service) in services(&compose) {
        for (variable, value) in service["environment"].as_object().into_iter().flatten() {
            assert!(
                !matches!(
                    variable.as_str(),
                    "POSTGRES_PASSWORD" | "FARESCAN_MASTER_KEY" | "PGPASSWORD"
                ),
                "{name}: {variable}"
            );
            let url = value
                .as_str()
                .and_then(|value| value.parse::<reqwest::Url>().ok());
            assert!(
                url.is_none_or(|url| url.password().is_none()),
                "{name}: {variable}"
            );
        }
        for volume in words(&service["volumes"]) {
            let writes = !volume.ends_with(":ro");
            let makes = matches!(
                (name.as_str(), volume.split(':').next().unwrap()),
                ("password" | "keys", _) | ("postgres", "data") | ("worker", "spool")
            );
            assert_eq!(writes, makes, "{name}: {volume}");
        }
    }
}

/// Without settings nothing starts, so that no key is sent to an unintended address.
#[test]
fn compose_needs_a_configured_marketplace() {
    let compose = compose();
    for service in ["serve", "worker"] {
        for variable in ["FARESCAN_FLIGHTS_URL", "FARESCAN_HOTELS_URL"] {
            let value = compose["services"][service]["environment"][variable]
                .as_str()
                .unwrap();
            assert!(
                value.starts_with(&format!("${{{variable}:?")),
                "{service}: {value}"
            );
        }
    }
}

/// `git status` does not show the files that the README's commands create.
#[test]
fn git_ignores_generated_secrets() {
    for secret in [".env", "master.key"] {
        let ignored = file(".gitignore");
        let is_ignored = ignored.lines().any(|line| {
            line == secret
                || line
                    .strip_suffix('*')
                    .is_some_and(|begin| secret.starts_with(begin))
        });
        assert!(is_ignored, "{secret} is not ignored");
    }
}

#[test]
fn compose_dependencies_exist_and_stops_are_graceful() {
    let compose = compose();
    for (name, service) in services(&compose) {
        for (needed, how) in service["depends_on"].as_object().into_iter().flatten() {
            let condition = how["condition"].as_str().unwrap();
            let needed = &compose["services"][needed];
            assert!(needed.is_object(), "{name}");
            let once = needed["restart"] == "no";
            assert_eq!(
                condition,
                if once {
                    "service_completed_successfully"
                } else {
                    "service_healthy"
                },
                "{name}"
            );
        }
        let works = matches!(name.as_str(), "serve" | "worker");
        assert!(
            !works || service["stop_grace_period"] == "240s",
            "{name}: less would cut calls that are paid for"
        );
        let checked = service["healthcheck"]["disable"] != true;
        assert_eq!(checked, works || name == "postgres", "{name}");
    }
}

/// Programs differ in which of two merged mappings wins (PyYAML compares merged keys by identity): a
/// step that ends must not be started again in any reading.
#[test]
fn compose_steps_end_and_services_stay_in_every_reading() {
    let ours = compose();
    for (name, service) in services(&ours) {
        let ends = matches!(name.as_str(), "password" | "keys" | "migrate");
        let restart = if ends { "no" } else { "unless-stopped" };
        assert_eq!(service["restart"], restart, "{name}");
        if ends {
            assert_eq!(service["healthcheck"], json!({"disable": true}), "{name}");
            let block = block(name);
            assert!(
                block.contains("    restart: \"no\"\n")
                    && block.contains("    healthcheck:\n      disable: true\n"),
                "{name} inherits what it must say itself: {block}"
            );
        }
    }
    let reading = Command::new("python3")
        .args([
            "-c",
            "import json, yaml; print(json.dumps(yaml.safe_load(open('docker-compose.yml'))))",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output();
    match reading {
        Ok(output) if output.status.success() => {
            let theirs: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(theirs["services"], ours["services"]);
        }
        // Only where it is installed: nothing else of the tests needs it.
        _ => println!("not compared with PyYAML, which this machine lacks"),
    }
}

/// The lines of a service in the file.
fn block(name: &str) -> String {
    let text = file("docker-compose.yml");
    let begin = text.find(&format!("\n  {name}:\n")).unwrap() + 1;
    let rest = &text[begin..];
    let next = |line: &&str| line.starts_with("  ") && !line.starts_with("   ") && *line != "  ";
    let lines: Vec<_> = rest
        .lines()
        .enumerate()
        .take_while(|(number, line)| *number == 0 || !next(line))
        .map(|(_, line)| line)
        .collect();
    lines.join("\n") + "\n"
}

/// An image in the OCI format has no health check, and a container without limits takes the machine.
#[test]
fn compose_services_are_checked_and_limited() {
    let compose = compose();
    for name in ["serve", "worker"] {
        let check = &compose["services"][name]["healthcheck"];
        let line = words(&check["test"]);
        assert_eq!(
            line,
            ["CMD", "/usr/local/bin/farescan", "healthcheck"],
            "{name}"
        );
        let dockerfile = file("Dockerfile");
        let of_image = dockerfile
            .lines()
            .find(|line| line.starts_with("HEALTHCHECK"))
            .unwrap();
        for (option, value) in [
            ("interval", "interval"),
            ("timeout", "timeout"),
            ("start-period", "start_period"),
            ("retries", "retries"),
        ] {
            let value = &check[value];
            let value = value.as_str().map_or(value.to_string(), str::to_owned);
            assert!(
                of_image.contains(&format!("--{option}={value} ")),
                "{name}: {option} {value} is not in {of_image}"
            );
        }
    }
    for (name, service) in services(&compose) {
        let memory = service["mem_limit"].as_str().unwrap_or_default();
        assert!(matches!(memory, "1g" | "2g"), "{name}: {memory:?}");
        assert_eq!(service["pids_limit"], 1024, "{name}");
    }
}

/// Needs no Docker: the copied files must include every file that the manifest names.
#[test]
fn the_dockerfile_copies_a_complete_package() {
    let place = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let ignored = file(".dockerignore");
    let dockerfile = file("Dockerfile");
    let (_, build) = dockerfile.split_once(" AS build\n").unwrap();
    let (build, _) = build.split_once("\nFROM ").unwrap();
    for line in build.lines().filter_map(|line| line.strip_prefix("COPY ")) {
        let names: Vec<_> = line.split_whitespace().collect();
        let (_, sources) = names.split_last().unwrap();
        for source in sources {
            assert!(
                ignored
                    .lines()
                    .any(|line| line.strip_prefix('!') == Some(source)),
                "{source} does not reach the builder"
            );
            let to = place.path().join(source);
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(root.join(source), to).unwrap();
        }
    }
    let metadata = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--offline",
            "--no-deps",
            "--format-version",
            "1",
        ])
        .current_dir(place.path())
        .output()
        .unwrap();
    assert!(
        metadata.status.success(),
        "{}",
        String::from_utf8_lossy(&metadata.stderr)
    );
    for needed in [
        "crates/core/build.rs",
        "src/main.rs",
        "crates/contract/Cargo.toml",
        "migrations",
        ".sqlx",
        ".cargo/config.toml",
        "crates/core/sqlx.toml",
        "Cargo.lock",
    ] {
        assert!(place.path().join(needed).exists(), "{needed}");
    }
}
