//! What packages are made of (`script/package.d`): the unit, the settings, the version.

use std::process::Command;

use clap::Parser as _;
use farescan::cli::Cli;
use farescan_client::program::VERSION;

use super::compose::file;
use super::process::program;

/// The value of a line `NAME=value`.
fn value<'a>(unit: &'a str, name: &str) -> &'a str {
    let line = unit.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.strip_prefix('='))
        .unwrap_or_else(|| panic!("{name} is not in {unit}"))
}

#[test]
fn the_unit_starts_a_command_that_exists_and_lets_calls_end() {
    let unit = file("script/package.d/farescan.service");
    let words: Vec<_> = value(&unit, "ExecStart").split(' ').collect();
    assert_eq!(words[0], "/usr/bin/farescan");
    assert!(Cli::try_parse_from(&words).is_ok(), "{words:?}");
    // As compose's stop_grace_period: less would cut calls that are paid for.
    assert_eq!(value(&unit, "TimeoutStopSec"), "240");
    assert_eq!(value(&unit, "User"), "farescan");
    for (name, expected) in [
        ("NoNewPrivileges", "yes"),
        ("ProtectSystem", "strict"),
        ("CapabilityBoundingSet", ""),
        ("LimitCORE", "0"),
        ("EnvironmentFile", "/etc/farescan/env"),
        ("StateDirectory", "farescan"),
    ] {
        assert_eq!(value(&unit, name), expected, "{name}");
    }
}

/// Who removes the package keeps what was paid for, and an upgrade restarts only what runs.
#[test]
fn the_package_keeps_its_data_and_starts_nothing() {
    let scripts = ["preinst", "postinst", "prerm", "postrm"];
    for name in scripts {
        let text = file(&format!("script/package.d/{name}"));
        assert!(!text.contains("rm -r"), "{name} deletes a folder");
        assert!(!text.contains("systemctl start"), "{name} starts something");
        let checked = Command::new("sh").arg("-n").arg("-c").arg(&text).status();
        assert!(checked.unwrap().success(), "{name} is no script");
    }
    let installed = file("script/package.d/postinst");
    assert!(
        installed.contains("if [ -n \"$2\" ]; then systemctl try-restart farescan.service; fi")
    );
}

/// A build of `script/package` adds commit and date to it.
#[test]
fn the_version_is_that_of_the_manifest() {
    let output = Command::new(program()).arg("--version").output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert_eq!(shown.trim_end(), format!("farescan {VERSION}"));
    let version = VERSION.strip_prefix(env!("CARGO_PKG_VERSION")).unwrap();
    assert!(version.is_empty() || version.starts_with(" ("), "{VERSION}");
}
