//! The address of the service and the key: flag, environment, `farescan.toml`, default.
//!
//! A stored key is only used with the address that it was stored for, so that a wrong `--url` never
//! sends it elsewhere. No flag takes a key: other users of a machine can read command lines.

use std::path::Path;

use reqwest::Url;
use secrecy::{ExposeSecret as _, SecretString};

use super::http::{ApiClient, is_this_machine};
use super::profiles::{DEFAULT_PROFILE, Profiles, read_key_file};
use crate::Failure;
use crate::exit::CommandEnd;
use farescan_contract::{KeyFormatError, parse_key};

/// The service without any setting.
const DEFAULT_URL: &str = "http://127.0.0.1:8080";
const URL_VARIABLE: &str = "FARESCAN_URL";
const PROFILE_VARIABLE: &str = "FARESCAN_PROFILE";
const KEY_VARIABLE: &str = "FARESCAN_API_KEY";
const KEY_FILE_VARIABLE: &str = "FARESCAN_API_KEY_FILE";
const HTTP_VARIABLE: &str = "FARESCAN_ALLOW_HTTP";

/// Where the service is. The key comes from FARESCAN_API_KEY, the file that FARESCAN_API_KEY_FILE
/// names, or `farescan login`.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Connection")]
pub struct ConnectionArgs {
    /// Address of the service [env: FARESCAN_URL] [default: the profile's, else
    /// http://127.0.0.1:8080]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Service of farescan.toml, with the key that `farescan login` stored for it [env:
    /// FARESCAN_PROFILE]
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
}

/// The address of the service and the key for it.
#[derive(Debug)]
pub struct Connection {
    pub url: String,
    /// Name of the profile in use.
    pub profile: String,
    pub key: Option<SecretString>,
    /// Whether the key is that of the profile.
    pub is_stored: bool,
}

impl ConnectionArgs {
    /// Reads environment and profiles.
    ///
    /// # Errors
    /// An invalid address or an unknown profile.
    pub fn resolve(&self) -> Result<Connection, Failure> {
        let variable = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        self.resolve_with(variable, Profiles::load, false)
    }

    /// The address and the profile, for a command that stores a key.
    ///
    /// # Errors
    /// An invalid address.
    pub fn resolve_address(&self) -> Result<Connection, Failure> {
        // A key of the environment is not the one to store.
        let variable = |name: &str| {
            let value = std::env::var(name).ok().filter(|text| !text.is_empty());
            value.filter(|_| ![KEY_VARIABLE, KEY_FILE_VARIABLE].contains(&name))
        };
        self.resolve_with(variable, Profiles::load, true)
    }

    fn resolve_with(
        &self,
        variable: impl Fn(&str) -> Option<String>,
        load: impl Fn() -> Result<Profiles, Failure>,
        is_login: bool,
    ) -> Result<Connection, Failure> {
        let key_of_environment = environment_key(&variable)?;
        let chosen = self.profile.clone().or_else(|| variable(PROFILE_VARIABLE));
        let url_given = self.url.clone().or_else(|| {
            // A profile that a flag names has precedence over the environment.
            let environment = variable(URL_VARIABLE);
            environment.filter(|_| self.profile.is_none())
        });
        let is_complete = url_given.is_some() && key_of_environment.is_some() && chosen.is_none();
        if let (true, Some(url)) = (is_complete, &url_given) {
            // No profile is needed, so that a machine without a home folder works too.
            return Ok(Connection::of_environment(
                checked_url(url, &variable)?,
                key_of_environment,
            ));
        }
        let profiles = match load() {
            Ok(profiles) => profiles,
            Err(_) if chosen.is_none() && key_of_environment.is_some() => {
                let url = url_given.unwrap_or(DEFAULT_URL.to_owned());
                return Ok(Connection::of_environment(
                    checked_url(&url, &variable)?,
                    key_of_environment,
                ));
            }
            Err(error) => return Err(error),
        };
        let name = chosen
            .clone()
            .or_else(|| profiles.default_name().map(str::to_owned))
            .unwrap_or_else(|| DEFAULT_PROFILE.to_owned());
        if chosen.is_some() && !is_login && !profiles.has(&name) {
            return Err(CommandEnd::usage(format!(
                "--profile: {} has no profile {name:?}; it has {}\n  next: `farescan login --profile {name} --url URL` adds it",
                profiles.path().display(),
                profile_names(&profiles)
            )));
        }
        let profile_url = profiles.url(&name).unwrap_or(DEFAULT_URL).to_owned();
        let profile_url = checked_url(&profile_url, &variable)?;
        let url = match &url_given {
            Some(url) => checked_url(url, &variable)?,
            None => profile_url.clone(),
        };
        let stored = if url == profile_url && !is_login {
            profiles.key(&name)?
        } else {
            None
        };
        let is_stored =
            stored.is_some() && (self.profile.is_some() || key_of_environment.is_none());
        let key = if is_stored {
            stored
        } else {
            key_of_environment
        };
        Ok(Connection {
            url,
            profile: name,
            key,
            is_stored,
        })
    }
}

