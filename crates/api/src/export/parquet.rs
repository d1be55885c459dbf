//! JSON rows as a Parquet file, row group by row group.
//!
//! The columns are the fields of the row's documented type, as in CSV, with their documented types.
//! Integers are INT64, prices DOUBLE (the same number as in JSON), dates DATE, times TIMESTAMP in
//! UTC microseconds, enums and ids STRING; an object or a list is JSON text. Every column is
//! nullable. With dictionaries and zstd a history row takes about thirty bytes.
//!
//! In memory are one row group, and some bytes of the footer for each earlier group. Not here: when
//! a group is full (`mod`).

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
use utoipa::openapi::schema::{KnownFormat, Object, SchemaFormat, SchemaType, Type as OpenApiType};
use utoipa::openapi::{RefOr, Schema};

use super::JSON_ONLY;

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ColumnType {
    Integer,
    Number,
    Boolean,
    Date,
    Time,
    Text,
    Json,
}

/// A Parquet file in progress.
pub(super) struct ParquetWriter {
    columns: Vec<ParquetColumn>,
    file: SerializedFileWriter<OutputBuffer>,
    out: OutputBuffer,
}

/// A column of the current row group. A null has level 0 and no value.
struct ParquetColumn {
    field: String,
    column_type: ColumnType,
    levels: Vec<i16>,
    values: ColumnValues,
}

enum ColumnValues {
    Integer(Vec<i64>),
    Day(Vec<i32>),
    Number(Vec<f64>),
    Boolean(Vec<bool>),
    Bytes(Vec<ByteArray>),
}

/// Bytes that the file writer has written and nobody has taken yet.
#[derive(Clone, Default)]
struct OutputBuffer(Arc<Mutex<Vec<u8>>>);

impl Write for OutputBuffer {
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

impl OutputBuffer {
    fn take(&self) -> Bytes {
        mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner)).into()
    }
}

impl ParquetWriter {
    /// Begins a file of rows of this documented type.
    pub(super) fn of<Row: ToSchema>() -> Result<Self> {
        let mut named = Vec::new();
        Row::schemas(&mut named);
        let RefOr::T(Schema::Object(row)) = Row::schema() else {
            return Err(ParquetError::General(
                "the row type is not a documented object".to_owned(),
            ));
        };
        let columns: Vec<_> = row
            .properties
            .into_iter()
            .filter(|(field, _)| !JSON_ONLY.contains(&field.as_str()))
            .map(|(field, schema)| ParquetColumn::new(field, column_type(&schema, &named)))
            .collect();
        let fields = columns
            .iter()
            .map(ParquetColumn::parquet_type)
            .collect::<Result<Vec<_>>>()?;
        let schema = Type::group_type_builder("row")
            .with_fields(fields)
            .build()?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
            .set_created_by("farescan".to_owned())
            .build();
        let out = OutputBuffer::default();
        let file = SerializedFileWriter::new(out.clone(), Arc::new(schema), Arc::new(properties))?;
        Ok(Self { columns, file, out })
    }

    /// Adds a row to the current group; returns its approximate size in bytes.
    pub(super) fn push(&mut self, row: &Value) -> Result<usize> {
        self.columns
            .iter_mut()
            .map(|column| column.push(row.get(&column.field).unwrap_or(&Value::Null)))
            .sum()
    }

    /// Writes the current group; returns the new bytes of the file.
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

    /// Writes the last group and the footer.
    pub(super) fn finish(mut self: Box<Self>) -> Result<Bytes> {
        let last = self.close_group()?;
        let out = self.out.clone();
        self.file.close()?;
        Ok([last, out.take()].concat().into())
    }
}

impl ParquetColumn {
    fn new(field: String, column_type: ColumnType) -> Self {
        let values = match column_type {
            ColumnType::Integer | ColumnType::Time => ColumnValues::Integer(Vec::new()),
            ColumnType::Date => ColumnValues::Day(Vec::new()),
            ColumnType::Number => ColumnValues::Number(Vec::new()),
            ColumnType::Boolean => ColumnValues::Boolean(Vec::new()),
            ColumnType::Text | ColumnType::Json => ColumnValues::Bytes(Vec::new()),
        };
        Self {
            field,
            column_type,
            levels: Vec::new(),
            values,
        }
    }

