//! stub
pub mod json;
pub mod node;
