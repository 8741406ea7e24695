//! OpenShift's API groups, one room each: what a resource decides for itself, on top of the generic registry.

pub mod route;
//! The API groups, one folder each. A group is absent from discovery until it is whole.

pub mod project;
