//! Tests the commands for connections and the server.

#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "../case/mod.rs"]
mod case;
mod debugging;
mod harness;
#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "../data_commands/redis.rs"]
mod redis;
mod sessions;
mod statistics;
mod users;
mod vectors;
