//! How to connect: the URL of an external server or the embedded one, the password, the settings of every session, pools.

use std::net::IpAddr;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions, PgSslMode};
use sqlx::{ConnectOptions, Connection};

use super::embedded::{self, EmbeddedServer, ServerOptions};
use super::error_kind::has_sqlstate;
use super::{DbError, REQUEST_LOCK_TIMEOUT, demoted_primary};
use crate::config::DatabaseConfig;

/// The embedded server's database, and its only role.
const EMBEDDED_NAME: &str = "farescan";

/// Settings of every session, sent at connect. A URL's own `?options[…]=…` takes precedence.
const SESSION: [(&str, &str); 3] = [
    // A stalled transaction must not hold row locks: leases would expire behind it.
    ("idle_in_transaction_session_timeout", "30s"),
    ("statement_timeout", "30s"),
    // Statements are short; compiling one costs more than it saves.
    ("jit", "off"),
];

/// The options in a `DATABASE_URL`; `sslmode` decides about TLS.
pub(super) fn parse_url(url: &SecretString) -> Result<PgConnectOptions, DbError> {
    let url = url.expose_secret().trim();
    // sqlx accepts any scheme, `mysql://` included.
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        return Err(DbError::Url(sqlx::Error::Configuration(
            "it does not begin with postgres://".into(),
        )));
    }
    let options = PgConnectOptions::from_str(url).map_err(DbError::Url)?;
    if may_be_unencrypted(&options) {
        tracing::warn!(
            "the database at {} may be used without TLS, because the URL sets no stricter `sslmode`: add \
             `?sslmode=verify-full`, or `?sslmode=disable` where nobody can listen",
            server_address(&options)
        );
    }
    Ok(options)
}

/// Whether the server, or a host in between, decides whether the connection is encrypted, without
/// consent in the URL.
fn may_be_unencrypted(options: &PgConnectOptions) -> bool {
    let host = options.get_host();
    let is_local = options.get_socket().is_some()
        || host.starts_with('/')
        || host == "localhost"
        || host
            .trim_matches(['[', ']'])
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback());
    !is_local && matches!(options.get_ssl_mode(), PgSslMode::Allow | PgSslMode::Prefer)
}

/// Host or socket folder, and port.
pub fn server_address(options: &PgConnectOptions) -> String {
    let host = options.get_socket().map_or_else(
        || options.get_host().to_owned(),
        |folder| folder.display().to_string(),
    );
    format!("{host} port {}", options.get_port())
}

/// The same with database and role.
pub(super) fn database_address(options: &PgConnectOptions) -> String {
    let name = options
        .get_database()
        .unwrap_or_else(|| options.get_username());
    format!(
        "`{name}` as `{}` on {}",
        options.get_username(),
        server_address(options)
    )
}

/// A pool that connects on first use.
pub(super) fn lazy_pool(
    connections: u32,
    options: PgConnectOptions,
    acquire_timeout: Duration,
) -> PgPool {
    let pool = PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(acquire_timeout);
    let pool = pool.before_acquire(|_, about| {
        Box::pin(std::future::ready(Ok(!demoted_primary::predates_refusal(
            about.age,
        ))))
    });
    pool.connect_lazy_with(options)
}

/// The options of the replica, if configured.
pub(super) fn replica(config: &DatabaseConfig) -> Result<Option<PgConnectOptions>, DbError> {
    let Some(url) = config
        .read_url
        .as_ref()
        .filter(|url| !url.expose_secret().trim().is_empty())
    else {
        return Ok(None);
    };
    let options = parse_url(url).map_err(|_| DbError::ReadUrl)?;
    let options = with_password(options, config.database_password_file.as_deref())?;
    Ok(Some(
        with_session(options, REQUEST_LOCK_TIMEOUT)
            .options([("default_transaction_read_only", "on")]),
    ))
}

/// Sets the password from a file, without a trailing newline. It overrides one in the URL.
pub(super) fn with_password(
    options: PgConnectOptions,
    file: Option<&Path>,
) -> Result<PgConnectOptions, DbError> {
    let Some(path) = file else { return Ok(options) };
    let text = std::fs::read_to_string(path).map_err(|source| DbError::Password {
        path: path.to_owned(),
        source,
    })?;
    let text = SecretString::from(text);
    Ok(options.password(text.expose_secret().trim_end_matches(['\n', '\r'])))
}

