//! Alert rules in requests.
//!
//! Here: one entry for each type of rule, with its body, and [`Rule`], one body with its `type`. Not
//! here: the evaluation (`monitors::alerts`).

use crate::body_schema::impl_to_schema;
use crate::field::{Components, FieldKind, FieldSpec, FieldValue, invalid_value};
use crate::primitives::{CountryCode, bounded_integer};
use crate::request_body::{field_groups, grouped_body};
use crate::string_enum::string_enum;
use crate::validation::{ValidationError, ValidationErrors};
use rust_decimal::Decimal;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Number, Value};
use std::borrow::Cow;
use utoipa::openapi::Ref;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, Type};

string_enum! {
    /// What a rule evaluates.
    pub enum RuleScope {
        /// The best price of the whole scan.
        Scan = "scan",
        /// Each combination of the swept fields separately.
        Cell = "cell",
    }
}

/// Declares a number type with bounds, kept as written.
macro_rules! bounded_number {
    ($(#[doc = $doc:literal])+ pub struct $name:ident, $expected:literal, $accepts:expr, $schema:expr) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub struct $name(Number);

        impl $name {
            /// The number, for comparisons.
            pub fn get(&self) -> Decimal {
                let text = self.0.to_string();
                // A number too small for `Decimal` counts as 0.
                text.parse().or_else(|_| Decimal::from_scientific(&text)).unwrap_or_default()
            }
        }

        impl FieldValue for $name {
            fn expected() -> Cow<'static, str> {
                $expected.into()
            }

            fn read(value: &Value) -> Result<Self, ValidationErrors> {
                let accepts: fn(f64) -> bool = $accepts;
                match value {
                    Value::Number(number) if number.as_f64().is_some_and(accepts) => Ok(Self(number.clone())),
                    _ => Err(invalid_value::<Self>(value)),
                }
            }

            fn to_value(&self) -> Value {
                Value::Number(self.0.clone())
            }

            fn schema() -> Schema {
                $schema(ObjectBuilder::new().schema_type(Type::Number)).into()
            }
        }
    };
}

/// The largest amount: larger numbers are not exact in JSON.
const MAX_AMOUNT: f64 = 9_007_199_254_740_991.0;

bounded_number! {
    /// A price in major units, in the currency of the scan's request.
    pub struct Amount, "a number above 0, at most 9007199254740991",
    |amount| amount > 0.0 && amount <= MAX_AMOUNT,
    |schema: ObjectBuilder| schema.exclusive_minimum(Some(0_u8)).maximum(Some(MAX_AMOUNT))
}

bounded_number! {
    /// Percent of a price.
    pub struct Percent, "a number above 0, at most 1000",
    |percent| percent > 0.0 && percent <= 1000.0,
    |schema: ObjectBuilder| schema.exclusive_minimum(Some(0_u8)).maximum(Some(1000_u16))
}

bounded_number! {
    /// The percentage by which the price must recover before a rule can fire again.
    pub struct RearmPercent, "a number from 0 to 100",
    |percent| (0.0..=100.0).contains(&percent),
    |schema: ObjectBuilder| schema.minimum(Some(0_u8)).maximum(Some(100_u8))
}

bounded_number! {
    /// A percentile among past prices, from the cheapest.
    pub struct Percentile, "a number from 0 to 90",
    |percentile| (0.0..=90.0).contains(&percentile),
    |schema: ObjectBuilder| schema.minimum(Some(0_u8)).maximum(Some(90_u8))
}

impl RearmPercent {
    /// The documented default.
    pub fn two() -> Self {
        Self(2.into())
    }

    fn of(percent: Decimal) -> Self {
        Self(serde_json::from_str(&percent.normalize().to_string()).unwrap_or_else(|_| 0.into()))
    }
}

bounded_integer! {
    /// A number of consecutive runs.
    pub struct Runs(u16): 1..=365;
}

