//! `nuthatch top`: what a cache server tells at `/metrics`, for people.
//!
//! A text becomes families of points (`exposition`), these become a server's counts (`sample`), two
//! samples become rates (`view`), and a view becomes lines (`lines`) or JSON (`json`).

mod exposition;
mod json;
mod lines;
mod quantity;
mod sample;
mod screen;
mod view;

pub(crate) use json::json;
pub(crate) use lines::{Line, Style, lines};
pub(crate) use sample::Sample;
pub(crate) use screen::Screen;
pub(crate) use view::View;
