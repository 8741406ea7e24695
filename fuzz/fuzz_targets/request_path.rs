//! Feeds `untrusted::request_path`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use picoshift_apiserver::untrusted;

fuzz_target!(|text: &str| untrusted::request_path(text));
