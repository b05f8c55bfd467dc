//! The admin port: what it answers, that all who tell of counts agree, and what is logged.

mod agreement;
mod http;
mod logs;
mod operations_page;
mod scrape;
mod serving;
