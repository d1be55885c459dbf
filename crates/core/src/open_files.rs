//! The limit of open files of this process: sockets, database connections, spool files.

use std::sync::LazyLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit where the system sets none: far more than this program opens.
const UNLIMITED: u64 = 1 << 20;

/// How many files this process may have open. The first call raises the soft limit to the hard one:
/// the usual soft limit of 1,024 protects programs that use `select`, which this one does not.
pub fn limit() -> u64 {
    static LIMIT: LazyLock<u64> = LazyLock::new(raise);
    *LIMIT
}

fn raise() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: maximum,
            maximum,
        },
    );
    if let Err(error) = &raised {
        tracing::warn!(%error, "raising the limit of open files failed");
    }
    let limit = if raised.is_ok() { maximum } else { current };
    limit.unwrap_or(UNLIMITED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_raises_the_soft_limit_to_the_hard_limit() {
        let hard = getrlimit(Resource::Nofile).maximum;
        assert_eq!(limit(), hard.unwrap_or(UNLIMITED));
        assert_eq!(
            getrlimit(Resource::Nofile),
            Rlimit {
                current: hard,
                maximum: hard
            }
        );
    }
}
