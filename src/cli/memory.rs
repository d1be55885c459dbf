//! What a process does for the secrets in its memory: nobody of the same user reads it, and no core file holds it.

use super::Failure;

/// Forbids core files, and other processes of the same user to trace this one or to read its memory. Of root it is not hidden.
///
/// # Errors
/// The system refuses, which none should.
#[cfg(target_os = "linux")]
pub fn close() -> Result<(), Failure> {
    use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
    let failed = |error| format!("the process's memory cannot be closed to others: {error}");
    setrlimit(
        Resource::Core,
        Rlimit {
            current: Some(0),
            maximum: Some(0),
        },
    )
    .map_err(failed)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(failed)?;
    Ok(())
}

/// Forbids core files; what more there is to forbid is Linux's.
///
/// # Errors
/// The system refuses, which none should.
#[cfg(not(target_os = "linux"))]
pub fn close() -> Result<(), Failure> {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    setrlimit(Resource::Core, none)
        .map_err(|error| format!("core files cannot be forbidden: {error}").into())
}
