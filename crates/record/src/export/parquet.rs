//! Apache Parquet by its column writer: every column optional and typed, one row group.

use std::io::Write;
use std::sync::Arc;

use ::parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use ::parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::schema::types::Type;

use super::{ExportError, Exporter};
use crate::table::{ColumnKind, DataCell, DataColumn, DataTable};

pub(super) struct Parquet;

impl Exporter for Parquet {
    fn name(&self) -> &'static str {
        "parquet"
    }

    fn about(&self) -> &'static str {
        "typed columns, for pandas, DuckDB and Spark"
    }

    fn table(&self, table: &DataTable, out: &mut dyn Write) -> Result<(), ExportError> {
        // The writer has to be `Send`, and `out` need not be.
        let bytes = encode(table).map_err(|error| ExportError::Encode(error.to_string()))?;
        Ok(out.write_all(&bytes)?)
    }
}

fn encode(table: &DataTable) -> Result<Vec<u8>, ParquetError> {
    let fields = table.columns.iter().map(|column| Ok(Arc::new(field(column)?)));
    let schema = Type::group_type_builder(table.name)
        .with_fields(fields.collect::<Result<_, ParquetError>>()?)
        .build()?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(concat!("kvmeter ", env!("CARGO_PKG_VERSION")).to_owned())
        .build();
    let mut writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    for (index, column) in table.columns.iter().enumerate() {
        let cells = || table.rows.iter().map(move |row| &row[index]);
        match column.kind {
            ColumnKind::Text => write::<ByteArrayType>(&mut group, cells(), text)?,
            ColumnKind::Integer => write::<Int64Type>(&mut group, cells(), integer)?,
            ColumnKind::Real => write::<DoubleType>(&mut group, cells(), real)?,
            ColumnKind::Boolean => write::<BoolType>(&mut group, cells(), boolean)?,
        }
    }
    group.close()?;
    writer.into_inner()
}

fn field(column: &DataColumn) -> Result<Type, ParquetError> {
    let (physical, logical) = match column.kind {
        ColumnKind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        ColumnKind::Integer => (Physical::INT64, None),
        ColumnKind::Real => (Physical::DOUBLE, None),
        ColumnKind::Boolean => (Physical::BOOLEAN, None),
    };
    Type::primitive_type_builder(&column.name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical)
        .build()
}

/// The next column of the group: definition level 1 and a value where there is one, level 0
/// where there is none.
fn write<'a, T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    cells: impl Iterator<Item = &'a DataCell>,
    value: fn(&DataCell) -> Option<T::T>,
) -> Result<(), ParquetError> {
    let optional: Vec<Option<T::T>> = cells.map(value).collect();
    let levels: Vec<i16> = optional.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<T::T> = optional.into_iter().flatten().collect();
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("more columns than the schema has".to_owned()));
    };
    column.typed::<T>().write_batch(&values, Some(&levels), None)?;
    column.close()
}

fn text(cell: &DataCell) -> Option<ByteArray> {
    if let DataCell::Text(text) = cell {
        Some(ByteArray::from(&*model::masked(text)))
    } else {
        None
    }
}

fn integer(cell: &DataCell) -> Option<i64> {
    if let DataCell::Integer(value) = cell { Some(*value) } else { None }
}

fn real(cell: &DataCell) -> Option<f64> {
    if let DataCell::Real(value) = cell { Some(*value) } else { None }
}

fn boolean(cell: &DataCell) -> Option<bool> {
    if let DataCell::Boolean(value) = cell { Some(*value) } else { None }
}
