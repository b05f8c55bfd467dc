//! Tests the admin endpoint: its responses, the agreement of all counts, and the log.

mod agreement;
mod http;
mod logs;
mod operations_page;
mod scrape;
mod serving;
