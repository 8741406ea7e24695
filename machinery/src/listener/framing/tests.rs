//! Tests of what counts as ambiguous.

use proptest::prelude::*;

use super::*;

/// The number of the first ambiguous request in `bytes`, fed in pieces of `size`.
fn first(bytes: &[u8], size: usize) -> Option<u64> {
    let (mut framing, verdict) = Framing::new();
    for piece in bytes.chunks(size) {
        framing.feed(piece);
    }
    Some(verdict.first.load(Ordering::Relaxed)).filter(|number| *number != NONE)
}

fn both(text: &str) -> Option<u64> {
    let (whole, bytewise) = (first(text.as_bytes(), usize::MAX), first(text.as_bytes(), 1));
    assert_eq!(whole, bytewise, "{text:?}");
    whole
}

#[test]
fn honest_requests_are_clear() {
    for text in [
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "\r\n\nGET / HTTP/1.1\nHost: a\n\n",
        "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nabc\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\nPOST / HTTP/1.1\r\ntransfer-encoding: Chunked\r\n\r\n\
         5\r\nabc\r\n\r\n1F;x=y\r\n0123456789012345678901234567890\r\n0\r\nTrailer: x\r\n\r\n\
         GET / HTTP/1.1\r\nContent-Lengthy: 1\r\nContent-Lengthy: 2\r\n\r\n",
    ] {
        assert_eq!(both(text), None, "{text:?}");
    }
}

#[test]
fn what_has_two_ends_is_found_with_its_number() {
    let honest = "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc";
    for head in [
        "Content-Length: 3\r\nContent-Length: 3\r\n",
        "Content-Length: 3\r\ncontent-length: 4\r\n",
        "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding:\r\n chunked\r\n",
        "Transfer-Encoding : chunked\r\nContent-Length: 3\r\n",
        "Content-Length: 3, 3\r\n",
        "Content-Length: +3\r\n",
        "Content-Length: -3\r\n",
        "Content-Length: 0x3\r\n",
        "Content-Length:\r\n",
        "Content-Length: 99999999999999999999\r\n",
        "X: a\r\n folded\r\n",
        "Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
        "Transfer-Encoding: chunked\r\n\r\n-1\r\n",
        "Transfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n",
        "Transfer-Encoding: chunked\r\n\r\n11111111111111111\r\n",
        "Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
    ] {
        let text = format!("{honest}{honest}POST / HTTP/1.1\r\nHost: a\r\n{head}\r\n");
        assert_eq!(both(&text), Some(2), "{head:?}");
    }
    let long = format!("GET / HTTP/1.1\r\nContent-Length: {}3\r\n\r\n", " ".repeat(KEPT));
    assert_eq!(both(&long), Some(0));
}

#[test]
fn a_verdict_counts_requests() {
    let (mut framing, verdict) = Framing::new();
    framing.feed(b"GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\nContent-Length: x\r\n\r\n");
    assert!(!verdict.refuses_next());
    assert!(verdict.refuses_next());
    assert!(verdict.refuses_next(), "nothing behind it is answered");
}

proptest! {
    #[test]
    fn pieces_make_no_difference(bytes in "(GET / HTTP/1.1|Content-Length: [0-4]|Transfer-Encoding: chunked|[0-9a-f]|a: b|\r\n|\n| ){0,24}", size in 1_usize..9) {
        prop_assert_eq!(first(bytes.as_bytes(), size), first(bytes.as_bytes(), usize::MAX));
    }

    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
        first(&bytes, usize::MAX);
    }
}
