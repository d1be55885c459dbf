//! The processor time of this thread: limits on computing must not depend on what else the machine
//! does.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The processor time that this thread has used.
pub(super) fn thread_time() -> Duration {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    // A clock that ran backwards, or nanoseconds outside of a second, would be a defect of the system.
    Duration::try_from(used).unwrap_or_default()
}
