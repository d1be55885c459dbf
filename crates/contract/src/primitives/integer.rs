//! Values that are whole numbers within bounds. A number in a string is refused (gateway.md, rule
//! 7).

/// Declares an integer type with bounds. Without a documented bound, the maximum is the largest
/// integer that is safe in JSON: 32 bits signed, or 53 bits. The `expected` text is built from the
/// bounds; `means` adds the meaning in front.
macro_rules! bounded_integer {
    (
        $(#[doc = $doc:literal])+
        pub struct $name:ident($repr:ident): $min:literal..=$max:expr $(, means $means:literal)?;
    ) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name($repr);

        impl $name {
            /// The smallest accepted value.
            pub const MIN: $repr = $min;
            /// The largest accepted value.
            pub const MAX: $repr = $max;

            /// The number itself.
            pub const fn get(self) -> $repr {
                self.0
            }

            /// The value, if it is within the bounds.
            pub fn new(number: $repr) -> Option<Self> {
                (Self::MIN..=Self::MAX).contains(&number).then_some(Self(number))
            }
        }

        impl $crate::field::FieldValue for $name {
            fn expected() -> std::borrow::Cow<'static, str> {
                format!(concat!($( $means, ": ", )? "an integer from {} to {}"), Self::MIN, Self::MAX).into()
            }

            fn read(value: &serde_json::Value) -> Result<Self, $crate::validation::ValidationErrors> {
                $crate::primitives::non_negative_integer(value)
                    .and_then(|number| $repr::try_from(number).ok())
                    .and_then(Self::new)
                    .ok_or_else(|| $crate::field::invalid_value::<Self>(value))
            }

            fn to_value(&self) -> serde_json::Value {
                self.0.into()
            }

            fn schema() -> utoipa::openapi::schema::Schema {
                utoipa::openapi::schema::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::schema::Type::Integer)
                    .minimum(Some(Self::MIN))
                    .maximum(Some(Self::MAX))
                    .into()
            }
        }
    };
}

pub(crate) use bounded_integer;

/// The largest number up to which every integer is exact as a floating-point number.
const MAX_EXACT: f64 = 9_007_199_254_740_991.0;

/// A non-negative integer. `20.0` is one, as in JSON Schema: some clients have only floating-point
/// numbers.
pub(crate) fn non_negative_integer(value: &serde_json::Value) -> Option<u64> {
    let exact = |number: &f64| (0.0..=MAX_EXACT).contains(number) && number.fract() == 0.0;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "whole, and not beyond 2^53"
    )]
    value
        .as_u64()
        .or_else(|| value.as_f64().filter(exact).map(|number| number as u64))
}

/// The largest 32-bit signed integer: the bound of counts (gateway.md, rule 8).
const COUNT_MAX: u32 = 2_147_483_647;

bounded_integer! {
    /// An hour of the day, local time (gateway.md, rule 8).
    pub struct Hour(u8): 0..=23;
}

bounded_integer! {
    /// The maximum stops; 0 is non-stop only.
    pub struct Stops(u32): 0..=COUNT_MAX;
}

bounded_integer! {
    /// The maximum rows of a flight response.
    pub struct Limit(u32): 1..=COUNT_MAX;
}

impl Limit {
    /// The documented default (gateway.md, rule 23).
    pub const TEN: Self = Self(10);
}

bounded_integer! {
    /// The highest price of an itinerary, in the requested currency.
    pub struct MaxPrice(u64): 0..=9_007_199_254_740_991;
}

bounded_integer! {
    /// Adults in a hotel room.
    pub struct Adults(u32): 1..=COUNT_MAX;
}

impl Adults {
    /// The documented default (gateway.md, rule 27).
    pub const TWO: Self = Self(2);
}

bounded_integer! {
    /// Children in a hotel room.
    pub struct Children(u32): 0..=COUNT_MAX;
}

impl Children {
    /// The documented default (gateway.md, rule 27).
    pub const NONE: Self = Self(0);
}