impl Connection {
    /// Without a stored profile.
    fn of_environment(url: String, key: Option<SecretString>) -> Self {
        Self {
            url,
            profile: DEFAULT_PROFILE.to_owned(),
            key,
            is_stored: false,
        }
    }

    /// The HTTP client.
    ///
    /// # Errors
    /// There is no key, or it cannot be one.
    pub fn client(&self) -> Result<ApiClient, Failure> {
        let Some(key) = &self.key else {
            return Err(CommandEnd::usage(format!(
                "there is no key for {}\n  next: set FARESCAN_API_KEY or FARESCAN_API_KEY_FILE, or run `farescan login --url {}`\n  (a service with --sandbox takes the key `sandbox-demo`)",
                self.url, self.url
            )));
        };
        ApiClient::new(&self.url, checked_key(key)?)
    }
}

fn profile_names(profiles: &Profiles) -> String {
    match profiles.names().as_slice() {
        [] => "none yet".to_owned(),
        names => names.join(", "),
    }
}

/// A key in the valid format, or an error that does not show it.
pub fn checked_key(key: &SecretString) -> Result<&str, Failure> {
    parse_key(key.expose_secret().as_bytes()).map_err(|error| match error {
        KeyFormatError::Malformed => {
            CommandEnd::usage("the key is not valid: expected 1 to 512 visible ASCII characters without white space")
        }
        KeyFormatError::Placeholder(placeholder) => CommandEnd::usage(format!(
            "the key is the placeholder `{placeholder}` of an example: use your own key of the marketplace"
        )),
    })
}

