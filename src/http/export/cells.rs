//! Rows of JSON as rows of CSV (RFC 4180; security, "Outgoing and pages").
//!
//! The columns are the fields of the row's documented type, in its order, so CSV and its description cannot differ; an object whose
//! fields are known has a column for each (`search.departure_date`), any other object or list is JSON text. Null is an empty cell.
//!
//! A text that a spreadsheet would take for a formula gets a `'` before it. What counts is that it is text: airlines and hotels write it,
//! callers too. A number is a number of ours and stays one, so -5 is -5 and can be added up.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use utoipa::PartialSchema;
use utoipa::openapi::{RefOr, Schema};

/// Beginnings of a formula: those of the security page, and the line feed and full-width signs that spreadsheets read the same way.
const FORMULA: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

/// Most rows are shorter.
const ROW_BYTES: usize = 1024;

/// The columns of a type of row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::http) struct Columns(Vec<Column>);

/// A field of the row, or of an object in it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Column {
    field: String,
    inner: Option<&'static str>,
}

impl Column {
    fn name(&self) -> Cow<'_, str> {
        self.inner
            .map_or(Cow::Borrowed(self.field.as_str()), |inner| {
                format!("{}.{inner}", self.field).into()
            })
    }
}

impl Columns {
    /// A column for each field of a documented object.
    pub(in crate::http) fn of<Row: PartialSchema>() -> Self {
        let fields = match Row::schema() {
            RefOr::T(Schema::Object(object)) => object.properties.into_keys().collect(),
            _ => Vec::new(),
        };
        Self(
            fields
                .into_iter()
                .map(|field| Column { field, inner: None })
                .collect(),
        )
    }

    /// One for each of these fields of the object in `field`, in its place.
    pub(in crate::http) fn flattened(self, field: &str, inner: &[&'static str]) -> Self {
        let columns = self.0.into_iter().flat_map(|column| {
            let inner: Vec<_> = if column.field == field {
                inner.iter().copied().map(Some).collect()
            } else {
                vec![column.inner]
            };
            inner.into_iter().map(move |inner| Column {
                field: column.field.clone(),
                inner,
            })
        });
        Self(columns.collect())
    }

    /// These first, in this order; those of the object in `last` at the end.
    pub(in crate::http) fn ordered(mut self, first: &[&str], last: &str) -> Self {
        let place = |column: &Column| match first.iter().position(|name| *name == column.name()) {
            Some(place) => place,
            None if column.field == last => first.len() + 1,
            None => first.len(),
        };
        self.0.sort_by_key(place);
        self
    }

    /// All but the one of `field`.
    pub(in crate::http) fn without(mut self, field: &str) -> Self {
        self.0.retain(|column| column.field != field);
        self
    }

    /// Writes the header row.
    pub(super) fn write_names(&self, out: &mut Vec<u8>) -> csv::Result<()> {
        record(out, self.0.iter().map(Column::name))
    }

    /// Writes one row.
    pub(super) fn write(&self, row: &impl Serialize, out: &mut Vec<u8>) -> csv::Result<()> {
        let row = serde_json::to_value(row).map_err(std::io::Error::from)?;
        let value = |column: &Column| match column.inner {
            None => row.get(&column.field),
            Some(inner) => row.get(&column.field).and_then(|object| object.get(inner)),
        };
        record(
            out,
            self.0
                .iter()
                .map(|column| value(column).map_or(Cow::Borrowed(""), cell)),
        )
    }
}

fn record(out: &mut Vec<u8>, cells: impl Iterator<Item = impl AsRef<str>>) -> csv::Result<()> {
    let mut writer = csv::WriterBuilder::new()
        .terminator(csv::Terminator::CRLF)
        .buffer_capacity(ROW_BYTES)
        .from_writer(out);
    for cell in cells {
        writer.write_field(cell.as_ref())?;
    }
    writer.write_record(None::<&[u8]>)?;
    Ok(writer.flush()?)
}

/// The text of a cell, before it is quoted.
fn cell(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Null => "".into(),
        Value::String(text) if text.starts_with(FORMULA) => format!("'{text}").into(),
        Value::String(text) => text.into(),
        // A list begins with a bracket, so none of these is a formula.
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string().into()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn written(value: Value) -> String {
        let columns = Columns(vec![
            Column {
                field: "a".to_owned(),
                inner: None,
            },
            Column {
                field: "b".to_owned(),
                inner: None,
            },
        ]);
        let mut out = Vec::new();
        columns
            .write(&json!({"a": value, "b": 1}), &mut out)
            .unwrap();
        String::from_utf8(out)
            .unwrap()
            .strip_suffix(",1\r\n")
            .unwrap()
            .to_owned()
    }

    #[test]
    fn what_a_cell_holds() {
        for (value, cell) in [
            (json!(null), ""),
            (json!(""), ""),
            (json!(true), "true"),
            (json!(164), "164"),
            (json!(-5), "-5"),
            (json!(-0.5), "-0.5"),
            (json!("-5"), "'-5"),
            (json!("plain text"), "plain text"),
            (json!("Żółw, ЦУМ"), "\"Żółw, ЦУМ\""),
            (json!("say \"hi\""), "\"say \"\"hi\"\"\""),
            (json!("two\nlines"), "\"two\nlines\""),
            (
                json!("=HYPERLINK(\"http://x\")"),
                "\"'=HYPERLINK(\"\"http://x\"\")\"",
            ),
            (json!("+1"), "'+1"),
            (json!("@SUM(A1)"), "'@SUM(A1)"),
            (json!("\tx"), "'\tx"),
            (json!("\rx"), "\"'\rx\""),
            (json!("\nx"), "\"'\nx\""),
            (json!("＝1+1"), "'＝1+1"),
            (json!("a=1"), "a=1"),
            (json!("'quoted'"), "'quoted'"),
            (json!([1, 2]), "\"[1,2]\""),
            (json!(["=1"]), "\"[\"\"=1\"\"]\""),
            (json!({"x": 1}), "\"{\"\"x\"\":1}\""),
        ] {
            assert_eq!(written(value.clone()), cell, "{value}");
        }
    }

    /// What is written reads back as rows of as many cells.
    #[test]
    fn rows_read_back() {
        let hostile = [
            "a,b", "\"", "\"\"", "x\r\ny", "=\"1\"", ",", "\r", "\n", "'", ";=1",
        ];
        let columns = Columns(vec![
            Column {
                field: "a".to_owned(),
                inner: None,
            },
            Column {
                field: "b".to_owned(),
                inner: Some("c"),
            },
        ]);
        let mut out = Vec::new();
        columns.write_names(&mut out).unwrap();
        for text in hostile {
            columns
                .write(&json!({"a": text, "b": {"c": text}}), &mut out)
                .unwrap();
        }
        let mut reader = csv::Reader::from_reader(&*out);
        assert_eq!(reader.headers().unwrap(), vec!["a", "b.c"]);
        for (row, text) in reader.records().map(Result::unwrap).zip(hostile) {
            let shown = if text.starts_with(FORMULA) {
                format!("'{text}")
            } else {
                text.to_owned()
            };
            assert_eq!(row, vec![shown.as_str(), shown.as_str()]);
        }
    }
}
