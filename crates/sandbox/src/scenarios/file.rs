//! A scenario's file.

use std::ops::RangeInclusive;
use std::path::Path;

use jiff::civil::Date;
use serde::Deserialize;

use super::bounds::check_number;
use super::disturbances::{Outliers, SellOut, WithinDay};
use super::error::ScenarioError;
use super::events::FareEvents;
use super::ladder::Ladder;
use super::recorded::{RecordedFile, RecordedPrices};
use super::sales::Sales;
use super::structureless::Structureless;
use super::weekdays::{FlownWeekdays, WeekdaySteps};
use super::{FareRoute, MAX_HORIZON_DAYS};
use crate::world::money::SandboxCurrency;

/// The currency of a scenario that does not name one.
const DEFAULT_CURRENCY: &str = "USD";

/// How prices are made; docs/laboratory.md lists the fields.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    pub(super) currency: &'static SandboxCurrency,
    pub(super) horizon_days: u16,
    pub(super) family: Family,
    pub(super) weekdays: Option<WeekdaySteps>,
    pub(super) flown: Option<FlownWeekdays>,
    pub(super) events: Option<FareEvents>,
    pub(super) sales: Option<Sales>,
    pub(super) sell_out: Option<SellOut>,
    pub(super) within_day: Option<WithinDay>,
    pub(super) outliers: Option<Outliers>,
}

/// The base of a scenario's prices.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Family {
    Ladder(Ladder),
    Structureless(Structureless),
    Recorded(RecordedPrices),
}

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScenarioFile {
    currency: Option<String>,
    horizon_days: Option<u16>,
    ladder: Option<Ladder>,
    structureless: Option<Structureless>,
    recorded: Option<RecordedFile>,
    weekdays: Option<WeekdaySteps>,
    flown: Option<FlownWeekdays>,
    events: Option<FareEvents>,
    sales: Option<Sales>,
    sell_out: Option<SellOut>,
    within_day: Option<WithinDay>,
    outliers: Option<Outliers>,
}

impl Scenario {
    /// Reads a scenario's file, and the recorded prices that it names.
    ///
    /// # Errors
    /// A file cannot be read, or a field is unknown or has a value that is not allowed.
    pub fn read(file: &Path) -> Result<Self, ScenarioError> {
        let text = std::fs::read_to_string(file).map_err(|source| ScenarioError::Unreadable {
            file: file.to_owned(),
            source,
        })?;
        let folder = file.parent().unwrap_or(Path::new(""));
        Self::parse(&text, folder).map_err(|error| error.in_file(file))
    }

    /// Reads a scenario's text; recorded prices are looked for from `folder`.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn parse(text: &str, folder: &Path) -> Result<Self, ScenarioError> {
        let written: ScenarioFile = toml_edit::de::from_str(text)?;
        let horizon_days = written.horizon_days.unwrap_or(361);
        check_number(
            "horizon_days",
            horizon_days.into(),
            1.0..=MAX_HORIZON_DAYS.into(),
        )?;
        check_parts(&written)?;
        let family = read_family(&written, folder)?;
        let mut sales = written.sales;
        if let (Some(sales), Family::Ladder(ladder)) = (&mut sales, &family) {
            sales.follow(ladder.unchanged());
        }
        Ok(Self {
            currency: read_currency(written.currency.as_deref(), &family)?,
            horizon_days,
            family,
            weekdays: written.weekdays,
            flown: written.flown,
            events: written.events,
            sales,
            sell_out: written.sell_out,
            within_day: written.within_day,
            outliers: written.outliers,
        })
    }

    /// ISO 4217, upper-case.
    pub fn currency(&self) -> &'static str {
        self.currency.code
    }

    /// The routes and the days, first to last, of recorded prices; `None` for a drawn family, which
    /// has prices for every route and day.
    pub fn recorded(&self) -> Option<(Vec<FareRoute>, RangeInclusive<Date>)> {
        match &self.family {
            Family::Recorded(prices) => Some((prices.routes().cloned().collect(), prices.days())),
            Family::Ladder(_) | Family::Structureless(_) => None,
        }
    }

    /// The greatest relative error of a recorded price that was rounded to whole units; 0 for a
    /// drawn family.
    pub fn rounding(&self) -> f64 {
        match &self.family {
            Family::Recorded(prices) => prices.rounding,
            Family::Ladder(_) | Family::Structureless(_) => 0.0,
        }
    }
}

/// Checks every table but the family's.
fn check_parts(written: &ScenarioFile) -> Result<(), ScenarioError> {
    if let Some(weekdays) = &written.weekdays {
        weekdays.check()?;
    }
    if let Some(flown) = &written.flown {
        flown.check()?;
    }
    if let Some(events) = &written.events {
        events.check()?;
    }
    if let Some(sales) = &written.sales {
        sales.check()?;
    }
    if let Some(sell_out) = &written.sell_out {
        sell_out.check()?;
    }
    if let Some(within_day) = &written.within_day {
        within_day.check()?;
    }
    if let Some(outliers) = &written.outliers {
        outliers.check()?;
    }
    let needs_ladder = [
        ("weekdays", written.weekdays.is_some()),
        ("events", written.events.is_some()),
        ("sales", written.sales.is_some()),
    ];
    for (table, is_given) in needs_ladder {
        if is_given && written.ladder.is_none() {
            return Err(ScenarioError::field(
                table,
                "a scenario without [ladder]",
                "[ladder]: it moves fares by steps",
            ));
        }
    }
    Ok(())
}

fn read_family(written: &ScenarioFile, folder: &Path) -> Result<Family, ScenarioError> {
    match (&written.ladder, &written.structureless, &written.recorded) {
        (Some(ladder), None, None) => {
            ladder.check()?;
            Ok(Family::Ladder(ladder.clone()))
        }
        (None, Some(prices), None) => {
            prices.check()?;
            Ok(Family::Structureless(prices.clone()))
        }
        (None, None, Some(recorded)) => {
            recorded.check()?;
            RecordedPrices::read(recorded, folder).map(Family::Recorded)
        }
        (ladder, structureless, recorded) => {
            let given = [
                ladder.as_ref().map(|_| "[ladder]"),
                structureless.as_ref().map(|_| "[structureless]"),
                recorded.as_ref().map(|_| "[recorded]"),
            ];
            let given: Vec<_> = given.into_iter().flatten().collect();
            let found = if given.is_empty() {
                "none".to_owned()
            } else {
                given.join(" and ")
            };
            Err(ScenarioError::field(
                "the family",
                found,
                "exactly one of [ladder], [structureless] and [recorded]",
            ))
        }
    }
}

fn read_currency(
    written: Option<&str>,
    family: &Family,
) -> Result<&'static SandboxCurrency, ScenarioError> {
    let recorded = match family {
        Family::Recorded(prices) => Some(prices.currency),
        Family::Ladder(_) | Family::Structureless(_) => None,
    };
    let code = written
        .or(recorded.map(|currency| currency.code))
        .unwrap_or(DEFAULT_CURRENCY);
    let known = SandboxCurrency::find(code).ok_or_else(|| {
        let expected = format!("one of {}", SandboxCurrency::codes());
        ScenarioError::field("currency", code, expected)
    })?;
    match recorded {
        Some(recorded) if recorded.code != known.code => Err(ScenarioError::field(
            "currency",
            code,
            format!("{}, as in the recorded prices, or nothing", recorded.code),
        )),
        _ => Ok(known),
    }
}
