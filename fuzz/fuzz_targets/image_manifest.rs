//! Feeds `untrusted::image_manifest`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use picoshift_apiserver::untrusted;

fuzz_target!(|texts: (&str, &str)| untrusted::image_manifest(texts.0, texts.1));
