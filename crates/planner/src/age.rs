//! How old the stored prices of a question are.

use jiff::SignedDuration;

use crate::Candidate;

const DAY_SECONDS: f64 = 86_400.0;
/// The age that a date counts as that was never seen, for the patience.
const NEVER_SEEN: SignedDuration = SignedDuration::from_hours(24 * 7);

pub(super) fn days(age: SignedDuration) -> f64 {
    age.as_secs_f64().max(0.0) / DAY_SECONDS
}

/// The median age of what is stored, in days. A date that was never seen counts as one seen long ago.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "days of an age that is not negative"
)]
pub(super) fn age_in_days(candidates: &[Candidate]) -> usize {
    let age = |candidate: &Candidate| candidate.stored.map_or(NEVER_SEEN, |stored| stored.age);
    let mut ages: Vec<_> = candidates.iter().map(age).collect();
    ages.sort_unstable();
    ages.get(ages.len() / 2)
        .map_or(0, |age| days(*age).round() as usize)
}
