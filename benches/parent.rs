//! Processes that end with the one that started them, so that a bench that is killed leaves no service.

use std::path::Path;
use std::process::Command;

/// Sends SIGTERM to this process when cargo ends, as after a signal to `script/bench`.
pub fn end_with_cargo() -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))?;
    Ok(())
}

/// A command that gets SIGTERM when this process is killed and cannot stop it; with util-linux.
pub fn ending_with_parent(program: &Path) -> Command {
    let wrapper = Path::new("/usr/bin/setpriv");
    if !wrapper.is_file() {
        return Command::new(program);
    }
    let mut command = Command::new(wrapper);
    command.args(["--pdeathsig", "TERM", "--"]).arg(program);
    command
}
