//! The dashboard: pages for people, rendered on the server.
//!
//! A page reads through the same functions as the handlers of `http`, as the caller whose key its
//! session holds and under the same limits. Each page is a file with a function `routes()`. Every
//! page works without JavaScript. With it, a running scan updates itself and times are shown in the
//! viewer's zone. No page loads anything from another host.
//!
//! Shared by the pages: the frame (`layout`), sessions (`session`), forms (`form`), errors
//! (`failure`), and small parts such as times and prices (`parts`).

mod assets;
mod failure;
mod form;
mod front_page;
mod layout;
mod login;
mod overview;
mod parts;
mod router;
mod session;

pub use self::router::routes;
