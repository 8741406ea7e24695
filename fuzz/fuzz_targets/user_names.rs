//! Feeds `untrusted::user_names`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use picoshift_apiserver::untrusted;

fuzz_target!(|text: &str| untrusted::user_names(text));
