//! Messages and progress on standard error, the same for all programs of the product.

mod message;
mod progress;

pub use message::print_message;
pub use progress::Display;