    fn parquet_type(&self) -> Result<TypePtr> {
        let (physical, logical) = match self.column_type {
            ColumnType::Integer => (Physical::INT64, None),
            ColumnType::Time => (
                Physical::INT64,
                Some(LogicalType::timestamp(true, TimeUnit::MICROS)),
            ),
            ColumnType::Date => (Physical::INT32, Some(LogicalType::Date)),
            ColumnType::Number => (Physical::DOUBLE, None),
            ColumnType::Boolean => (Physical::BOOLEAN, None),
            ColumnType::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            ColumnType::Json => (Physical::BYTE_ARRAY, Some(LogicalType::Json)),
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
        let fits = match (self.column_type, &mut self.values) {
            (ColumnType::Integer, ColumnValues::Integer(values)) => {
                value.as_i64().map(|number| values.push(number))
            }
            (ColumnType::Time, ColumnValues::Integer(values)) => {
                microseconds(value).map(|time| values.push(time))
            }
            (ColumnType::Date, ColumnValues::Day(values)) => {
                days(value).map(|day| values.push(day))
            }
            (ColumnType::Number, ColumnValues::Number(values)) => {
                value.as_f64().map(|number| values.push(number))
            }
            (ColumnType::Boolean, ColumnValues::Boolean(values)) => {
                value.as_bool().map(|boolean| values.push(boolean))
            }
            (ColumnType::Text, ColumnValues::Bytes(values)) => {
                value.as_str().map(|text| values.push(text.into()))
            }
            (_, ColumnValues::Bytes(values)) => {
                values.push(value.to_string().into_bytes().into());
                Some(())
            }
            _ => None,
        };
        let size = match &self.values {
            ColumnValues::Bytes(values) => {
                values.last().map_or(0, ByteArray::len) + size_of::<ByteArray>()
            }
            _ => size_of::<i64>(),
        };
        fits.map(|()| size).ok_or_else(|| {
            ParquetError::General(format!(
                "`{}` does not have its documented type",
                self.field
            ))
        })
    }

    fn write(&mut self, mut writer: SerializedColumnWriter<'_>) -> Result<()> {
        let levels = Some(&self.levels[..]);
        match &mut self.values {
            ColumnValues::Integer(values) => writer
                .typed::<Int64Type>()
                .write_batch(values, levels, None)
                .map(|_| values.clear())?,
            ColumnValues::Day(values) => writer
                .typed::<Int32Type>()
                .write_batch(values, levels, None)
                .map(|_| values.clear())?,
            ColumnValues::Number(values) => writer
                .typed::<DoubleType>()
                .write_batch(values, levels, None)
                .map(|_| values.clear())?,
            ColumnValues::Boolean(values) => writer
                .typed::<BoolType>()
                .write_batch(values, levels, None)
                .map(|_| values.clear())?,
            ColumnValues::Bytes(values) => {
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

/// Days since 1970.
fn days(value: &Value) -> Option<i32> {
    let day: Date = value.as_str()?.parse().ok()?;
    Some(date(1970, 1, 1).until(day).ok()?.get_days())
}

/// The column type of a documented field; a schema defined elsewhere is an enum or an id. `named`
/// are the components that the row refers to.
fn column_type(schema: &RefOr<Schema>, named: &[(String, RefOr<Schema>)]) -> ColumnType {
    match schema {
        RefOr::T(Schema::Object(object)) => object_column_type(object),
        RefOr::T(Schema::Array(_)) => ColumnType::Json,
        RefOr::Ref(reference) => {
            let name = reference.ref_location.rsplit('/').next();
            let schema = named
                .iter()
                .find(|(known, _)| Some(known.as_str()) == name)
                .map(|(_, schema)| schema);
            schema
                .filter(|schema| matches!(schema, RefOr::T(_)))
                .map_or(ColumnType::Text, |schema| column_type(schema, named))
        }
        RefOr::T(_) => ColumnType::Text,
    }
}

fn object_column_type(object: &Object) -> ColumnType {
    let types: &[OpenApiType] = match &object.schema_type {
        SchemaType::Type(one) => std::slice::from_ref(one),
        SchemaType::Array(several) => several,
        SchemaType::AnyValue => &[],
    };
    match types.iter().find(|one| **one != OpenApiType::Null) {
        Some(OpenApiType::Integer) => ColumnType::Integer,
        Some(OpenApiType::Number) => ColumnType::Number,
        Some(OpenApiType::Boolean) => ColumnType::Boolean,
        Some(OpenApiType::String) => match &object.format {
            Some(SchemaFormat::KnownFormat(KnownFormat::Date)) => ColumnType::Date,
            Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)) => ColumnType::Time,
            _ => ColumnType::Text,
        },
        _ => ColumnType::Json,
    }
}
