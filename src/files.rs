//! How many files this process may have open: sockets, connections to the database, files of the spool.

use std::sync::LazyLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What counts where the system sets no limit: far more than this program opens.
const UNLIMITED: u64 = 1 << 20;

/// How many files this process may have open. The first call raises the soft limit to the hard one: the usual soft limit of 1,024 is
/// there for programs that use `select`, which this one does not.
pub fn limit() -> u64 {
    static LIMIT: LazyLock<u64> = LazyLock::new(raised);
    *LIMIT
}

fn raised() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: maximum,
            maximum,
        },
    );
    if let Err(error) = &raised {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
    let limit = if raised.is_ok() { maximum } else { current };
    limit.unwrap_or(UNLIMITED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_becomes_the_hard_one() {
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
