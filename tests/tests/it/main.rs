//! What "done" means, tried on a real control plane: one file per promise.

mod bootstrap_roles;
mod controllers;
mod garbage_collector;
mod identity;
mod image_import;
mod image_imports;
mod image_streams;
mod image_tags;
mod kill_loop;
mod kubectl;
mod lifecycle;
mod network;
mod openapi;
mod operating;
mod pressure;
mod project_security;
mod projects;
mod requests;
mod restart;
mod route_hosts;
mod route_status;
mod routes;
mod server_side_apply;
mod strategic_patch;
mod support;
mod users;
