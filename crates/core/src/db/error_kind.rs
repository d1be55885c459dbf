//! What kind of error the database answered with: whether a retry may succeed, whether a lock was held, whether the
//! connection is lost.

use sqlx::error::DatabaseError;

use super::demoted_primary;

/// Whether the database is unavailable for now, so that a retry may succeed.
pub fn is_unavailable(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed => true,
        sqlx::Error::Database(error) => {
            let is_read_only = error
                .code()
                .is_some_and(|code| code == demoted_primary::READ_ONLY);
            if is_read_only {
                demoted_primary::record_refusal();
            }
            error.code().is_some_and(|code| is_unavailable_code(&code))
                || is_library_error(error.as_ref())
        }
        _ => false,
    }
}

/// Whether waiting for a row lock timed out.
pub fn is_locked(error: &sqlx::Error) -> bool {
    has_sqlstate(error, "55P03") // lock_not_available
}

/// Whether the statement exceeded its time limit.
pub fn is_cancelled(error: &sqlx::Error) -> bool {
    has_sqlstate(error, "57014") // query_canceled
}

/// Whether the transaction was rolled back because of a concurrent one (deadlock, serialization
/// failure). Nothing is stored, and the database is available.
pub fn is_conflict(error: &sqlx::Error) -> bool {
    error
        .as_database_error()
        .and_then(|error| error.code())
        .is_some_and(|code| is_rollback_code(&code))
}

/// Whether a retry may succeed: the database is unavailable, or a concurrent transaction
/// conflicted.
pub fn is_transient(error: &sqlx::Error) -> bool {
    is_unavailable(error) || is_conflict(error)
}

/// Whether the server cannot load its own files, as after a package upgrade at run time. Only a
/// restart of the server helps; until then the error counts as an unavailable database.
pub fn is_library_error(error: &dyn DatabaseError) -> bool {
    let code = error.code().unwrap_or_default();
    let names_a_library = ["$libdir", "could not load library", "incompatible library"]
        .iter()
        .any(|text| error.message().contains(text));
    // undefined_file, duplicate_file, system_error; with a library also the loader's error codes
    matches!(&*code, "58P01" | "58P02" | "58000")
        || (matches!(&*code, "XX000" | "42501" | "22023" | "42883" | "58030") && names_a_library)
}

/// Whether the error's connection is lost.
pub fn is_disconnected(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::Protocol(_) => true,
        // Connection exceptions, and sessions ended by the server.
        sqlx::Error::Database(error) => error
            .code()
            .is_some_and(|code| code.starts_with("08") || code.starts_with("57P0")),
        _ => false,
    }
}

/// Whether the server rejected the connection: unknown role or database, wrong password.
pub(super) fn is_refused(error: &sqlx::Error) -> bool {
    let code = error
        .as_database_error()
        .and_then(|error| error.code())
        .unwrap_or_default();
    code.starts_with("28") || code == "3D000"
}

/// Whether the server answered with this SQLSTATE.
pub fn has_sqlstate(error: &sqlx::Error, code: &str) -> bool {
    error
        .as_database_error()
        .and_then(|error| error.code())
        .is_some_and(|found| found == code)
}

/// SQLSTATEs of a database that is unavailable for now: connection exceptions, no resources,
/// shutdown or start, system errors, read only after a failover, idle timeout, missing tables, time
/// limits. Also those that a process meets while the schema has another version: an unknown
/// function or column, a changed result type or plan.
fn is_unavailable_code(code: &str) -> bool {
    matches!(code.get(..2), Some("08" | "53" | "57" | "58"))
        || matches!(
            code,
            demoted_primary::READ_ONLY
                | "25P03"
                | "42P01"
                | "55P03"
                | "42883"
                | "42703"
                | "42P13"
                | "0A000"
        )
}

/// SQLSTATEs of a rollback because of a concurrent transaction: 40001, 40P01 and their class.
fn is_rollback_code(code: &str) -> bool {
    code.starts_with("40")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transient_sqlstates_are_recognized() {
        for code in [
            "08006", "53300", "57P01", "57P03", "57014", "25006", "42P01", "55P03", "58030",
            "25P03",
        ] {
            assert!(is_unavailable_code(code), "{code}");
        }
        for code in [
            "23505", "42601", "55000", "25001", "40001", "40P01", "", "5",
        ] {
            assert!(!is_unavailable_code(code), "{code}");
        }
        assert!(
            is_rollback_code("40001") && is_rollback_code("40P01") && !is_rollback_code("57P01")
        );
    }
}
