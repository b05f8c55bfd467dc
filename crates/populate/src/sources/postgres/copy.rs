//! `COPY … TO STDOUT` of a query.

use super::binary::{BinaryDecoder, BinaryRows};
use super::connect::{Connection, failure};
use super::rows::CopyRows;
use super::text::{ColumnDecoder, Lines};
use crate::sources::{RowReceiver, Stop};
use futures_util::{StreamExt, pin_mut};
use tokio_postgres::Column;

/// Bytes that are counted together.
const COUNTED_BYTES: u64 = 64 << 10;

/// The columns of a query.
pub(super) struct Columns {
    pub(super) names: Vec<String>,
    decoders: Vec<ColumnDecoder>,
    /// The decoders of the binary format, if all types have one.
    binary: Option<Vec<BinaryDecoder>>,
}

impl Columns {
    /// Returns the columns of a prepared query.
    pub(super) fn of(columns: &[Column]) -> Self {
        Self {
            names: columns.iter().map(|column| column.name().to_owned()).collect(),
            decoders: columns.iter().map(|column| ColumnDecoder::of(column.type_())).collect(),
            binary: columns.iter().map(|column| BinaryDecoder::of(column.type_())).collect(),
        }
    }

    /// Returns whether the values of a column are integers.
    pub(super) fn is_int(&self, column: usize) -> bool {
        self.decoders[column] == ColumnDecoder::Int
    }
}

/// Copies the rows of a query to the receiver. Returns their number.
pub(super) fn copy(
    connection: &Connection,
    query: &str,
    columns: &Columns,
    receiver: &mut dyn RowReceiver,
) -> Result<u64, Stop> {
    let name = &connection.name;
    let (format, mut rows): (_, Box<dyn CopyRows + '_>) = match &columns.binary {
        Some(decoders) => (" (format binary)", Box::new(BinaryRows::new(decoders, name))),
        None => ("", Box::new(Lines::new((&columns.names, &columns.decoders), name))),
    };
    // Both kinds of ends of the copy: of the connection, and of the receiver.
    connection.is_copying.set(true);
    let copied = connection.run(async |client, interruption| {
        let copy = format!("copy ({query}\n) to stdout{format}");
        let fault = |error| failure(name, &error);
        let stream = interruption.or(client.copy_out(&copy)).await?.map_err(fault)?;
        pin_mut!(stream);
        let mut bytes = 0;
        while let Some(message) = interruption.or(stream.next()).await? {
            let message = message.map_err(fault)?;
            bytes += message.len() as u64;
            if bytes >= COUNTED_BYTES {
                receiver.count_bytes(std::mem::take(&mut bytes));
            }
            if let Err(stop) = rows.take(&message, receiver) {
                return Ok(Err(stop));
            }
        }
        receiver.count_bytes(bytes);
        connection.is_copying.set(false);
        Ok(rows.end())
    });
    copied?
}
