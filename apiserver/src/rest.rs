//! The verbs, once, for every resource. [`Storage`] is what a resource must answer; the handlers in `rest/` do all
//! that is the same for all: decoding, negotiation, patches, tables, options, errors.

pub mod apply;
pub(crate) mod collector;
pub mod fields;
pub mod handler;
pub mod item;
mod json_patch;
pub mod message;
pub mod options;
pub mod partial;
pub mod patch;
pub mod query;
pub mod respond;
pub mod storage;
pub mod strategic_patch;
pub mod stream;
pub mod table;
mod warning;

pub use handler::Handler;
pub use item::Item;
pub use options::{DeleteOptions, GetOptions, ListOptions, Preconditions, WriteOptions};
pub use storage::{Deleted, Items, List, RequestContext, Storage, Updated, Updater, Watch, WatchEvent};
