//! Tests of the computed resources.

mod fixture;
mod reading;
mod rendering;
mod writing;
