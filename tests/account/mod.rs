//! A caller's account, through HTTP: what was spent, what the lanes allow, and a key that passes on to another.

mod quota;
mod restore;
pub mod rotate;
mod rotate_races;
mod usage;