pub(super) async fn open_embedded(
    config: &DatabaseConfig,
) -> Result<(PgConnectOptions, Option<EmbeddedServer>), DbError> {
    let options = ServerOptions {
        home: match &config.data_dir {
            Some(home) => home.clone(),
            None => embedded::default_home()?,
        },
        pg_bin: config.pg_bin.clone(),
        durability: embedded::Durability::Full,
    };
    // A blocking task is not cancelled with this future, so the guard is always created and
    // dropped.
    let server = tokio::task::spawn_blocking(move || EmbeddedServer::start(&options))
        .await
        .map_err(|panic| sqlx::Error::Io(std::io::Error::other(panic)))??;
    let options = server.connect_options().database(EMBEDDED_NAME);
    ensure_database(&server, &options).await?;
    Ok((options, Some(server)))
}

/// Creates the embedded server's database if it is missing. Concurrent calls are safe.
async fn ensure_database(
    server: &EmbeddedServer,
    options: &PgConnectOptions,
) -> Result<(), sqlx::Error> {
    match options.connect().await {
        Ok(connection) => return connection.close().await,
        Err(error) if has_sqlstate(&error, "3D000") => {} // invalid_catalog_name: not made yet
        Err(error) => return Err(error),
    }
    let mut connection = server
        .connect_options()
        .database("postgres")
        .connect()
        .await?;
    match sqlx::query("create database farescan")
        .execute(&mut connection)
        .await
    {
        // duplicate_database, unique_violation: another process was first
        Err(error) if !has_sqlstate(&error, "42P04") && !has_sqlstate(&error, "23505") => {
            Err(error)
        }
        Ok(_) | Err(_) => connection.close().await,
    }
}

/// Adds the session settings that the URL does not set.
pub(super) fn with_session(
    options: PgConnectOptions,
    lock_timeout: &'static str,
) -> PgConnectOptions {
    let own = options.get_options().unwrap_or_default().to_owned();
    let missing = SESSION
        .into_iter()
        .chain([("lock_timeout", lock_timeout)])
        .filter(|(name, _)| !own.contains(name));
    options.options(missing).application_name("farescan")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn possibly_unencrypted_remote_connections_are_detected() {
        for (rest, may_be) in [
            ("db.example.com/x", true),
            ("10.0.0.7/x?sslmode=allow", true),
            ("[2001:db8::1]/x", true),
            ("db.example.com/x?sslmode=disable", false),
            ("db.example.com/x?sslmode=require", false),
            ("db.example.com/x?sslmode=verify-full", false),
            ("localhost/x", false),
            ("127.0.0.1:5433/x", false),
            ("[::1]/x", false),
            ("%2Fvar%2Frun%2Fpostgresql/x", false),
            ("localhost/x?host=/var/run/postgresql", false),
        ] {
            let options = parse_url(&format!("postgres://me@{rest}").into()).unwrap();
            assert_eq!(may_be_unencrypted(&options), may_be, "{rest}");
        }
    }

    #[test]
    fn a_password_file_is_read_without_its_newline() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        std::fs::write(&file, "pass word\n").unwrap();
        let options = || PgConnectOptions::from_str("postgres://me@localhost/x").unwrap();
        let given = with_password(options(), Some(&file)).unwrap();
        assert!(given.to_url_lossy().as_str().contains("me:pass%20word@"));
        let missing = with_password(options(), Some(&folder.path().join("none")))
            .unwrap_err()
            .to_string();
        assert!(
            missing.starts_with("FARESCAN_DATABASE_PASSWORD_FILE: ") && missing.contains("none"),
            "{missing}"
        );
    }

    #[test]
    fn session_settings_do_not_override_the_url() {
        let url = "postgres://me@localhost/x?options[statement_timeout]=5min";
        let options = with_session(
            PgConnectOptions::from_str(url).unwrap(),
            REQUEST_LOCK_TIMEOUT,
        );
        let set = options.get_options().unwrap();
        assert!(
            set.contains("statement_timeout=5min") && !set.contains("statement_timeout=30s"),
            "{set}"
        );
        assert!(
            set.contains("idle_in_transaction_session_timeout=30s") && set.contains("jit=off"),
            "{set}"
        );
        assert!(set.contains("lock_timeout=1s"), "{set}");
    }
}
