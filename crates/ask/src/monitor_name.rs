//! The name of a monitor that watches a question.

use crate::dates::shown;
use crate::places::city_of;
use crate::question::{Question, QuestionSubject};

/// The longest name that the API takes, in characters.
const MAX_CHARS: usize = 200;

impl Question {
    /// `TLV → London, 1 Mar to 31 Mar 2027`; without dates where each run has others.
    pub(crate) fn monitor_name(&self, rolls: bool) -> String {
        let subject = match &self.subject {
            QuestionSubject::Flights { from, to, .. } => {
                let arrow = if self.nights.is_empty() { "→" } else { "⇄" };
                format!("{} {arrow} {}", end(from), end(to))
            }
            QuestionSubject::Hotel { name, .. } => name.clone(),
            QuestionSubject::Hotels { destination, .. } => format!("Hotels in {destination}"),
        };
        let dates = (!rolls).then(|| format!(", {}", shown(self.from, self.to)));
        let dates = dates.unwrap_or_default();
        let markets = if self.compares_markets() {
            ": markets"
        } else {
            ""
        };
        let most = MAX_CHARS.saturating_sub(dates.chars().count() + markets.len());
        format!("{}{dates}{markets}", cut(&subject, most))
    }
}

/// A city if these are all of its several airports, otherwise their codes.
fn end(airports: &[String]) -> String {
    city_of(airports).map_or_else(|| airports.join(", "), str::to_owned)
}

fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(most.saturating_sub(1)).collect();
    cut.push('…');
    cut
}
