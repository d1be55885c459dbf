//! What a cron text means that it does not seem to say: pure. A warning forbids nothing.

use jiff::{SignedDuration, Timestamp};

use super::Schedule;

/// So many slots are looked at to see which days a schedule means.
const LOOKED_AT: usize = 60;

/// The fields that count steps, their places and how many values they have.
const STEPS: [(usize, &str, u32, &str); 2] = [(0, "minute", 60, "hour"), (1, "hour", 24, "day")];

/// The warnings of a schedule that was read, in words for people.
#[must_use]
pub fn warnings(cron: &str, zone: &str, now: Timestamp) -> Vec<String> {
    let fields: Vec<_> = cron.split_whitespace().collect();
    let mut warnings = Vec::new();
    for (place, name, size, whole) in STEPS {
        let steps = fields
            .get(place)
            .and_then(|field| field.strip_prefix("*/"))
            .and_then(|steps| steps.parse::<u32>().ok());
        match steps {
            Some(steps) if steps >= size => warnings.push(format!(
                "`*/{steps}` in the {name} field matches {name} 0 alone, once in each {whole}: steps begin anew with each {whole}"
            )),
            Some(steps) if steps > 1 && !size.is_multiple_of(steps) => warnings.push(format!(
                "`*/{steps}` in the {name} field begins anew with each {whole}: the last step of each is {} {name}s, not {steps}",
                size % steps
            )),
            _ => {}
        }
    }
    if let [_, _, day, month, weekday] = fields[..]
        && means_either_day(day, month, weekday, zone, now)
    {
        warnings.push(format!(
            "day of the month `{day}` and day of the week `{weekday}` are both given: it runs on the days that match either of them, \
             not only on those that match both"
        ));
    }
    warnings
}

/// Whether it has a day that its day of the week alone does not mean, though it gives both.
fn means_either_day(day: &str, month: &str, weekday: &str, zone: &str, now: Timestamp) -> bool {
    let at_noon = |day: &str| Schedule::read(&format!("0 12 {day} {month} {weekday}"), zone);
    if day == "*" || weekday == "*" {
        return false;
    }
    let (Some(schedule), Some(by_weekday)) = (at_noon(day), at_noon("*")) else {
        return false;
    };
    let is_slot =
        |slot: Timestamp| by_weekday.after(slot - SignedDuration::from_secs(1)) == Some(slot);
    schedule
        .slots(now)
        .take(LOOKED_AT)
        .any(|slot| !is_slot(slot))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warned(cron: &str) -> String {
        warnings(cron, "UTC", "2027-01-01T00:00:00Z".parse().unwrap()).join("; ")
    }

    #[test]
    fn what_does_not_mean_what_it_seems_is_said() {
        for cron in [
            "0 6 * * *",
            "*/30 * * * *",
            "0 */6 * * *",
            "30 7 * * mon-fri",
            "0 6 1 * *",
            "0 6 1,15 * *",
            "* * * * *",
        ] {
            assert_eq!(warned(cron), "", "{cron}");
        }
        assert!(
            warned("*/90 * * * *").contains("matches minute 0 alone, once in each hour"),
            "{}",
            warned("*/90 * * * *")
        );
        assert!(
            warned("*/25 * * * *").contains("the last step of each is 10 minutes, not 25"),
            "{}",
            warned("*/25 * * * *")
        );
        assert!(
            warned("0 */5 * * *").contains("the last step of each is 4 hours, not 5"),
            "{}",
            warned("0 */5 * * *")
        );
        assert!(
            warned("0 */48 * * *").contains("matches hour 0 alone, once in each day"),
            "{}",
            warned("0 */48 * * *")
        );
        let both = warned("0 6 13 * fri");
        assert!(
            both.contains("day of the month `13` and day of the week `fri` are both given"),
            "{both}"
        );
    }
}
