//! Feeds `untrusted::continue_token`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use picoshift_apiserver::untrusted;

fuzz_target!(|text: &str| untrusted::continue_token(text));
