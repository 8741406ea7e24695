//! OpenShift's API groups, one room each: what a resource decides for itself, on top of the generic machinery. A
//! group is absent from discovery until it is whole.

pub mod authorization;
pub mod image;
pub mod oauth;
pub mod project;
pub mod route;
pub mod security;
pub mod user;
