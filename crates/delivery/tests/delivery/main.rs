//! Publishing to a folder, and following it.

mod damage;
mod deltas;
mod following;
mod groups;
mod place;
mod publishing;
mod shards;
mod signatures;
mod soak;
mod staging;
