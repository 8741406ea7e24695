//! libFuzzer on the functions of `untrusted`: `FUZZ_TARGET` says which one is fed (see `hack/fuzz`).
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use picoshift_apiserver::untrusted::{self, Target};

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    untrusted::target(&name).expect("FUZZ_TARGET names a target")
});

fuzz_target!(|bytes: &[u8]| TARGET(bytes));
