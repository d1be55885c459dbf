//! Prices in JSON: a number in major units, without a fraction where it has none, so that 173 stays
//! 173.

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;
use serde::Serializer;

/// For `#[serde(serialize_with = …)]` of a price.
pub(crate) fn price<S: Serializer>(price: &Decimal, serializer: S) -> Result<S::Ok, S::Error> {
    match price.is_integer().then(|| price.to_i64()).flatten() {
        Some(whole) => serializer.serialize_i64(whole),
        None => rust_decimal::serde::float::serialize(price, serializer),
    }
}

/// For `#[serde(serialize_with = …)]` of a price that may be absent.
#[expect(clippy::ref_option, reason = "the form that serde calls")]
pub(crate) fn price_if_any<S: Serializer>(
    value: &Option<Decimal>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => price(value, serializer),
        None => serializer.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use serde::Serialize;

    use super::*;

    #[derive(Serialize)]
    struct Prices {
        #[serde(serialize_with = "price")]
        required: Decimal,
        #[serde(serialize_with = "price_if_any")]
        optional: Option<Decimal>,
    }

    #[test]
    fn a_whole_price_is_written_without_a_fraction() {
        for (text, written) in [
            ("173", "173"),
            ("173.00", "173"),
            ("199.99", "199.99"),
            ("0.5", "0.5"),
            ("12345678901234567", "12345678901234567"),
        ] {
            let required: Decimal = text.parse().unwrap();
            let row = serde_json::to_string(&Prices {
                required,
                optional: Some(required),
            })
            .unwrap();
            assert_eq!(
                row,
                format!(r#"{{"required":{written},"optional":{written}}}"#)
            );
        }
        let none = serde_json::to_string(&Prices {
            required: Decimal::ONE,
            optional: None,
        })
        .unwrap();
        assert_eq!(none, r#"{"required":1,"optional":null}"#);
    }
}
