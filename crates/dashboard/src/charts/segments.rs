//! A horizontal bar of several parts: what is used, kept in reserve and left of a plan.

use maud::{Markup, html};

use super::{Unit, percent};

/// A part of the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment<'a> {
    /// What it is: `used`.
    pub name: &'a str,
    /// Its class in the style sheet, after `segment-`.
    pub class: &'a str,
    /// How much of the whole it is.
    pub count: u64,
}

/// The parts beside each other, with a legend. Nothing if the whole is 0. Parts that come to more
/// than the whole are cut at its end.
pub fn segments(what: &str, whole: u64, parts: &[Segment<'_>]) -> Markup {
    if whole == 0 {
        return html! {};
    }
    let number = |number: u64| Unit::Count.label(number.into());
    let words: Vec<_> = parts
        .iter()
        .map(|part| format!("{} {}", number(part.count), part.name))
        .collect();
    let text = format!("{what}: {} of {}", words.join(", "), number(whole));
    let mut begins = 0;
    let mut drawn = Vec::new();
    for part in parts {
        let count = part.count.min(whole - begins);
        drawn.push((part, share(begins, whole), share(count, whole)));
        begins += count;
    }
    html! {
        div class="segments" {
            svg role="img" aria-label=(text) {
                title { (text) }
                rect class="segment-rest" x="0" y="0" width="100%" height="100%" {}
                @for (part, begin, share) in &drawn {
                    rect class=(format!("segment-{}", part.class)) x=(percent(*begin)) y="0" width=(percent(*share)) height="100%" {}
                }
            }
            ul class="chart-legend" {
                @for part in parts {
                    li {
                        span class=(format!("chart-key chart-key-{}", part.class)) {}
                        (number(part.count)) " " (part.name)
                    }
                }
            }
        }
    }
}

fn share(part: u64, whole: u64) -> f64 {
    #[expect(
        clippy::cast_precision_loss,
        reason = "a place on a screen needs few digits"
    )]
    let share = part as f64 / whole as f64;
    share
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn part(name: &'static str, count: u64) -> Segment<'static> {
        Segment {
            name,
            class: name,
            count,
        }
    }

    #[test]
    fn parts_stand_beside_each_other_within_the_whole() {
        let page = segments("Plan", 200, &[part("used", 150), part("reserve", 100)]).into_string();
        assert!(page.contains(r#"class="segment-used" x="0%" y="0" width="75%""#));
        assert!(
            page.contains(r#"class="segment-reserve" x="75%" y="0" width="25%""#),
            "cut at the end"
        );
        assert!(page.contains("Plan: 150 used, 100 reserve of 200"));
    }

    #[test]
    fn a_whole_of_nothing_is_not_drawn() {
        assert_eq!(segments("Plan", 0, &[part("used", 1)]).into_string(), "");
    }
}
