//! Tests of the computed resources.

mod rendering;