bounded_integer! {
    /// The number of previous runs with a price that a rule compares.
    pub struct LookbackRuns(u16): 1..=90;
}

bounded_integer! {
    /// How many more searches have to find a price before a rule fires.
    pub struct Confirm(u8): 0..=1;
}

bounded_integer! {
    /// A number of days before a price was seen.
    pub struct LookbackDays(u16): 1..=365;
}

impl LookbackDays {
    /// What the dashboard and the terminal fill in.
    pub const THIRTY: Self = Self(30);
}

// The fields that rules share.
field_groups! { $ rule_fields {
    ..scope {
        /// What the rule evaluates.
        scope: RuleScope = RuleScope::Scan => scope_or_default;
    }
    ..confirm {
        /// 1: before the rule fires, the search that found the price is made once more, and the
        /// rule fires only if it is still true then. That costs a request or more.
        confirm: Confirm = Confirm(0) => confirm_or_default;
    }
} }

/// Declares the rules: the `type` of each, its name and its body, with groups of `rule_fields`.
macro_rules! alert_rules {
    ($( $(#[doc = $doc:literal])+ $word:literal => $name:ident($body:ident) $fields:tt )+) => {
        $(
            grouped_body! { { rule_fields } $(#[doc = $doc])+ pub struct $body for $word $fields }
        )+

        string_enum! {
            /// The type of a rule.
            pub enum RuleType {
                $(
                    /// The rule of this name.
                    $name = $word,
                )+
            }
        }

        /// When to send an alert: `{"type": …}` with the fields of that type.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Rule {
            $(
                /// The rule of this name.
                $name($body),
            )+
        }

        impl RuleType {
            /// The names of the bodies.
            #[cfg(test)]
            pub(crate) const BODIES: &[&str] = &[$( stringify!($body) ),+];

            /// The fields of a rule of this type.
            pub const fn fields(self) -> &'static [FieldSpec] {
                match self {
                    $( Self::$name => $body::FIELDS, )+
                }
            }
        }

        impl Rule {
            /// Its `type`.
            pub const fn rule_type(&self) -> RuleType {
                match self {
                    $( Self::$name(_) => RuleType::$name, )+
                }
            }

            fn from_body(rule_type: RuleType, body: &Map<String, Value>) -> Result<Self, ValidationErrors> {
                match rule_type {
                    $( RuleType::$name => $body::from_body(body).map(Self::$name), )+
                }
            }

            fn body(&self) -> Map<String, Value> {
                match self {
                    $( Self::$name(body) => body.to_body(), )+
                }
            }

            fn bodies() -> Vec<(&'static str, Schema)> {
                vec![$( (
                    concat!(stringify!($name), "Rule"),
                    with_type(RuleType::$name, $body::schema()),
                ) ),+]
            }
        }
    };
}

alert_rules! {
    /// Fires when the price is below an amount.
    "price_below" => PriceBelow(PriceBelow) {
        required {
            /// In the currency of the scan's request.
            amount: Amount;
        }
        optional {
            ..scope;
            /// The rule can fire again after the price was this percentage above the amount.
            rearm_percent: RearmPercent = RearmPercent::two() => rearm_percent_or_default;
            ..confirm;
        }
        example { "amount": 200, "rearm_percent": 5 }
    }

    /// Fires when the price is at least `percent` below the lowest of the last runs, and again when
    /// it is `percent` below the price at which it last fired. It does not fire in the first run.
    "drop_percent" => DropPercent(DropPercent) {
        required {
            /// By how many percent.
            percent: Percent;
        }
        optional {
            /// The number of previous runs with a price whose lowest price is compared.
            runs: LookbackRuns = LookbackRuns(7) => runs_or_default;
            ..scope;
            /// The rule can fire again after the price was this percentage above the price at which
            /// it fires. A further drop by `percent` fires without that.
            rearm_percent: RearmPercent = RearmPercent::two() => rearm_percent_or_default;
            ..confirm;
        }
        example { "percent": 10, "runs": 7 }
    }

    /// Fires when the provider's verdict on the price becomes `low`.
    "verdict" => Verdict(VerdictLow) {
        required {}
        optional {
            ..scope;
            ..confirm;
        }
        example {}
    }

    /// Fires when the price is lower than every stored price of the same product and dates of the
    /// last days, from any scan. It does not fire without an earlier price, nor for a low that is
    /// less than `rearm_percent` below the price at which it last fired.
    "new_low" => NewLow(NewLow) {
        required {
            /// How many days back the price is compared.
            days: LookbackDays;
        }
        optional {
            ..scope;
            /// The rule can fire again after the price was this percentage above the lowest, or for
            /// a low this percentage below the price at which it last fired; with 0 for every new
            /// low.
            rearm_percent: RearmPercent = RearmPercent::two() => rearm_percent_or_default;
            ..confirm;
        }
        example { "days": 30 }
    }

    /// Fires when there is a price after a complete answer without one. It does not fire in the
    /// first run.
    "available" => Available(Available) {
        required {}
        optional {
            ..scope;
            ..confirm;
        }
        example { "scope": "cell" }
    }

    /// Fires when a complete answer has no price after there was one. It does not fire in the first
    /// run.
    "sold_out" => SoldOut(SoldOut) {
        required {}
        optional {
            ..scope;
        }
        example { "scope": "cell" }
    }

    /// Fires when a market's price is at least `percent` above or below the baseline's. For scans
    /// of hotels/by-name and hotels/rooms that sweep `proxy_country` with `samples` of at least 2.
    "parity_gap_percent" => ParityGapPercent(ParityGapPercent) {
        required {
            /// The difference in percent of the baseline's price.
            percent: Percent;
            /// The market with which the others are compared: one of the swept markets.
            baseline: CountryCode;
        }
        optional {
            /// The rule can fire again after the difference was smaller by this percentage of the
            /// baseline; less than `percent`. Default: 2, or half of `percent` if that is less.
            rearm_percent: RearmPercent;
        }
        example { "percent": 5, "baseline": "us" }
    }

    /// Fires when there was no answer for `runs` runs. A slot that is due during the previous run
    /// counts if no search was answered since the slot before: this detects a run that hangs, but
    /// not one that is only slow.
    "stale" => Stale(Stale) {
        required {}
        optional {
            /// Consecutive runs whose searches did not complete.
            runs: Runs = Runs(7) => runs_or_default;
            ..scope;
        }
        example { "runs": 3 }
    }

    /// Fires when the price's percentile among the stored prices of the same product, seen as many
    /// days before departure or check-in, is at most `percentile`: the `percentile` of
    /// `history_verdict`. It does not fire while that verdict is `insufficient`.
    "percentile_at_most" => PercentileAtMost(PercentileAtMost) {
        required {
            /// From 0, the cheapest; 20 is the cheapest fifth.
            percentile: Percentile;
        }
        optional {
            ..scope;
            /// The rule can fire again after the percentile was so many points higher. Together
            /// with `percentile` at most 100.
            rearm_percent: RearmPercent = RearmPercent::two() => rearm_percent_or_default;
            ..confirm;
        }
        example { "percentile": 20 }
    }

    /// Fires when there is a price of a product and dates that had no offers in the last complete
    /// answer before the run, whichever scan that was of. It does not fire without such an answer.
    "back_in_stock" => BackInStock(BackInStock) {
        required {}
        optional {
            /// What the rule evaluates; with `scan` only the best price of the whole scan.
            scope: RuleScope = RuleScope::Cell => scope_or_default;
            ..confirm;
        }
        example {}
    }

    /// Fires after each run, whatever it found: a report. `markets` of its alert has the markets of one hotel
    /// compared, if the scan sweeps them.
    "every_run" => EveryRun(EveryRun) {
        required {}
        optional {}
        example {}
    }

    /// Fires when the plan of the monitor's API ends before its reset if it is used on as it was in the
    /// last four weeks (`forecast` of `GET /v1/usage`). It can fire again once the plan lasts.
    "plan_ends_before_reset" => PlanEndsBeforeReset(PlanEndsBeforeReset) {
        required {}
        optional {}
        example {}
    }
}

impl ParityGapPercent {
    /// The given `rearm_percent`, else the documented default.
    pub fn rearm_percent_or_default(&self) -> RearmPercent {
        let half = self.percent.get() / Decimal::TWO;
        let default = || {
            if half < Decimal::TWO {
                RearmPercent::of(half)
            } else {
                RearmPercent::two()
            }
        };
        self.rearm_percent.clone().unwrap_or_else(default)
    }
}

impl Rule {
    /// Whether a price is searched once more before it fires (monitors.md, rule 85).
    pub fn confirms(&self) -> bool {
        self.value("confirm").is_some_and(|confirm| confirm != 0)
    }

    /// What it evaluates, of a type that lets the caller choose.
    pub fn scope(&self) -> Option<RuleScope> {
        RuleScope::read(&self.value("scope")?).ok()
    }

    /// The given value of a field of its type, else the documented default.
    pub fn value(&self, field: &str) -> Option<Value> {
        let mut fields = self.rule_type().fields().iter();
        let field = fields.find(|spec| spec.name == field)?;
        let given = self.body().shift_remove(field.name);
        given.or_else(|| field.default_value())
    }
}

const TYPE: &str = "type";

impl FieldValue for Rule {
    const KIND: FieldKind = FieldKind::Object;
    const COMPONENT: Option<&'static str> = Some("Rule");

    fn expected() -> Cow<'static, str> {
        format!(
            "an object with a `type`, {}, and its fields",
            RuleType::expected()
        )
        .into()
    }

    fn read(value: &Value) -> Result<Self, ValidationErrors> {
        let Value::Object(object) = value else {
            return Err(invalid_value::<Self>(value));
        };
        let mut body = object.clone();
        let word = body.shift_remove(TYPE).filter(|word| !word.is_null());
        let Some(word) = word else {
            return Err(ValidationError::missing(TYPE, RuleType::expected()).into());
        };
        let rule_type = RuleType::read(&word).map_err(|wrong| wrong.prefix(TYPE))?;
        Self::from_body(rule_type, &body)
    }

    fn to_value(&self) -> Value {
        let mut object = Map::from_iter([(TYPE.to_owned(), self.rule_type().to_value())]);
        object.extend(self.body());
        Value::Object(object)
    }

    fn schema() -> Schema {
        // No discriminator: each `type` has a single value, and generators of Rust clients remove
        // the field if there is one.
        let rules = OneOfBuilder::new().description(Some("When to send an alert."));
        Self::bodies()
            .into_iter()
            .fold(rules, |rules, (name, _)| {
                rules.item(Ref::from_schema_name(name))
            })
            .into()
    }

    fn nested_components(components: &mut Components) {
        components.extend(
            Self::bodies()
                .into_iter()
                .map(|(name, body)| (name.to_owned(), body.into())),
        );
    }
}

/// A rule's body with its `type` in front.
fn with_type(rule_type: RuleType, body: Schema) -> Schema {
    let Schema::Object(mut object) = body else {
        return body;
    };
    let word = ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some([rule_type.as_str()]));
    let word = Schema::from(word).into();
    object.properties.shift_insert(0, TYPE.to_owned(), word);
    object.required.insert(0, TYPE.to_owned());
    for example in object.examples.iter_mut().filter_map(Value::as_object_mut) {
        example.shift_insert(0, TYPE.to_owned(), rule_type.to_value());
    }
    object.into()
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_value().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Rule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::read(&Value::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

impl_to_schema!(Rule);
