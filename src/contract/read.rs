//! From bytes to a JSON object to checked fields, collecting every fault on the way.
//!
//! Here: [`read_object`] (bytes to object, bounded) and the reader that `request!` drives. Not here: what a field
//! accepts (`primitives`), which fields a body has (`flights`, `hotels`, `scans`).

mod once;

use super::endpoint::Endpoint;
use super::fault::{Fault, Faults, MAX_HELD_CHARS, is_secret_name, shorten};
use super::field::{FieldSpec, FieldValue};
use jiff::civil::Date;
use once::Unread;
use serde_json::{Map, Value};

/// The deepest nesting of a body (security, "Limits"): `{}` is 1, `{"a": []}` is 2.
pub const MAX_DEPTH: usize = 64;

/// From this likeness on a known name is suggested for an unknown one. The tables of `contract::tests::bodies` hold it.
const NEAR: f64 = 0.6;
/// The most names that are listed where none is near.
const MOST_NAMES: usize = 12;

/// Reads a body that must be one JSON object with nothing after it, nested at most `max_depth` deep.
///
/// It holds no more values than a valid body can. The content type is not looked at (contract 10). The fault's path is `body`, or that of a field that is given twice: RFC 8259
/// leaves open which of the two counts, so nobody could say what was ordered.
pub fn read_object(body: &[u8], max_depth: usize) -> Result<Map<String, Value>, Faults> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(Fault::missing("body", "a JSON object").into());
    }
    if depth(body) > max_depth {
        let allowed = format!("a JSON object nested at most {max_depth} deep");
        return Err(not_an_object(body, allowed));
    }
    match once::read(body) {
        Ok((Value::Object(object), faults)) => faults.or_else_build(|| Some(object)),
        Ok(_) => Err(not_an_object(body, "a JSON object".to_owned())),
        Err(Unread::TooMuch(fault)) => Err(fault.into()),
        Err(Unread::Syntax(error)) => Err(not_an_object(body, format!("a JSON object ({error})"))),
    }
}

/// Reads the body of a call that takes none: nothing at all, or an object without fields. Whoever sends a field expects something of it
/// that would not happen.
///
/// # Errors
/// As [`read_object`], and each field is a fault.
pub fn read_nothing(body: &[u8], max_depth: usize) -> Result<(), Faults> {
    if body.is_empty() {
        return Ok(());
    }
    let body = read_object(body, max_depth)?;
    BodyReader::new("this call", &[], &body)
        .finish()
        .or_else_build(|| Some(()))
}

fn not_an_object(body: &[u8], allowed: String) -> Faults {
    // What is not JSON cannot be taken apart, so the whole is looked at as if it were a name.
    if is_secret_name(&String::from_utf8_lossy(body)) {
        return Fault::secret("body", allowed).into();
    }
    // A character has at most four bytes.
    let begin = &body[..body.len().min(4 * (MAX_HELD_CHARS + 1))];
    let held = Some(shorten(&String::from_utf8_lossy(begin)));
    Fault {
        path: "body".to_owned(),
        held,
        allowed,
    }
    .into()
}

/// How deep the brackets outside strings nest. Looked at before parsing, whose recursion it bounds; of text that is
/// not JSON it says something harmless.
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

/// Takes the fields out of a body one by one and remembers what was wrong with each.
pub(crate) struct BodyReader<'a> {
    what: &'static str,
    fields: &'static [FieldSpec],
    body: &'a Map<String, Value>,
    faults: Faults,
}

impl<'a> BodyReader<'a> {
    /// A reader of `body`, which messages call `what` ("flights/oneway").
    pub(crate) fn new(
        what: &'static str,
        fields: &'static [FieldSpec],
        body: &'a Map<String, Value>,
    ) -> Self {
        Self {
            what,
            fields,
            body,
            faults: Faults::default(),
        }
    }

    /// A field that must be there. `None` only after a fault was recorded.
    pub(crate) fn required<T: FieldValue>(&mut self, name: &str) -> Option<T> {
        if given(self.body, name).is_none() {
            self.faults.push(Fault::missing(name, T::allowed()));
        }
        self.optional(name)
    }

