//! What the columns of a Parquet file are, as far as they are asked for.

use crate::columns::Choice;
use parquet::basic::{ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::schema::types::{ColumnDescriptor, SchemaDescriptor, Type};

/// What the elements of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    Int,
    /// An integer stored with the bits of a signed one.
    Unsigned,
    Float,
    Double,
    Bytes,
    Text,
}

/// A column to be read.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// Its place among the columns as they are stored.
    pub(crate) leaf: usize,
    pub(crate) kind: Kind,
    pub(crate) is_list: bool,
    /// What it adds to the key.
    pub(crate) suffix: String,
    /// The definition level of elements that are not null.
    pub(crate) present: i16,
    /// The definition level of empty lists.
    pub(crate) empty: i16,
}

/// The columns to be read: the key, then the values.
#[derive(Debug, Clone)]
pub(crate) struct Columns(pub(crate) Vec<Column>);

impl Columns {
    pub(crate) fn new(choice: &Choice, schema: &SchemaDescriptor) -> Result<Self, String> {
        let roots = schema.root_schema().get_fields();
        let names: Vec<_> = roots.iter().map(|root| root.name().to_owned()).collect();
        let (key, values) = choice.find(&names)?;
        let key = column(schema, key, String::new())?;
        if key.is_list || !matches!(key.kind, Kind::Text | Kind::Bytes | Kind::Int | Kind::Unsigned)
        {
            let name = &key.name;
            return Err(format!("column \"{name}\": expected text, bytes or integers as keys"));
        }
        let mut columns = vec![key];
        for value in values {
            columns.push(column(schema, value.index, value.suffix)?);
        }
        Ok(Self(columns))
    }
}

fn column(schema: &SchemaDescriptor, root: usize, suffix: String) -> Result<Column, String> {
    let name = schema.root_schema().get_fields()[root].name().to_owned();
    let wrong = |expected: &str, found: &str| {
        format!("column \"{name}\": expected {expected}, found {found}")
    };
    let mut leaves = (0..schema.num_columns()).filter(|l| schema.get_column_root_idx(*l) == root);
    let nested = || wrong("a plain column or a list of plain elements", "one with columns inside");
    let (Some(leaf), None) = (leaves.next(), leaves.next()) else { return Err(nested()) };
    let descriptor = schema.column(leaf);
    let is_list = is_list(&schema.root_schema().get_fields()[root]).ok_or_else(nested)?;
    let expected = "booleans, integers, floats, text or bytes";
    let kind = kind(&descriptor).map_err(|found| wrong(expected, &found))?;
    if is_list && matches!(kind, Kind::Bool | Kind::Bytes) {
        let found = if kind == Kind::Bool { "booleans" } else { "bytes" };
        return Err(wrong("a list of integers, floats or text", &format!("a list of {found}")));
    }
    Ok(Column {
        leaf,
        kind,
        is_list,
        suffix,
        present: descriptor.max_def_level(),
        empty: descriptor.repeated_ancestor_def_level() - 1,
        name,
    })
}

/// Whether a column is a list rather than a plain one; `None` for one that is neither.
fn is_list(root: &Type) -> Option<bool> {
    let repeated = |field: &Type| {
        let info = field.get_basic_info();
        info.has_repetition() && info.repetition() == Repetition::REPEATED
    };
    if root.is_primitive() {
        return Some(repeated(root));
    }
    let info = root.get_basic_info();
    let marked = matches!(info.logical_type_ref(), Some(LogicalType::List))
        || info.converted_type() == ConvertedType::LIST;
    let [list] = root.get_fields() else { return None };
    if !marked || repeated(root) || !repeated(list) {
        return None;
    }
    // Either the list repeats its elements, or a group of which each element is the only field.
    let element = match &**list {
        Type::PrimitiveType { .. } => list,
        Type::GroupType { fields, .. } => match &fields[..] {
            [element] => element,
            _ => return None,
        },
    };
    (element.is_primitive() && (element == list || !repeated(element))).then_some(true)
}

/// The kind of a column's elements, or what they are instead.
fn kind(descriptor: &ColumnDescriptor) -> Result<Kind, String> {
    let logical = descriptor.logical_type_ref();
    let converted = descriptor.converted_type();
    if matches!(logical, Some(LogicalType::Decimal(_))) || converted == ConvertedType::DECIMAL {
        return Err("decimals".to_owned());
    }
    if matches!(logical, Some(LogicalType::Float16)) {
        return Err("16-bit floats".to_owned());
    }
    let unsigned = matches!(logical, Some(LogicalType::Integer(int)) if !int.is_signed)
        || matches!(
            converted,
            ConvertedType::UINT_8
                | ConvertedType::UINT_16
                | ConvertedType::UINT_32
                | ConvertedType::UINT_64
        );
    let text = matches!(logical, Some(LogicalType::String | LogicalType::Enum | LogicalType::Json))
        || matches!(converted, ConvertedType::UTF8 | ConvertedType::ENUM | ConvertedType::JSON);
    Ok(match descriptor.physical_type() {
        Physical::BOOLEAN => Kind::Bool,
        Physical::INT32 | Physical::INT64 if unsigned => Kind::Unsigned,
        Physical::INT32 | Physical::INT64 => Kind::Int,
        Physical::FLOAT => Kind::Float,
        Physical::DOUBLE => Kind::Double,
        Physical::BYTE_ARRAY if text => Kind::Text,
        Physical::BYTE_ARRAY | Physical::FIXED_LEN_BYTE_ARRAY => Kind::Bytes,
        Physical::INT96 => return Err("96-bit integers".to_owned()),
    })
}
