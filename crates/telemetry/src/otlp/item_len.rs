//! The approximate memory of log records and spans.

use opentelemetry::logs::AnyValue;
use opentelemetry::{Array, KeyValue, Value};
use opentelemetry_sdk::logs::SdkLogRecord;
use opentelemetry_sdk::trace::SpanData;

/// Bytes of a name, a number, or the head of a text or list.
const FIXED: usize = 64;

/// Returns the approximate bytes of memory that a log record takes.
pub(super) fn of_record(record: &SdkLogRecord) -> usize {
    let attributes = record.attributes_iter().map(|(_, value)| FIXED + of_any(value));
    size_of::<SdkLogRecord>() + record.body().map_or(0, of_any) + attributes.sum::<usize>()
}

/// Returns the approximate bytes of memory that a span takes.
pub(super) fn of_span(span: &SpanData) -> usize {
    let events = span.events.iter().map(|event| FIXED + of_attributes(&event.attributes));
    let links = span.links.iter().map(|link| 2 * FIXED + of_attributes(&link.attributes));
    let lists = events.sum::<usize>() + links.sum::<usize>();
    size_of::<SpanData>() + span.name.len() + of_attributes(&span.attributes) + lists
}

fn of_attributes(attributes: &[KeyValue]) -> usize {
    attributes.iter().map(|one| FIXED + of_value(&one.value)).sum()
}

fn of_value(value: &Value) -> usize {
    match value {
        Value::String(text) => text.as_str().len(),
        Value::Array(Array::String(texts)) => {
            texts.iter().map(|text| FIXED + text.as_str().len()).sum()
        }
        Value::Array(Array::I64(numbers)) => size_of_val(&numbers[..]),
        Value::Array(Array::F64(numbers)) => size_of_val(&numbers[..]),
        Value::Array(Array::Bool(values)) => values.len(),
        _ => 0,
    }
}

fn of_any(value: &AnyValue) -> usize {
    match value {
        AnyValue::String(text) => text.as_str().len(),
        AnyValue::Bytes(bytes) => bytes.len(),
        AnyValue::ListAny(values) => values.iter().map(|value| FIXED + of_any(value)).sum(),
        AnyValue::Map(values) => values.values().map(|value| 2 * FIXED + of_any(value)).sum(),
        _ => 0,
    }
}