    /// A field that may be absent or null, which is the same (contract 7).
    pub(crate) fn optional<T: FieldValue>(&mut self, name: &str) -> Option<T> {
        match T::read(given(self.body, name)?) {
            Ok(read) => Some(read),
            Err(faults) => {
                self.faults.merge(faults.prefix(name));
                None
            }
        }
    }

    /// Contract 8: `last` may be the day of `first` (a return on the day of departure).
    pub(crate) fn not_before(&mut self, last: (&str, Option<Date>), first: (&str, Option<Date>)) {
        self.ordered(last, first, |last, first| last >= first, "on or after");
    }

    /// Contract 8: `last` is a later day than `first` (a stay has at least one night).
    pub(crate) fn after(&mut self, last: (&str, Option<Date>), first: (&str, Option<Date>)) {
        self.ordered(last, first, |last, first| last > first, "after");
    }

    /// Says nothing about dates that could not be read: their own fault stands already.
    fn ordered(
        &mut self,
        (last_name, last): (&str, Option<Date>),
        (first_name, first): (&str, Option<Date>),
        in_order: fn(Date, Date) -> bool,
        rule: &str,
    ) {
        if let (Some(last), Some(first)) = (last, first)
            && !in_order(last, first)
        {
            let allowed = format!("a date {rule} `{first_name}` ({first})");
            self.faults
                .push(Fault::new(last_name, &last.to_string().into(), allowed));
        }
    }

    /// All faults, unknown fields included.
    pub(crate) fn finish(mut self) -> Faults {
        for (name, value) in self.body {
            if !value.is_null() && self.fields.iter().all(|field| field.name != name) {
                let (what, fields) = (self.what, self.fields);
                self.faults.push_with(|| unknown(what, fields, name, value));
            }
        }
        self.faults
    }
}

/// What the body holds under a name; null is the same as absent (contract 7).
pub(crate) fn given<'a>(body: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    body.get(name).filter(|value| !value.is_null())
}

/// The same fault for a name that stands elsewhere than in the body itself: in a sweep.
pub fn unknown_field(endpoint: Endpoint, name: &str, value: &Value) -> Fault {
    unknown(endpoint.as_str(), endpoint.fields(), name, value)
}

/// Contract 7: an unknown field is a fault that names the nearest known one; where none is near, what there is.
fn unknown(what: &str, fields: &[FieldSpec], name: &str, value: &Value) -> Fault {
    let name = shorten(name);
    let allowed = if (what, name.as_str()) == ("hotels/search", "location") {
        let required = fields.iter().filter(|field| field.required);
        format!(
            "no such field in {what}; its required fields are {}",
            super::words::listed(required.map(|field| field.name))
        )
    } else if fields.is_empty() {
        "no field here".to_owned()
    } else if let Some(known) = nearest(fields, &name) {
        format!("no such field in {what}; did you mean `{known}`?")
    } else {
        let listed = super::words::listed(fields.iter().take(MOST_NAMES).map(|field| field.name));
        let more = fields.len().saturating_sub(MOST_NAMES);
        let more = if more == 0 {
            String::new()
        } else {
            format!(" and {more} more")
        };
        format!("no such field in {what}; its fields are {listed}{more}")
    };
    Fault::new(name, value, allowed)
}

/// The known name that is most like `name`; the first of equals, `None` when none is like it at all.
fn nearest(fields: &[FieldSpec], name: &str) -> Option<&'static str> {
    let mut best = None;
    for field in fields {
        let near = likeness(field.name, name);
        if near >= NEAR && best.is_none_or(|(_, nearest)| near > nearest) {
            best = Some((field.name, near));
        }
    }
    best.map(|(name, _)| name)
}

/// How likely it is that `name` was to be `known`, from 0 to 1. By letter pairs, because a forgotten word is the common slip
/// (`arrival_time_min` is meant to be `departure_arrival_time_min`); by edits, because two letters that changed places spoil
/// three pairs; and whoever wrote words of a name and nothing else (`from`, `date`) is near it.
fn likeness(known: &str, name: &str) -> f64 {
    let name = name.to_lowercase();
    let alike = strsim::sorensen_dice(known, &name)
        .max(strsim::normalized_damerau_levenshtein(known, &name));
    let mut words = name.split('_').filter(|word| !word.is_empty()).peekable();
    let of_known =
        words.peek().is_some() && words.all(|word| known.split('_').any(|known| known == word));
    if of_known { alike.max(NEAR) } else { alike }
}
