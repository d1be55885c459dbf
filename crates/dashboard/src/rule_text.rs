//! The past prices of alert rules as parts of pages.

use farescan_sheets::numbers;
use maud::{Markup, html};

use super::parts;
use farescan_core::contract::monitors::PriceMark;

/// A price with its time.
pub(super) fn mark(mark: &PriceMark, currency: Option<&str>) -> Markup {
    html! { (numbers::amount_in(mark.price, currency)) " " span class="muted" { (parts::time(mark.at)) } }
}
