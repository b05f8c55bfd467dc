//! The connections of a worker, by number.

use super::connection::Connection;
use super::decoders::Decoders;
use super::reactor::Number;

/// Connections by number. Numbers of removed connections are used again.
pub(crate) struct Connections<T: Decoders> {
    all: Vec<Option<Box<Connection<T>>>>,
    free: Vec<Number>,
    /// The serial number of the connection that was added last.
    last_serial: u32,
}

impl<T: Decoders> Default for Connections<T> {
    fn default() -> Self {
        Self { all: Vec::new(), free: Vec::new(), last_serial: 0 }
    }
}

impl<T: Decoders> Connections<T> {
    pub(crate) fn insert(&mut self, mut connection: Connection<T>) -> Number {
        self.last_serial = self.last_serial.wrapping_add(1);
        connection.serial = self.last_serial;
        let connection = Some(Box::new(connection));
        if let Some(number) = self.free.pop() {
            self.all[number as usize] = connection;
            return number;
        }
        self.all.push(connection);
        (self.all.len() - 1) as Number
    }

    #[inline]
    pub(crate) fn get(&mut self, number: Number) -> Option<&mut Connection<T>> {
        self.all.get_mut(number as usize)?.as_deref_mut()
    }

    pub(crate) fn remove(&mut self, number: Number) {
        if let Some(slot) = self.all.get_mut(number as usize)
            && slot.take().is_some()
        {
            self.free.push(number);
        }
    }

    /// Returns whether there are no connections.
    pub(crate) fn is_empty(&self) -> bool {
        self.all.len() == self.free.len()
    }

    pub(crate) fn iter(&mut self) -> impl Iterator<Item = (Number, &mut Connection<T>)> {
        let all = self.all.iter_mut().enumerate();
        all.filter_map(|(number, slot)| Some((number as Number, slot.as_deref_mut()?)))
    }
}
