//! `sqlx::migrate!` embeds the migrations but cannot tell Cargo about a file that was added: this does.

fn main() {
    println!("cargo:rerun-if-changed=../../migrations");
}
