//! The API groups, one folder each. A group is absent from discovery until it is whole.

pub mod project;
