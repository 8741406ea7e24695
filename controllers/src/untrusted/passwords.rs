//! Files of passwords.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest as _, Sha1};

use crate::oauth::htpasswd::Htpasswd;

/// A file, and after two zero bytes, if there are some, a name and a password: nobody gets in who is not in the file, and
/// whoever is added at its end does.
pub(super) fn htpasswd(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut parts = text.splitn(3, '\0');
    let (file, name, password) =
        (parts.next().unwrap_or_default(), parts.next().unwrap_or("a"), parts.next().unwrap_or("b"));
    // Costlier ones are as slow as they are meant to be.
    let hashes = file.split("$2").skip(1);
    if hashes.filter_map(|rest| rest.get(2..4)).any(|cost| cost > "04") {
        return;
    }
    let parsed = Htpasswd::parse(file);
    let lines = file.lines().filter(|line| line.contains(':')).count();
    assert!(parsed.len() <= lines && parsed.is_empty() == (lines == 0));
    match parsed.check(name, password) {
        Ok(Some(found)) => {
            assert!(name.starts_with(&found) && found.len() <= 255 && !found.contains(':'), "{found:?}");
            let begins = format!("{found}:");
            assert!(file.lines().any(|line| line.starts_with(&begins)), "{found:?} is not in the file");
        }
        Ok(None) => assert!(!name.contains(':') || name.len() > 255),
        Err(_) => {}
    }
    // Longer names are cut, as upstream does.
    if !name.contains([':', '\n', '\r']) && name.len() < 250 {
        let line = format!("{name}:{{SHA}}{}", STANDARD.encode(Sha1::digest(password)));
        let longer = Htpasswd::parse(&format!("{file}\n{line}"));
        assert_eq!(longer.check(name, password), Ok(Some(name.to_owned())), "the last line counts");
        assert_eq!(longer.check(name, &format!("{password}x")), Ok(None));
        assert_eq!(longer.check(&format!("{name}\u{1}no"), password).ok().flatten(), None);
    }
}
