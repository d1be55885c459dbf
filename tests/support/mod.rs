//! What the tests stand on.

pub mod db;
