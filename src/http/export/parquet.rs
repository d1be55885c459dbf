//! Rows of JSON as a Parquet file, row group by row group.
//!
//! The columns are the fields of the row's documented type, as in CSV, with the types that it documents: whole numbers are INT64, prices
//! DOUBLE (the same number as in JSON), dates DATE, times TIMESTAMP in microseconds of UTC, words and ids STRING; an object or a list is
//! JSON text. Every column may be null. Dictionaries and zstd make a row of the history some thirty bytes.
//!
//! What is held is one row group as columns, and the footer's few bytes for each group before it. Not here: when a group is full (`mod`).

use std::io::Write;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use jiff::Timestamp;
use jiff::civil::{Date, date};
use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};
use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::schema::{KnownFormat, Object, SchemaFormat, SchemaType, Type as Documented};
use utoipa::openapi::{RefOr, Schema};

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Whole,
    Number,
    Truth,
    Date,
    Time,
    Text,
    Json,
}

/// A file that is being written.
pub(super) struct Writer {
    columns: Vec<Column>,
    file: SerializedFileWriter<Shared>,
    out: Shared,
}

/// A column of the row group that is being collected. A null has a level of 0 and no value.
struct Column {
    field: String,
    kind: Kind,
    levels: Vec<i16>,
    values: Values,
}

enum Values {
    Whole(Vec<i64>),
    Day(Vec<i32>),
    Number(Vec<f64>),
    Truth(Vec<bool>),
    Bytes(Vec<ByteArray>),
}

/// What the file's writer has written and nobody has taken yet.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Shared {
    fn take(&self) -> Bytes {
        mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner)).into()
    }
}

impl Writer {
    /// A file of rows of this documented type.
    pub(super) fn of<Row: ToSchema>() -> Result<Self> {
        let mut named = Vec::new();
        Row::schemas(&mut named);
        let RefOr::T(Schema::Object(row)) = Row::schema() else {
            return Err(ParquetError::General(
                "the rows are no documented object".to_owned(),
            ));
        };
        let columns: Vec<_> = row
            .properties
            .into_iter()
            .map(|(field, schema)| Column::new(field, kind(&schema, &named)))
            .collect();
        let fields = columns
            .iter()
            .map(Column::described)
            .collect::<Result<Vec<_>>>()?;
        let schema = Type::group_type_builder("row")
            .with_fields(fields)
            .build()?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
            .set_created_by("farescan".to_owned())
            .build();
        let out = Shared::default();
        let file = SerializedFileWriter::new(out.clone(), Arc::new(schema), Arc::new(properties))?;
        Ok(Self { columns, file, out })
    }

    /// Adds a row to the group that is being collected; gives about how many bytes it holds.
    pub(super) fn push(&mut self, row: &Value) -> Result<usize> {
        self.columns
            .iter_mut()
            .map(|column| column.push(row.get(&column.field).unwrap_or(&Value::Null)))
            .sum()
    }

    /// Writes the rows that were collected as a group; gives what the file has grown by.
    pub(super) fn close_group(&mut self) -> Result<Bytes> {
        if self
            .columns
            .first()
            .is_some_and(|column| !column.levels.is_empty())
        {
            let mut group = self.file.next_row_group()?;
            for column in &mut self.columns {
                let Some(writer) = group.next_column()? else {
                    break;
                };
                column.write(writer)?;
            }
            group.close()?;
            self.file.flush()?;
        }
        Ok(self.out.take())
    }

    /// Writes what makes it a whole file.
    pub(super) fn finish(mut self: Box<Self>) -> Result<Bytes> {
        let last = self.close_group()?;
        let out = self.out.clone();
        self.file.close()?;
        Ok([last, out.take()].concat().into())
    }
}

impl Column {
    fn new(field: String, kind: Kind) -> Self {
        let values = match kind {
            Kind::Whole | Kind::Time => Values::Whole(Vec::new()),
            Kind::Date => Values::Day(Vec::new()),
            Kind::Number => Values::Number(Vec::new()),
            Kind::Truth => Values::Truth(Vec::new()),
            Kind::Text | Kind::Json => Values::Bytes(Vec::new()),
        };
        Self {
            field,
            kind,
            levels: Vec::new(),
            values,
        }
    }

    fn described(&self) -> Result<TypePtr> {
        let (physical, logical) = match self.kind {
            Kind::Whole => (Physical::INT64, None),
            Kind::Time => (
                Physical::INT64,
                Some(LogicalType::timestamp(true, TimeUnit::MICROS)),
            ),
            Kind::Date => (Physical::INT32, Some(LogicalType::Date)),
            Kind::Number => (Physical::DOUBLE, None),
            Kind::Truth => (Physical::BOOLEAN, None),
            Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Kind::Json => (Physical::BYTE_ARRAY, Some(LogicalType::Json)),
        };
        let column = Type::primitive_type_builder(&self.field, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical);
        Ok(Arc::new(column.build()?))
    }

