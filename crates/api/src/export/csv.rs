//! JSON rows as CSV rows (RFC 4180; security.md, rule 26).
//!
//! The columns are the fields of the row's documented type in their order, so CSV and its
//! description agree. An object with known fields has a column for each (`search.departure_date`);
//! other objects and lists are JSON text. Null is an empty cell.
//!
//! A text that a spreadsheet would run as a formula is prefixed with `'`, since airlines, hotels
//! and callers write texts. Numbers are the service's own, so -5 stays -5 and can be summed.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use utoipa::PartialSchema;
use utoipa::openapi::{RefOr, Schema};

use super::JSON_ONLY;

/// Beginnings of a formula (security.md, rule 26). Spreadsheets read the line feed and the
/// full-width signs the same way.
const FORMULA: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

/// Most rows are shorter.
const ROW_BYTES: usize = 1024;

/// The columns of a row type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CsvColumns(Vec<CsvColumn>);

/// A field of the row, or of an object in it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CsvColumn {
    field: String,
    inner: Option<&'static str>,
}

impl CsvColumn {
    fn name(&self) -> Cow<'_, str> {
        self.inner
            .map_or(Cow::Borrowed(self.field.as_str()), |inner| {
                format!("{}.{inner}", self.field).into()
            })
    }
}

impl CsvColumns {
    /// One column for each field of a documented object.
    pub(crate) fn of<Row: PartialSchema>() -> Self {
        let fields = match Row::schema() {
            RefOr::T(Schema::Object(object)) => object
                .properties
                .into_keys()
                .filter(|field| !JSON_ONLY.contains(&field.as_str()))
                .collect(),
            _ => Vec::new(),
        };
        Self(
            fields
                .into_iter()
                .map(|field| CsvColumn { field, inner: None })
                .collect(),
        )
    }

    /// Replaces the column `field` by one for each of these fields of its object.
    pub(crate) fn flattened(self, field: &str, inner: &[&'static str]) -> Self {
        let columns = self.0.into_iter().flat_map(|column| {
            let inner: Vec<_> = if column.field == field {
                inner.iter().copied().map(Some).collect()
            } else {
                vec![column.inner]
            };
            inner.into_iter().map(move |inner| CsvColumn {
                field: column.field.clone(),
                inner,
            })
        });
        Self(columns.collect())
    }

    /// Puts the columns `first` at the start in this order, and those of the object `last` at the
    /// end.
    pub(crate) fn ordered(mut self, first: &[&str], last: &str) -> Self {
        let rank = |column: &CsvColumn| match first.iter().position(|name| *name == column.name()) {
            Some(rank) => rank,
            None if column.field == last => first.len() + 1,
            None => first.len(),
        };
        self.0.sort_by_key(rank);
        self
    }

    /// Removes the column `field`.
    pub(crate) fn without(mut self, field: &str) -> Self {
        self.0.retain(|column| column.field != field);
        self
    }

    /// Writes the header row.
    pub(super) fn write_names(&self, out: &mut Vec<u8>) -> csv::Result<()> {
        record(out, self.0.iter().map(CsvColumn::name))
    }

    /// Writes one row.
    pub(super) fn write(&self, row: &impl Serialize, out: &mut Vec<u8>) -> csv::Result<()> {
        let row = serde_json::to_value(row).map_err(std::io::Error::from)?;
        let value = |column: &CsvColumn| match column.inner {
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

/// The unquoted text of a cell.
fn cell(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Null => "".into(),
        Value::String(text) if text.starts_with(FORMULA) => format!("'{text}").into(),
        Value::String(text) => text.into(),
        // The JSON text of these never begins like a formula.
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
        let columns = CsvColumns(vec![
            CsvColumn {
                field: "a".to_owned(),
                inner: None,
            },
            CsvColumn {
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
    fn cells_are_quoted_and_formulas_escaped() {
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

    /// A CSV reader reads back the same cells.
    #[test]
    fn rows_read_back() {
        let hostile = [
            "a,b", "\"", "\"\"", "x\r\ny", "=\"1\"", ",", "\r", "\n", "'", ";=1",
        ];
        let columns = CsvColumns(vec![
            CsvColumn {
                field: "a".to_owned(),
                inner: None,
            },
            CsvColumn {
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
