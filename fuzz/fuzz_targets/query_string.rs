//! Feeds `untrusted::query_string`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use picoshift_apiserver::untrusted;

fuzz_target!(|text: &str| untrusted::query_string(text));
