//! Feeds `untrusted::registry_headers`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use picoshift_apiserver::untrusted;

fuzz_target!(|text: &str| untrusted::registry_headers(text));
