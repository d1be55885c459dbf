//! A scenario's file.

use std::ops::RangeInclusive;
use std::path::Path;

use jiff::civil::Date;
use serde::Deserialize;

use super::bounds::Checked as _;
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
    /// Its effects; the tables of the families are taken out.
    pub(super) file: ScenarioFile,
}

/// The base of a scenario's prices.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Family {
    Ladder(Ladder),
    Structureless(Structureless),
    Recorded(RecordedPrices),
}

impl Family {
    fn recorded(&self) -> Option<&RecordedPrices> {
        match self {
            Self::Recorded(prices) => Some(prices),
            Self::Ladder(_) | Self::Structureless(_) => None,
        }
    }
}

/// The file as it is written.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScenarioFile {
    currency: Option<String>,
    horizon_days: Option<u16>,
    ladder: Option<Ladder>,
    structureless: Option<Structureless>,
    recorded: Option<RecordedFile>,
    pub(super) weekdays: Option<WeekdaySteps>,
    pub(super) flown: Option<FlownWeekdays>,
    pub(super) events: Option<FareEvents>,
    pub(super) sales: Option<Sales>,
    pub(super) sell_out: Option<SellOut>,
    pub(super) within_day: Option<WithinDay>,
    pub(super) outliers: Option<Outliers>,
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
        let mut file: ScenarioFile = toml_edit::de::from_str(text)?;
        let horizon_days = file.horizon_days.unwrap_or(361);
        horizon_days.check("horizon_days", 1.0..=MAX_HORIZON_DAYS.into())?;
        file.check()?;
        let family = file.take_family(folder)?;
        Ok(Self {
            currency: read_currency(file.currency.as_deref(), &family)?,
            horizon_days,
            family,
            file,
        })
    }

    /// ISO 4217, upper-case.
    pub fn currency(&self) -> &'static str {
        &self.currency.code
    }

    /// The routes and the days, first to last, of recorded prices; `None` for a drawn family, which
    /// has prices for every route and day.
    pub fn recorded(&self) -> Option<(Vec<FareRoute>, RangeInclusive<Date>)> {
        let prices = self.family.recorded()?;
        Some((prices.routes().cloned().collect(), prices.days()))
    }

    /// The greatest relative error of a recorded price that was rounded to whole units; 0 for a
    /// drawn family.
    pub fn rounding(&self) -> f64 {
        self.family.recorded().map_or(0.0, |prices| prices.rounding)
    }
}

impl ScenarioFile {
    /// Checks every table but the family's.
    fn check(&self) -> Result<(), ScenarioError> {
        let checks = [
            self.weekdays.as_ref().map(WeekdaySteps::check),
            self.flown.as_ref().map(FlownWeekdays::check),
            self.events.as_ref().map(FareEvents::check),
            self.sales.as_ref().map(Sales::check),
            self.sell_out.as_ref().map(SellOut::check),
            self.within_day.as_ref().map(WithinDay::check),
            self.outliers.as_ref().map(Outliers::check),
        ];
        checks.into_iter().flatten().collect::<Result<(), _>>()?;
        for (table, is_given) in [
            ("weekdays", self.weekdays.is_some()),
            ("events", self.events.is_some()),
            ("sales", self.sales.is_some()),
        ] {
            ScenarioError::unless(
                !is_given || self.ladder.is_some(),
                table,
                "a scenario without [ladder]",
                "[ladder]: it moves fares by steps",
            )?;
        }
        Ok(())
    }

    fn take_family(&mut self, folder: &Path) -> Result<Family, ScenarioError> {
        let families = (
            self.ladder.take(),
            self.structureless.take(),
            self.recorded.take(),
        );
        match families {
            (Some(ladder), None, None) => {
                ladder.check()?;
                Ok(Family::Ladder(ladder))
            }
            (None, Some(prices), None) => {
                prices.check()?;
                Ok(Family::Structureless(prices))
            }
            (None, None, Some(recorded)) => {
                RecordedPrices::read(&recorded, folder).map(Family::Recorded)
            }
            (ladder, structureless, recorded) => {
                let given = [
                    ladder.map(|_| "[ladder]"),
                    structureless.map(|_| "[structureless]"),
                    recorded.map(|_| "[recorded]"),
                ];
                let given: Vec<_> = given.into_iter().flatten().collect();
                let found = match given.as_slice() {
                    [] => "none".to_owned(),
                    given => given.join(" and "),
                };
                Err(ScenarioError::field(
                    "the family",
                    found,
                    "exactly one of [ladder], [structureless] and [recorded]",
                ))
            }
        }
    }
}

fn read_currency(
    written: Option<&str>,
    family: &Family,
) -> Result<&'static SandboxCurrency, ScenarioError> {
    let recorded = family.recorded().map(|prices| prices.currency);
    let code = written
        .or(recorded.map(|currency| currency.code.as_str()))
        .unwrap_or(DEFAULT_CURRENCY);
    let known = SandboxCurrency::find(code).ok_or_else(|| {
        let expected = format!("one of {}", SandboxCurrency::codes());
        ScenarioError::field("currency", code, expected)
    })?;
    let expected = recorded.unwrap_or(known);
    ScenarioError::unless(
        expected == known,
        "currency",
        code,
        format!("{}, as in the recorded prices, or nothing", expected.code),
    )?;
    Ok(known)
}
