//! libFuzzer on the functions of each crate's `untrusted`: `FUZZ_TARGET` says which one is fed (see `hack/fuzz`).
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

static TARGET: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let wanted = std::env::var("FUZZ_TARGET").unwrap_or_default();
    let ours = picoshift_apiserver::untrusted::TARGETS.iter();
    let all =
        ours.chain(&picoshift_controllers::untrusted::TARGETS).chain(&picoshift_shim::untrusted::TARGETS);
    all.copied().find(|(name, _)| *name == wanted).expect("FUZZ_TARGET names a target").1
});

fuzz_target!(|bytes: &[u8]| TARGET(bytes));
