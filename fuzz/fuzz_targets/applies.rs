//! Feeds `untrusted::applies`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use picoshift_apiserver::untrusted;

fuzz_target!(|bytes: &[u8]| untrusted::applies(bytes));
