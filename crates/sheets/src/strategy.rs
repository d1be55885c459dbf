//! What a strategy has searched, and what it declares about the rest.

use farescan_contract::scans::{
    FindGoal, FindProgress, PriceLimit, StrategyProgress, WatchProgress,
};

use crate::numbers::{count, counted};

/// What was found without searching all, and how sure that is.
pub fn sentence(progress: &StrategyProgress) -> String {
    match progress {
        StrategyProgress::Find(find) => found(find),
        StrategyProgress::Watch(watch) => match &watch.below {
            Some(below) => format!(
                "Watches for a price below {}. {}",
                below.get(),
                watched(watch)
            ),
            None => format!("Watches for the cheapest. {}", watched(watch)),
        },
    }
}

/// `10 searches instead of 91. 4 % chance that a cheaper date exists.`
fn found(find: &FindProgress) -> String {
    let searches = searches([find.searched, find.reused, find.unsearched]);
    let Some(below) = find.below.as_ref().map(PriceLimit::get) else {
        return [searches, chance(find)].concat();
    };
    match (&find.best, find.ended_by) {
        (Some(best), _) if best.price < below => {
            format!("One below {below} was found. {searches}")
        }
        (_, None) => format!("Whether one is below {below} is not decided. {searches}"),
        (_, Some(_)) => format!("None below {below} was found. {searches}{}", chance(find)),
    }
}

/// What a question says about the items that were not searched.
fn chance(find: &FindProgress) -> String {
    let what = match find.find {
        FindGoal::Cheapest => "a cheaper date exists",
        FindGoal::Below => "there is one",
    };
    match (find.risk_of_miss.or(find.risk_of_cheaper), find.counted) {
        (Some(_), _) if find.unsearched == 0 => " All were searched.".to_owned(),
        (Some(risk), Some(counted)) if counted.is_share(risk) => format!(
            " {} % chance that {what}: {} of {} such questions missed one.",
            percent(risk),
            count(counted.missed),
            count(counted.questions)
        ),
        (Some(risk), _) => nothing_known(risk),
        (None, _) if find.ended_by.is_none() => {
            format!(
                " The chance that {what} is counted at the end, if enough such questions are known."
            )
        }
        (None, _) => {
            format!(" The chance that {what} is unknown: too few such questions were counted.")
        }
    }
}

/// What a run of a watch says, and how it came to it.
pub fn watched(watch: &WatchProgress) -> String {
    let searches = searches([watch.searched, watch.reused, watch.unsearched]);
    let missed = match watch.risk_of_miss {
        None => " How often such a run misses something was not counted.".to_owned(),
        Some(_) if watch.unsearched == 0 => " All were searched.".to_owned(),
        Some(risk) => nothing_known(risk),
    };
    format!("{searches}{missed}")
}

fn nothing_known(risk: f64) -> String {
    let percent = percent(risk);
    format!(" Stored prices say nothing about those of now: {percent} % were not searched.")
}

/// `10 searches and 3 reused answers instead of 94.`
fn searches([searched, reused, unsearched]: [u32; 3]) -> String {
    let answers = match reused {
        0 => String::new(),
        reused => format!(" and {}", counted(reused, "reused answer")),
    };
    let all = match unsearched {
        0 => String::new(),
        unsearched => format!(" instead of {}", count(searched + reused + unsearched)),
    };
    format!("{}{answers}{all}.", counted(searched, "search"))
}

/// A share in percent, with one digit.
fn percent(share: f64) -> f64 {
    (share * 1e3).round() / 10.0
}