fn environment_key(
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<Option<SecretString>, Failure> {
    if let Some(key) = variable(KEY_VARIABLE) {
        return Ok(Some(key.trim().into()));
    }
    variable(KEY_FILE_VARIABLE)
        .map(|path| {
            read_key_file(Path::new(&path))
                .map_err(|error| format!("{KEY_FILE_VARIABLE}: {error}").into())
        })
        .transpose()
}

/// The address without its end slash.
fn checked_url(text: &str, variable: &impl Fn(&str) -> Option<String>) -> Result<String, Failure> {
    let expected = "expected the address of a service, such as http://127.0.0.1:8080 or https://fares.example.com";
    let url = Url::parse(text)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
        .ok_or_else(|| CommandEnd::usage(format!("--url: {expected}")))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(CommandEnd::usage(format!(
            "--url has a user name or a password; {expected}"
        )));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(CommandEnd::usage(format!(
            "--url has a `?` or `#`; {expected}"
        )));
    }
    let is_allowed = || variable(HTTP_VARIABLE).is_some_and(|value| value == "true");
    if url.scheme() == "http" && !is_this_machine(&url) && !is_allowed() {
        return Err(CommandEnd::usage(format!(
            "plain http would show the key to the network between here and {}: use https, or set {HTTP_VARIABLE}=true",
            url.host_str().unwrap_or_default()
        )));
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(
        args: &ConnectionArgs,
        environment: &[(&str, &str)],
        folder: &Path,
    ) -> Result<(String, Option<String>), String> {
        let variable = |name: &str| {
            environment
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| (*value).to_owned())
        };
        args.resolve_with(variable, || Profiles::in_folder_for_test(folder), false)
            .map(|connection| {
                let key = connection.key.map(|key| key.expose_secret().to_owned());
                (connection.url, key)
            })
            .map_err(|error| error.to_string())
    }

    fn args(url: Option<&str>, profile: Option<&str>) -> ConnectionArgs {
        ConnectionArgs {
            url: url.map(str::to_owned),
            profile: profile.map(str::to_owned),
        }
    }

    #[test]
    fn flag_then_environment_then_profile_then_default() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path();
        assert_eq!(
            resolve(&args(None, None), &[], folder),
            Ok((DEFAULT_URL.into(), None))
        );
        let mut profiles = Profiles::in_folder_for_test(folder).unwrap();
        profiles
            .store("work", "https://work.example", "work-key")
            .unwrap();
        profiles
            .store("home", "https://home.example", "home-key")
            .unwrap();
        let both = [
            (URL_VARIABLE, "https://env.example"),
            (KEY_VARIABLE, "env-key"),
        ];
        for (given, environment, url, key) in [
            (
                args(None, None),
                &[][..],
                "https://work.example",
                Some("work-key"),
            ),
            (
                args(None, Some("home")),
                &[],
                "https://home.example",
                Some("home-key"),
            ),
            (
                args(None, Some("home")),
                &both,
                "https://home.example",
                Some("home-key"),
            ),
            (
                args(None, None),
                &both,
                "https://env.example",
                Some("env-key"),
            ),
            (
                args(None, None),
                &both[1..],
                "https://work.example",
                Some("env-key"),
            ),
            (
                args(Some("https://a.example/"), None),
                &both,
                "https://a.example",
                Some("env-key"),
            ),
            (
                args(None, None),
                &[(PROFILE_VARIABLE, "home")],
                "https://home.example",
                Some("home-key"),
            ),
        ] {
            assert_eq!(
                resolve(&given, environment, folder),
                Ok((url.into(), key.map(str::to_owned))),
                "{given:?} {environment:?}"
            );
        }
    }

    #[test]
    fn a_stored_key_is_sent_only_to_its_own_address() {
        let dir = tempfile::tempdir().unwrap();
        let mut profiles = Profiles::in_folder_for_test(dir.path()).unwrap();
        profiles
            .store("work", "https://work.example", "work-key")
            .unwrap();
        let elsewhere = args(Some("https://elsewhere.example"), None);
        assert_eq!(
            resolve(&elsewhere, &[], dir.path()),
            Ok(("https://elsewhere.example".into(), None))
        );
        let same = args(Some("https://work.example/"), None);
        assert_eq!(
            resolve(&same, &[], dir.path()).unwrap().1.as_deref(),
            Some("work-key")
        );
    }

    #[test]
    fn an_unsafe_address_is_refused_without_showing_it() {
        let dir = tempfile::tempdir().unwrap();
        for (url, says) in [
            ("http://fares.example", "plain http would show the key"),
            (
                "https://me:hunter2@fares.example",
                "a user name or a password",
            ),
            ("https://fares.example/?key=hunter2", "has a `?`"),
            ("fares.example", "expected the address of a service"),
        ] {
            let error = resolve(&args(Some(url), None), &[], dir.path()).unwrap_err();
            assert!(
                error.contains(says) && !error.contains("hunter2"),
                "{error}"
            );
        }
        let allowed = [(HTTP_VARIABLE, "true")];
        assert!(
            resolve(
                &args(Some("http://fares.example"), None),
                &allowed,
                dir.path()
            )
            .is_ok()
        );
        assert!(resolve(&args(Some("http://[::1]:8080"), None), &[], dir.path()).is_ok());
    }
}
