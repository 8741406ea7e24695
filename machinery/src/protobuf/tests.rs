//! Equality, byte by byte, with what k8s.io/apimachinery writes (`hack/fixtures` made the files).

use super::{status, watch_event};
use crate::status::Status;

const STATUS: &[u8] = include_bytes!("testdata/status.bin");

#[test]
fn a_status() {
    let parsed: Status = serde_json::from_slice(include_bytes!("testdata/status.json")).unwrap();
    assert_eq!(status(&parsed), STATUS);
}

#[test]
fn a_watch_event() {
    assert_eq!(watch_event("ERROR", STATUS), include_bytes!("testdata/event.bin").as_slice());
}
