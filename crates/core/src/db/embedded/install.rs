//! The command that installs Postgres on this system.

/// What to do without Postgres. A system without a shell is a container's image, in which nothing can
/// be installed.
pub(super) fn advice(os_release: &str, major: Option<u32>, has_shell: bool) -> String {
    if has_shell {
        return format!("install it with `{}`", line(os_release, major));
    }
    "this image has none and nothing to install it with: use docker-compose.yml, which starts one beside it".to_owned()
}

/// `os_release`: the text of `/etc/os-release`, or empty.
fn line(os_release: &str, major: Option<u32>) -> String {
    if cfg!(target_os = "macos") {
        return format!("brew install postgresql@{}", major.unwrap_or(17));
    }
    let version = major.map_or_else(String::new, |major| major.to_string());
    let dashed = major.map_or_else(String::new, |major| format!("-{major}"));
    for family in families(os_release) {
        return match family.as_str() {
            "debian" | "ubuntu" => {
                format!("sudo apt-get update && sudo apt-get install -y postgresql{dashed}")
            }
            "fedora" | "rhel" | "centos" => "sudo dnf install -y postgresql-server".to_owned(),
            "arch" => "sudo pacman -S --needed postgresql".to_owned(),
            "alpine" => format!("apk add postgresql{version}"),
            "suse" | "opensuse" => format!("sudo zypper install postgresql{version}-server"),
            _ => continue,
        };
    }
    "your system's package manager (see https://www.postgresql.org/download/)".to_owned()
}

/// `ID`, then `ID_LIKE`, which os-release(5) orders from closest to farthest.
fn families(os_release: &str) -> Vec<String> {
    let field = |name: &str| {
        let value = os_release
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        value.unwrap_or_default().trim_matches('"').to_owned()
    };
    let (id, like) = (field("ID"), field("ID_LIKE"));
    id.split_whitespace()
        .chain(like.split_whitespace())
        .map(str::to_owned)
        .collect()
}

#[cfg(all(test, not(target_os = "macos")))]
mod tests {
    use super::line;

    #[test]
    fn each_system_gets_its_own_command() {
        for (os_release, major, expected) in [
            (
                "ID=debian\nVERSION_ID=\"12\"",
                None,
                "sudo apt-get update && sudo apt-get install -y postgresql",
            ),
            (
                "ID=linuxmint\nID_LIKE=\"ubuntu debian\"",
                Some(16),
                "sudo apt-get update && sudo apt-get install -y postgresql-16",
            ),
            (
                "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"",
                None,
                "sudo dnf install -y postgresql-server",
            ),
            ("ID=alpine", Some(16), "apk add postgresql16"),
            (
                "ID=manjaro\nID_LIKE=arch",
                None,
                "sudo pacman -S --needed postgresql",
            ),
            (
                "ID=plan9",
                None,
                "your system's package manager (see https://www.postgresql.org/download/)",
            ),
        ] {
            assert_eq!(line(os_release, major), expected, "{os_release}");
        }
    }
}
