//! From bytes to a JSON object to validated fields, with all errors collected.
//!
//! Here: [`read_object`] (bytes to object, bounded) and the reader that `request_body!` uses. Not
//! here: the rules of single values (`primitives`), the fields of each body (`flights`, `hotels`,
//! `scans`).

mod strict_json;
pub(super) mod unknown_field;

use super::field::{FieldSpec, FieldValue};
use super::validation::{
    MAX_FOUND_CHARS, ValidationError, ValidationErrors, is_secret_name, shorten,
};
use jiff::civil::Date;
use serde_json::{Map, Value};
use strict_json::ReadError;
use unknown_field::unknown_field;

/// The deepest nesting of a body (security.md, rule 18): `{}` is 1, `{"a": []}` is 2.
pub const MAX_DEPTH: usize = 64;

/// Reads a body that must be one JSON object with nothing after it, nested at most `max_depth`
/// deep.
///
/// The number of values is bounded. The content type does not matter (gateway.md, rule 10).
///
/// # Errors
/// The path is `body`, or that of a duplicate field: RFC 8259 leaves open which of the two values
/// counts, so the order would be ambiguous.
pub fn read_object(body: &[u8], max_depth: usize) -> Result<Map<String, Value>, ValidationErrors> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(ValidationError::missing("body", "a JSON object").into());
    }
    if depth(body) > max_depth {
        let expected = format!("a JSON object nested at most {max_depth} deep");
        return Err(not_an_object(body, expected));
    }
    match strict_json::read(body) {
        Ok((Value::Object(object), errors)) => errors.ok_if_empty(|| Some(object)),
        Ok(_) => Err(not_an_object(body, "a JSON object".to_owned())),
        Err(ReadError::TooLarge(error)) => Err(error.into()),
        Err(ReadError::Syntax(error)) => {
            Err(not_an_object(body, format!("a JSON object ({error})")))
        }
    }
}

/// Reads the body of a call without fields: empty, or an object without fields. A field that has no
/// effect is an error, because its sender expects one.
///
/// # Errors
/// As [`read_object`], and one for each field.
pub fn read_empty_body(body: &[u8], max_depth: usize) -> Result<(), ValidationErrors> {
    if body.is_empty() {
        return Ok(());
    }
    let body = read_object(body, max_depth)?;
    BodyReader::new("this call", &[], &body)
        .finish()
        .ok_if_empty(|| Some(()))
}

fn not_an_object(body: &[u8], expected: String) -> ValidationErrors {
    // What is not JSON has no fields, so the whole text is checked as a name.
    if is_secret_name(&String::from_utf8_lossy(body)) {
        return ValidationError::secret("body", expected).into();
    }
    // A character has at most four bytes.
    let begin = &body[..body.len().min(4 * (MAX_FOUND_CHARS + 1))];
    ValidationError::with_found("body", shorten(&String::from_utf8_lossy(begin)), expected).into()
}

/// How deep the brackets outside strings nest. Checked before parsing, whose recursion it bounds.
/// The result for text that is not JSON does not matter.
fn depth(body: &[u8]) -> usize {
    let (mut open, mut deepest) = (0_usize, 0);
    let mut bytes = body.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => skip_string(&mut bytes),
            b'{' | b'[' => {
                open += 1;
                deepest = deepest.max(open);
            }
            b'}' | b']' => open = open.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Moves past the end of a string whose opening quote has been read.
fn skip_string(bytes: &mut std::slice::Iter<'_, u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => {
                bytes.next();
            }
            _ => {}
        }
    }
}

/// Reads the fields of a body one by one and collects their errors.
pub(crate) struct BodyReader<'a> {
    body_name: &'static str,
    fields: &'static [FieldSpec],
    body: &'a Map<String, Value>,
    errors: ValidationErrors,
}

impl<'a> BodyReader<'a> {
    /// A reader of `body`; messages call it `body_name` ("flights/oneway").
    pub(crate) fn new(
        body_name: &'static str,
        fields: &'static [FieldSpec],
        body: &'a Map<String, Value>,
    ) -> Self {
        Self {
            body_name,
            fields,
            body,
            errors: ValidationErrors::default(),
        }
    }

    /// A required field. `None` only after an error was added.
    pub(crate) fn required<T: FieldValue>(&mut self, name: &str) -> Option<T> {
        if non_null(self.body, name).is_none() {
            self.errors
                .push(ValidationError::missing(name, T::expected()));
        }
        self.optional(name)
    }

    /// An optional field; null is the same as absent (gateway.md, rule 7).
    pub(crate) fn optional<T: FieldValue>(&mut self, name: &str) -> Option<T> {
        match T::read(non_null(self.body, name)?) {
            Ok(read) => Some(read),
            Err(errors) => {
                self.errors.merge(errors.prefix(name));
                None
            }
        }
    }

    /// gateway.md, rule 8: `last` may be the day of `first` (a return on the day of departure).
    pub(crate) fn not_before(&mut self, last: (&str, Option<Date>), first: (&str, Option<Date>)) {
        self.check_order(last, first, |last, first| last >= first, "on or after");
    }

    /// gateway.md, rule 8: `last` is a later day than `first` (a stay has at least one night).
    pub(crate) fn after(&mut self, last: (&str, Option<Date>), first: (&str, Option<Date>)) {
        self.check_order(last, first, |last, first| last > first, "after");
    }

    /// Ignores invalid dates, which have their own error already.
    fn check_order(
        &mut self,
        (last_name, last): (&str, Option<Date>),
        (first_name, first): (&str, Option<Date>),
        is_ordered: fn(Date, Date) -> bool,
        rule: &str,
    ) {
        if let (Some(last), Some(first)) = (last, first)
            && !is_ordered(last, first)
        {
            let expected = format!("a date {rule} `{first_name}` ({first})");
            self.errors.push(ValidationError::new(
                last_name,
                &last.to_string().into(),
                expected,
            ));
        }
    }

    /// All errors, with those of unknown fields.
    pub(crate) fn finish(mut self) -> ValidationErrors {
        for (name, value) in self.body {
            if !value.is_null() && self.fields.iter().all(|field| field.name != name) {
                let (body_name, fields) = (self.body_name, self.fields);
                self.errors
                    .push_lazily(|| unknown_field(body_name, fields, name, value));
            }
        }
        self.errors
    }
}

/// The value of a field; null is the same as absent (gateway.md, rule 7).
pub(crate) fn non_null<'a>(body: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    body.get(name).filter(|value| !value.is_null())
}
