//! Values as a person types them, and back.

use farescan_contract::FieldSpec;
use serde_json::Value;

/// Numbers of a list beyond which its ranges are not written out.
const MAX_NUMBERS: usize = 400;

/// A number as it was typed, such as `07` or `150.5`; any other text stays text, which the validation
/// names.
pub fn number(text: &str) -> Value {
    let whole = text.parse::<u64>().map(Value::from);
    whole
        .or_else(|_| serde_json::from_str(text).map(Value::Number))
        .unwrap_or_else(|_| text.into())
}

/// Whole numbers and ranges, as in `7, 10-14` or `7,10..14`; anything else stays text.
pub fn numbers(text: &str) -> Value {
    let mut values = Vec::new();
    for part in list(text) {
        let ends = part
            .split_once("..")
            .or_else(|| part.split_once(['-', '–']));
        let range = ends.and_then(|(first, last)| {
            let first: u16 = first.trim().parse().ok()?;
            let last: u16 = last.trim().parse().ok()?;
            (first <= last && last - first < 366).then_some(first..=last)
        });
        match range {
            // More than any scan may have stay text, which the API refuses.
            Some(range) if values.len() <= MAX_NUMBERS => values.extend(range.map(Value::from)),
            _ => values.push(number(part)),
        }
    }
    values.into()
}

/// The parts of a text with commas.
pub(super) fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
}

/// The text, or the JSON that it spells where the field takes no text.
pub(super) fn value(field: &FieldSpec, text: &str) -> Value {
    let as_text = Value::from(text);
    if (field.read)(&as_text).is_ok() {
        return as_text;
    }
    serde_json::from_str(text).unwrap_or(as_text)
}

/// The texts, or the numbers that they spell where the field takes no texts.
pub(super) fn values(field: &FieldSpec, texts: &[&str]) -> Value {
    let as_texts = Value::from(texts);
    if (field.read)(&as_texts).is_ok() {
        return as_texts;
    }
    texts.iter().map(|text| number(text)).collect()
}

/// A stored value as text.
pub fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// A value as a form takes it.
pub fn entered(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(entered).collect::<Vec<_>>().join(", "),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_no_number_reaches_the_check_as_it_is() {
        assert_eq!(numbers("7, x, 9-3"), json!([7, "x", "9-3"]));
        assert_eq!(numbers("7,10..12"), json!([7, 10, 11, 12]));
        assert_eq!(number("4o"), json!("4o"));
        assert_eq!(number("07"), json!(7));
    }
}
