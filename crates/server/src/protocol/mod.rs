//! What goes over the wire. Each protocol is a codec of its own: bytes become requests, replies
//! become bytes. Codecs know neither storage nor sockets.

pub mod memcache;
pub mod mrcache;
pub mod pmc;
pub mod resp;
