//! Jobs with SQLite and files, run by the command.

mod arguments;
mod files;
mod gates;
mod incremental;
mod interrupted;
mod overtaken;
mod place;
mod publishing;
mod remote;
mod sqlite;
