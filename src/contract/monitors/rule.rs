//! Alert rules, as they are written.
//!
//! Here: one body for each type of rule, and [`Rule`], which is one of them with its `type`. Not here: when a rule fires
//! (`monitors::alerts`).

use crate::contract::declare::request;
use crate::contract::describe::{described, field_schema};
use crate::contract::fault::{Fault, Faults};
use crate::contract::field::{Components, FieldKind, FieldSpec, FieldValue, refused};
use crate::contract::primitives::{CountryCode, whole_number};
use crate::contract::words::words;
use rust_decimal::Decimal;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Number, Value};
use std::borrow::Cow;
use utoipa::openapi::Ref;
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, OneOfBuilder, Schema, Type};

words! {
    /// What a rule looks at.
    pub enum RuleScope {
        /// The best of the whole scan.
        Scan = "scan",
        /// Each combination of the swept fields by itself.
        Cell = "cell",
    }
}

/// Declares a number within bounds, kept as it was written.
macro_rules! number {
    ($(#[doc = $doc:literal])+ pub struct $name:ident, $allowed:literal, $accepts:expr, $schema:expr) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub struct $name(Number);

        impl $name {
            /// The number, to compare with.
            #[must_use]
            pub fn get(&self) -> Decimal {
                let text = self.0.to_string();
                // What is too small to be told from nothing is nothing.
                text.parse().or_else(|_| Decimal::from_scientific(&text)).unwrap_or_default()
            }
        }

        impl FieldValue for $name {
            fn allowed() -> Cow<'static, str> {
                $allowed.into()
            }

            fn read(value: &Value) -> Result<Self, Faults> {
                let accepts: fn(f64) -> bool = $accepts;
                match value {
                    Value::Number(number) if number.as_f64().is_some_and(accepts) => Ok(Self(number.clone())),
                    _ => Err(refused::<Self>(value)),
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

/// The largest amount: beyond it numbers are not exact on the wire.
const MAX_AMOUNT: f64 = 9_007_199_254_740_991.0;

number! {
    /// A price in major units, in the currency of the scan's request.
    pub struct Amount, "a number above 0, at most 9007199254740991",
    |amount| amount > 0.0 && amount <= MAX_AMOUNT,
    |schema: ObjectBuilder| schema.exclusive_minimum(Some(0_u8)).maximum(Some(MAX_AMOUNT))
}

number! {
    /// Percent of a price.
    pub struct Percent, "a number above 0, at most 1000",
    |percent| percent > 0.0 && percent <= 1000.0,
    |schema: ObjectBuilder| schema.exclusive_minimum(Some(0_u8)).maximum(Some(1000_u16))
}

number! {
    /// By how many percent a rule must have become false before it can fire again.
    pub struct RearmPercent, "a number from 0 to 100",
    |percent| (0.0..=100.0).contains(&percent),
    |schema: ObjectBuilder| schema.minimum(Some(0_u8)).maximum(Some(100_u8))
}

impl RearmPercent {
    /// The documented default.
    #[must_use]
    pub fn two() -> Self {
        Self(2.into())
    }

    fn of(percent: Decimal) -> Self {
        Self(serde_json::from_str(&percent.normalize().to_string()).unwrap_or_else(|_| 0.into()))
    }
}

whole_number! {
    /// How many runs in a row.
    pub struct Runs(u16): 1..=365;
}

impl Runs {
    /// The documented default.
    pub const SEVEN: Self = Self(7);
}

whole_number! {
    /// How many prices a rule remembers.
    pub struct RunsBack(u16): 1..=90;
}

impl RunsBack {
    /// The documented default.
    pub const SEVEN: Self = Self(7);
}

request! {
    /// Fires when the price is below an amount.
    pub struct PriceBelow for "price_below" {
        required {
            /// In the currency of the scan's request.
            amount: Amount;
        }
        optional {
            /// What is looked at.
            scope: RuleScope = RuleScope::Scan => scope_or_default;
            /// It can fire again once the price was so many percent above the amount.
            rearm_percent: RearmPercent = RearmPercent::two() => rearm_percent_or_default;
        }
        example { "amount": 200, "rearm_percent": 5 }
    }
}

request! {
    /// Fires when the price is so many percent below the lowest of the last runs, or more; and whenever it is so many percent below the
    /// price at which it last fired. The first run has nothing to compare with.
    pub struct DropPercent for "drop_percent" {
        required {
            /// By how many percent.
            percent: Percent;
        }
        optional {
            /// Of how many runs before this one that had a price the lowest counts.
            runs: RunsBack = RunsBack::SEVEN => runs_or_default;
            /// What is looked at.
            scope: RuleScope = RuleScope::Scan => scope_or_default;
            /// It can fire again once the price was so many percent above the price at which it fires. A price that falls by another
            /// `percent` does not wait for that.
            rearm_percent: RearmPercent = RearmPercent::two() => rearm_percent_or_default;
        }
        example { "percent": 10, "runs": 7 }
    }
}

request! {
    /// Fires when the provider's verdict on the price becomes `low`.
    pub struct VerdictLow for "verdict" {
        required {}
        optional {
            /// What is looked at.
            scope: RuleScope = RuleScope::Scan => scope_or_default;
        }
        example {}
    }
}

request! {
    /// Fires when the price is lower than any that the monitor has seen before. The first run has nothing to compare with. A low that is
    /// less than `rearm_percent` below the last one told is no news.
    pub struct NewLow for "new_low" {
        required {}
        optional {
            /// What is looked at.
            scope: RuleScope = RuleScope::Scan => scope_or_default;
            /// It can fire again once the price was so many percent above the lowest, or for a low so many percent below the last one
            /// told; with 0 for every new low.
            rearm_percent: RearmPercent = RearmPercent::two() => rearm_percent_or_default;
        }
        example {}
    }
}

request! {
    /// Fires when there is a price where a whole answer had none. A price in the first run does not fire: there has to be an answer without
    /// one before.
    pub struct Available for "available" {
        required {}
        optional {
            /// What is looked at.
            scope: RuleScope = RuleScope::Scan => scope_or_default;
        }
        example { "scope": "cell" }
    }
}

request! {
    /// Fires when a whole answer has none where there was a price. A first run without one does not fire: there has to be a price before.
    pub struct SoldOut for "sold_out" {
        required {}
        optional {
            /// What is looked at.
            scope: RuleScope = RuleScope::Scan => scope_or_default;
        }
        example { "scope": "cell" }
    }
}

request! {
    /// Fires when a market's price differs from the baseline's by so many percent, either way. For scans of hotels/by-name and
    /// hotels/rooms that sweep `proxy_country` with `samples` of 2 at least: one price on each side says nothing.
    pub struct ParityGapPercent for "parity_gap_percent" {
        required {
            /// By how many percent of the baseline.
            percent: Percent;
            /// The market that the others are compared with: one of those that are swept.
            baseline: CountryCode;
        }
        optional {
            /// It can fire again once the difference was so many percent of the baseline smaller; less than `percent`. Without it 2, or
            /// half of `percent` where that is less.
            rearm_percent: RearmPercent;
        }
        example { "percent": 5, "baseline": "us" }
    }
}

impl ParityGapPercent {
    /// What the caller gave as `rearm_percent`, else the documented default.
    #[must_use]
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

request! {
    /// Fires when there was no answer for so many runs. A slot that came while the run before went on counts as one if nothing was
    /// answered since the slot before it: a run that hangs is told, one that only takes long is not.
    pub struct Stale for "stale" {
        required {}
        optional {
            /// Runs in a row whose searches did not complete.
            runs: Runs = Runs::SEVEN => runs_or_default;
            /// What is looked at.
            scope: RuleScope = RuleScope::Scan => scope_or_default;
        }
        example { "runs": 3 }
    }
}

/// Declares the rules: the word of each type and its body.
macro_rules! rules {
    ($( $word:literal => $name:ident($body:ident), )+) => {
        words! {
            /// The types of rules.
            pub enum RuleType {
                $(
                    /// The rule of this name.
                    $name = $word,
                )+
            }
        }

        /// When to tell: `{"type": …}` with the fields of that type.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Rule {
            $(
                /// The rule of this name.
                $name($body),
            )+
        }

        impl RuleType {
            /// The fields of such a rule.
            #[must_use]
            pub const fn fields(self) -> &'static [FieldSpec] {
                match self {
                    $( Self::$name => $body::FIELDS, )+
                }
            }
        }

        impl Rule {
            /// Its `type`.
            #[must_use]
            pub const fn rule_type(&self) -> RuleType {
                match self {
                    $( Self::$name(_) => RuleType::$name, )+
                }
            }

            fn from_body(rule_type: RuleType, body: &Map<String, Value>) -> Result<Self, Faults> {
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
                    with_type(RuleType::$name, $body::schema(), $body::example(), $body::FIELDS),
                ) ),+]
            }
        }
    };
}

rules! {
    "price_below" => PriceBelow(PriceBelow),
    "drop_percent" => DropPercent(DropPercent),
    "verdict" => Verdict(VerdictLow),
    "new_low" => NewLow(NewLow),
    "available" => Available(Available),
    "sold_out" => SoldOut(SoldOut),
    "parity_gap_percent" => ParityGapPercent(ParityGapPercent),
    "stale" => Stale(Stale),
}

const TYPE: &str = "type";

impl FieldValue for Rule {
    const KIND: FieldKind = FieldKind::Object;
    const COMPONENT: Option<&'static str> = Some("Rule");

    fn allowed() -> Cow<'static, str> {
        format!(
            "an object with a `type`, {}, and its fields",
            RuleType::allowed()
        )
        .into()
    }

    fn read(value: &Value) -> Result<Self, Faults> {
        let Value::Object(object) = value else {
            return Err(refused::<Self>(value));
        };
        let mut body = object.clone();
        let word = body.shift_remove(TYPE).filter(|word| !word.is_null());
        let Some(word) = word else {
            return Err(Fault::missing(TYPE, RuleType::allowed()).into());
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
        // No discriminator: each `type` has a single word, and generators of Rust clients take the field away where there is one.
        let rules = OneOfBuilder::new().description(Some("When to tell."));
        Self::bodies()
            .into_iter()
            .fold(rules, |rules, (name, _)| {
                rules.item(Ref::from_schema_name(name))
            })
            .into()
    }

    fn parts(components: &mut Components) {
        components.extend(
            Self::bodies()
                .into_iter()
                .map(|(name, body)| (name.to_owned(), body.into())),
        );
    }
}

/// A rule's body with its `type` in front.
fn with_type(rule_type: RuleType, body: Schema, example: Value, fields: &[FieldSpec]) -> Schema {
    let Schema::Object(body) = body else {
        return body;
    };
    let word = ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some([rule_type.as_str()]));
    let mut example = example.as_object().cloned().unwrap_or_default();
    example.shift_insert(0, TYPE.to_owned(), rule_type.to_value());
    let mut object = ObjectBuilder::new()
        .description(body.description)
        .additional_properties(Some(AdditionalProperties::FreeForm(false)))
        .examples([Value::Object(example)])
        .property(TYPE, word)
        .required(TYPE);
    for field in fields {
        object = object.property(field.name, field_schema(field));
        if field.required {
            object = object.required(field.name);
        }
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

described!(Rule);
