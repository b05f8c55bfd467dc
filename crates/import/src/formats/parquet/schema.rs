//! The columns of a Parquet file that are read, with the types of their elements.

use crate::formats::columns::ColumnNames;
use parquet::basic::{ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::schema::types::{ColumnDescriptor, SchemaDescriptor, Type};

/// The type of the elements of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ElementType {
    Bool,
    Int,
    /// An unsigned integer, stored as the signed one with the same bits.
    Unsigned,
    Float,
    Double,
    Bytes,
    Text,
}

/// A column that is read.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// The index among the stored columns.
    pub(crate) leaf: usize,
    pub(crate) element: ElementType,
    pub(crate) is_list: bool,
    /// What is appended to the key.
    pub(crate) suffix: String,
    /// The definition level of elements that are not null.
    pub(crate) present_level: i16,
    /// The definition level of empty lists.
    pub(crate) empty_level: i16,
}

/// The columns that are read: first the key, then the values.
#[derive(Debug, Clone)]
pub(crate) struct Columns(pub(crate) Vec<Column>);

impl Columns {
    /// Finds the columns in a schema, and checks their types.
    pub(crate) fn new(columns: &ColumnNames, schema: &SchemaDescriptor) -> Result<Self, String> {
        let roots = schema.root_schema().get_fields();
        let names: Vec<_> = roots.iter().map(|root| root.name().to_owned()).collect();
        let (key, values) = columns.find(&names)?;
        let key = column(schema, key, String::new())?;
        if key.is_list
            || !matches!(
                key.element,
                ElementType::Text | ElementType::Bytes | ElementType::Int | ElementType::Unsigned
            )
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

/// Returns the column at the index `root` of the top level.
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
    let element = element_type(&descriptor).map_err(|found| wrong(expected, &found))?;
    if is_list && matches!(element, ElementType::Bool | ElementType::Bytes) {
        let found = if element == ElementType::Bool { "booleans" } else { "bytes" };
        return Err(wrong("a list of integers, floats or text", &format!("a list of {found}")));
    }
    Ok(Column {
        leaf,
        element,
        is_list,
        suffix,
        present_level: descriptor.max_def_level(),
        empty_level: descriptor.repeated_ancestor_def_level() - 1,
        name,
    })
}

/// Returns whether a column is a list. `None` for a column that is neither a list nor plain.
fn is_list(root: &Type) -> Option<bool> {
    let is_repeated = |field: &Type| {
        let info = field.get_basic_info();
        info.has_repetition() && info.repetition() == Repetition::REPEATED
    };
    if root.is_primitive() {
        return Some(is_repeated(root));
    }
    let info = root.get_basic_info();
    let is_marked = matches!(info.logical_type_ref(), Some(LogicalType::List))
        || info.converted_type() == ConvertedType::LIST;
    let [list] = root.get_fields() else { return None };
    if !is_marked || is_repeated(root) || !is_repeated(list) {
        return None;
    }
    // A list repeats either its elements, or a group whose only field is the element.
    let element = match &**list {
        Type::PrimitiveType { .. } => list,
        Type::GroupType { fields, .. } => match &fields[..] {
            [element] => element,
            _ => return None,
        },
    };
    (element.is_primitive() && (element == list || !is_repeated(element))).then_some(true)
}

/// Returns the type of a column's elements, or the name of a type that is not supported.
fn element_type(descriptor: &ColumnDescriptor) -> Result<ElementType, String> {
    let logical = descriptor.logical_type_ref();
    let converted = descriptor.converted_type();
    if matches!(logical, Some(LogicalType::Decimal(_))) || converted == ConvertedType::DECIMAL {
        return Err("decimals".to_owned());
    }
    if matches!(logical, Some(LogicalType::Float16)) {
        return Err("16-bit floats".to_owned());
    }
    let is_unsigned = matches!(logical, Some(LogicalType::Integer(int)) if !int.is_signed)
        || matches!(
            converted,
            ConvertedType::UINT_8
                | ConvertedType::UINT_16
                | ConvertedType::UINT_32
                | ConvertedType::UINT_64
        );
    let is_text =
        matches!(logical, Some(LogicalType::String | LogicalType::Enum | LogicalType::Json))
            || matches!(converted, ConvertedType::UTF8 | ConvertedType::ENUM | ConvertedType::JSON);
    Ok(match descriptor.physical_type() {
        Physical::BOOLEAN => ElementType::Bool,
        Physical::INT32 | Physical::INT64 if is_unsigned => ElementType::Unsigned,
        Physical::INT32 | Physical::INT64 => ElementType::Int,
        Physical::FLOAT => ElementType::Float,
        Physical::DOUBLE => ElementType::Double,
        Physical::BYTE_ARRAY if is_text => ElementType::Text,
        Physical::BYTE_ARRAY | Physical::FIXED_LEN_BYTE_ARRAY => ElementType::Bytes,
        Physical::INT96 => return Err("96-bit integers".to_owned()),
    })
}
