//! The families of a study, and their worlds: a seed and a route each.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use farescan::sandbox::scenarios::{FareRoute, PriceProcess, Scenario, ScenarioError};
use jiff::civil::{Date, date};

/// The built-in families with their files.
const BUILT_IN: [(&str, &str); 11] = [
    ("ladder", include_str!("scenarios/ladder.toml")),
    ("sales", include_str!("scenarios/sales.toml")),
    ("weekdays", include_str!("scenarios/weekdays.toml")),
    ("events", include_str!("scenarios/events.toml")),
    ("unsteady", include_str!("scenarios/unsteady.toml")),
    ("outliers", include_str!("scenarios/outliers.toml")),
    ("everything", include_str!("scenarios/everything.toml")),
    ("low cost", include_str!("scenarios/low_cost.toml")),
    ("long haul", include_str!("scenarios/long_haul.toml")),
    (
        "some weekdays",
        include_str!("scenarios/some_weekdays.toml"),
    ),
    (
        "structureless",
        include_str!("scenarios/structureless.toml"),
    ),
];

/// The days of drawn families on which questions are asked.
const DAYS: RangeInclusive<Date> = date(2027, 1, 4)..=date(2027, 12, 31);

/// Rounding that does not change whether a price is within 1 % of the cheapest, but rarely.
const MAX_ROUNDING: f64 = 0.001;

/// One scenario under its name.
#[derive(Debug, Clone)]
pub struct StudyFamily {
    pub name: String,
    scenario: Arc<Scenario>,
}

/// How many worlds of a family are played.
#[derive(Debug, Clone, Copy)]
pub struct Worlds {
    pub first_seed: u64,
    pub seeds: u64,
    /// Questions for each world, on different days.
    pub starts: usize,
}

/// Prices of one route.
#[derive(Debug, Clone)]
pub struct World {
    pub prices: PriceProcess,
    pub route: FareRoute,
    /// The days on which it has prices.
    pub days: RangeInclusive<Date>,
    /// Different for each world, for draws of the study itself.
    pub number: u64,
}

impl StudyFamily {
    /// The families of the files, or the built-in ones.
    pub fn all(files: &[PathBuf]) -> Result<Vec<Self>, ScenarioError> {
        let family = |name: &str, scenario| Self {
            name: name.to_owned(),
            scenario: Arc::new(scenario),
        };
        if files.is_empty() {
            return BUILT_IN
                .iter()
                .map(|(name, text)| Ok(family(name, Scenario::parse(text, Path::new(""))?)))
                .collect();
        }
        files
            .iter()
            .map(|file| {
                let name = file
                    .file_stem()
                    .unwrap_or(file.as_os_str())
                    .to_string_lossy();
                let scenario = Scenario::read(file)?;
                if scenario.rounding() > MAX_ROUNDING {
                    eprintln!(
                        "{name}: whole units change recorded prices by up to {:.1} %; `scale = 100` in [recorded] keeps cents",
                        scenario.rounding() * 100.0
                    );
                }
                Ok(family(&name, scenario))
            })
            .collect()
    }

    /// Its worlds: one for each seed, or for each recorded route.
    pub fn worlds(&self, worlds: &Worlds) -> Vec<World> {
        let world = |number: u64, seed: u64, route: FareRoute, days| World {
            prices: PriceProcess::new(Arc::clone(&self.scenario), seed),
            route,
            days,
            number,
        };
        match self.scenario.recorded() {
            Some((routes, days)) => (0..)
                .zip(routes)
                .map(|(number, route)| world(number, worlds.first_seed, route, days.clone()))
                .collect(),
            None => (worlds.first_seed..worlds.first_seed + worlds.seeds)
                .map(|seed| world(seed, seed, FareRoute::new("STN", "BGY"), DAYS))
                .collect(),
        }
    }
}

/// Plays worlds on all cores; the results are in the order of the worlds.
pub fn in_parallel<T: Send>(worlds: &[World], play: impl Fn(&World) -> Vec<T> + Sync) -> Vec<T> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let share = worlds.len().div_ceil(cores).max(1);
    std::thread::scope(|scope| {
        let threads: Vec<_> = worlds
            .chunks(share)
            .map(|worlds| scope.spawn(|| worlds.iter().flat_map(&play).collect::<Vec<_>>()))
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    })
}
