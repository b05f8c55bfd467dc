//! `publish`, `generations` and `follow`.

use crate::folder::{Folder, lines};
use nuthatch_testing::moto::Moto;
