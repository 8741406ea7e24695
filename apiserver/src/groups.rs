//! OpenShift's API groups, one room each: what a resource decides for itself, on top of the generic registry.

pub mod route;
