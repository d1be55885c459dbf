//! The error of an unknown field: "did you mean" a similar known one?

use serde_json::Value;

use crate::field::FieldSpec;
use crate::string_enum::quoted_list;
use crate::validation::{ValidationError, shorten};

/// The least similarity at which a known name is suggested. `contract::tests::bodies` tests it.
const MIN_SIMILARITY: f64 = 0.6;
/// The most names that an error lists if none is similar.
const MAX_SUGGESTED_NAMES: usize = 12;

/// gateway.md, rule 7: the error names the most similar known field; where none is similar, it
/// lists the known fields.
pub(crate) fn unknown_field(
    body_name: &str,
    fields: &[FieldSpec],
    name: &str,
    value: &Value,
) -> ValidationError {
    let name = shorten(name);
    if fields.is_empty() {
        return ValidationError::new(name, value, "no fields");
    }
    let hint = if (body_name, name.as_str()) == ("hotels/search", "location") {
        let required = fields.iter().filter(|field| field.required);
        let names = quoted_list(required.map(|field| field.name));
        format!("its required fields are {names}")
    } else if let Some(known) = closest_name(fields, &name) {
        format!("did you mean `{known}`?")
    } else {
        let names = quoted_list(
            fields
                .iter()
                .take(MAX_SUGGESTED_NAMES)
                .map(|field| field.name),
        );
        match fields.len().saturating_sub(MAX_SUGGESTED_NAMES) {
            0 => format!("its fields are {names}"),
            more => format!("its fields are {names} and {more} more"),
        }
    };
    ValidationError::unknown_field(&name, value, body_name, &hint)
}

/// The known name most similar to `name`; the first of equals, `None` when none is similar.
fn closest_name(fields: &[FieldSpec], name: &str) -> Option<&'static str> {
    let mut best = None;
    for field in fields {
        let near = similarity(field.name, name);
        if near >= MIN_SIMILARITY && best.is_none_or(|(_, closest_name)| near > closest_name) {
            best = Some((field.name, near));
        }
    }
    best.map(|(name, _)| name)
}

/// The similarity of `name` to `known`, from 0 to 1: the maximum of three measures. Letter pairs
/// find an omitted word (`arrival_time_min` for `departure_arrival_time_min`). Edit distance finds
/// swapped letters, which spoil three pairs. A name that consists of words of `known` (`from`,
/// `date`) has at least [`MIN_SIMILARITY`].
fn similarity(known: &str, name: &str) -> f64 {
    let name = name.to_lowercase();
    let alike = strsim::sorensen_dice(known, &name)
        .max(strsim::normalized_damerau_levenshtein(known, &name));
    let mut words = name.split('_').filter(|word| !word.is_empty()).peekable();
    let of_known =
        words.peek().is_some() && words.all(|word| known.split('_').any(|known| known == word));
    if of_known {
        alike.max(MIN_SIMILARITY)
    } else {
        alike
    }
}
