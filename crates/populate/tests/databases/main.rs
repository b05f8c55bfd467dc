//! Jobs with real servers of PostgreSQL and MariaDB, which the tests start.

mod job;
mod mariadb;
#[path = "../populate/place.rs"]
#[expect(dead_code, reason = "shared with the tests of other sources")]
mod place;
mod postgres;
mod tls;