    fn push(&mut self, value: &Value) -> Result<usize> {
        self.levels.push(i16::from(!value.is_null()));
        if value.is_null() {
            return Ok(size_of::<i16>());
        }
        let fits = match (self.kind, &mut self.values) {
            (Kind::Whole, Values::Whole(values)) => {
                value.as_i64().map(|number| values.push(number))
            }
            (Kind::Time, Values::Whole(values)) => {
                microseconds(value).map(|time| values.push(time))
            }
            (Kind::Date, Values::Day(values)) => days(value).map(|day| values.push(day)),
            (Kind::Number, Values::Number(values)) => {
                value.as_f64().map(|number| values.push(number))
            }
            (Kind::Truth, Values::Truth(values)) => value.as_bool().map(|truth| values.push(truth)),
            (Kind::Text, Values::Bytes(values)) => {
                value.as_str().map(|text| values.push(text.into()))
            }
            (_, Values::Bytes(values)) => {
                values.push(value.to_string().into_bytes().into());
                Some(())
            }
            _ => None,
        };
        let held = match &self.values {
            Values::Bytes(values) => {
                values.last().map_or(0, ByteArray::len) + size_of::<ByteArray>()
            }
            _ => size_of::<i64>(),
        };
        fits.map(|()| held).ok_or_else(|| {
            ParquetError::General(format!(
                "`{}` is not what it is documented to be",
                self.field
            ))
        })
    }

    fn write(&mut self, mut writer: SerializedColumnWriter<'_>) -> Result<()> {
        let levels = Some(&self.levels[..]);
        match &mut self.values {
            Values::Whole(values) => writer
                .typed::<Int64Type>()
                .write_batch(values, levels, None)
                .map(|_| values.clear())?,
            Values::Day(values) => writer
                .typed::<Int32Type>()
                .write_batch(values, levels, None)
                .map(|_| values.clear())?,
            Values::Number(values) => writer
                .typed::<DoubleType>()
                .write_batch(values, levels, None)
                .map(|_| values.clear())?,
            Values::Truth(values) => writer
                .typed::<BoolType>()
                .write_batch(values, levels, None)
                .map(|_| values.clear())?,
            Values::Bytes(values) => {
                writer
                    .typed::<ByteArrayType>()
                    .write_batch(values, levels, None)
                    .map(|_| values.clear())?;
            }
        }
        self.levels.clear();
        writer.close()
    }
}

fn microseconds(value: &Value) -> Option<i64> {
    Some(value.as_str()?.parse::<Timestamp>().ok()?.as_microsecond())
}

/// Since 1970.
fn days(value: &Value) -> Option<i32> {
    let day: Date = value.as_str()?.parse().ok()?;
    Some(date(1970, 1, 1).until(day).ok()?.get_days())
}

/// What a documented field holds. What is described elsewhere is a word or an id.
/// `named` are the components that the row refers to.
fn kind(schema: &RefOr<Schema>, named: &[(String, RefOr<Schema>)]) -> Kind {
    match schema {
        RefOr::T(Schema::Object(object)) => kind_of(object),
        RefOr::T(Schema::Array(_)) => Kind::Json,
        RefOr::Ref(reference) => {
            let name = reference.ref_location.rsplit('/').next();
            let schema = named
                .iter()
                .find(|(known, _)| Some(known.as_str()) == name)
                .map(|(_, schema)| schema);
            schema
                .filter(|schema| matches!(schema, RefOr::T(_)))
                .map_or(Kind::Text, |schema| kind(schema, named))
        }
        RefOr::T(_) => Kind::Text,
    }
}

fn kind_of(object: &Object) -> Kind {
    let types: &[Documented] = match &object.schema_type {
        SchemaType::Type(one) => std::slice::from_ref(one),
        SchemaType::Array(several) => several,
        SchemaType::AnyValue => &[],
    };
    match types.iter().find(|one| **one != Documented::Null) {
        Some(Documented::Integer) => Kind::Whole,
        Some(Documented::Number) => Kind::Number,
        Some(Documented::Boolean) => Kind::Truth,
        Some(Documented::String) => match &object.format {
            Some(SchemaFormat::KnownFormat(KnownFormat::Date)) => Kind::Date,
            Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)) => Kind::Time,
            _ => Kind::Text,
        },
        _ => Kind::Json,
    }
}
