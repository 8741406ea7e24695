//! Where a request says that it came from, and the one address that cannot be made up.

use std::net::IpAddr;

use http::HeaderMap;

/// The addresses of `X-Forwarded-For` and `X-Real-Ip`, and at last the connection's. Only the last is no claim.
pub(super) fn addresses(headers: &HeaderMap, peer: IpAddr) -> Vec<String> {
    let first = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut all: Vec<IpAddr> = first("x-forwarded-for").split(',').filter_map(read).collect();
    if let Some(real) = read(first("x-real-ip")).filter(|real| !all.contains(real)) {
        all.push(real);
    }
    let peer = peer.to_canonical();
    if all.last() != Some(&peer) {
        all.push(peer);
    }
    all.iter().map(ToString::to_string).collect()
}

fn read(text: &str) -> Option<IpAddr> {
    text.trim().parse::<IpAddr>().ok().map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_come_first_and_the_connection_last() {
        let peer = "10.0.0.9".parse().unwrap();
        let read = |forwarded: Option<&str>, real: Option<&str>| {
            let mut headers = HeaderMap::new();
            for (name, value) in [("x-forwarded-for", forwarded), ("x-real-ip", real)] {
                if let Some(value) = value {
                    headers.insert(name, value.parse().unwrap());
                }
            }
            addresses(&headers, peer).join(" ")
        };
        assert_eq!(read(None, None), "10.0.0.9");
        assert_eq!(read(Some("1.1.1.1, nonsense,2001:db8::1"), None), "1.1.1.1 2001:db8::1 10.0.0.9");
        assert_eq!(read(Some("1.1.1.1,10.0.0.9"), Some("1.1.1.1")), "1.1.1.1 10.0.0.9");
        assert_eq!(read(None, Some("2.2.2.2")), "2.2.2.2 10.0.0.9");
    }
}
