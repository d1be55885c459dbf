//! The images and the stack of docker-compose.yml, built and run by `script/containers`: minutes, so only with
//! `FARESCAN_SOAK=1`.

use std::process::Command;

use super::process::program;

#[test]
fn images_and_stack_run_without_a_daemon() {
    if std::env::var_os("FARESCAN_SOAK").is_none() {
        println!("left out without FARESCAN_SOAK=1");
        return;
    }
    let output = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/script/containers"))
        .arg("--program")
        .arg(program())
        .output()
        .unwrap();
    let (shown, said) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    println!("{shown}{said}");
    assert!(output.status.success());
    assert!(said.contains("farescan: skipped: ") || said.contains("built and tried"));
}
