//! Writing a record to its reserved place.

use super::Segments;
use crate::segment::appender::Reservation;
use crate::segment::record::{Record, erase_head};
use std::io;

impl Segments {
    /// Writes a record. If the write fails, for example because the disk is full, erases its head.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub(crate) fn write_at(
        &self,
        reservation: &Reservation,
        record: &Record<'_>,
    ) -> io::Result<()> {
        let head = record.encode(reservation.salt, reservation.offset);
        let written =
            self.options.disk.write(&reservation.file, &head, record.data, reservation.offset);
        if written.is_err()
            && reservation.file.metadata().is_ok_and(|file| file.len() > reservation.offset)
        {
            // If this fails too, the next process that continues the segment erases the head.
            let _ = erase_head(&reservation.file, reservation.offset);
        }
        written?;
        self.counters.written(record.len());
        Ok(())
    }
}
