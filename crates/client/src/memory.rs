//! Protects the secrets in the process's memory from other processes and core files.

use super::Failure;

/// Disables core files, and prevents other processes of the same user from tracing this one or
/// reading its memory. Root still can (security.md, rule 17).
///
/// # Errors
/// The system refuses, which is not expected.
#[cfg(target_os = "linux")]
pub fn protect() -> Result<(), Failure> {
    use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
    let failed = |error| format!("cannot protect the process's memory: {error}");
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

/// Disables core files; the other protections exist on Linux only.
///
/// # Errors
/// The system refuses, which is not expected.
#[cfg(not(target_os = "linux"))]
pub fn protect() -> Result<(), Failure> {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    setrlimit(Resource::Core, none)
        .map_err(|error| format!("cannot disable core files: {error}").into())
}
