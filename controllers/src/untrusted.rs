//! What strangers send to the OAuth server, and files of passwords, one function for each kind of it: `hack/fuzz` and the
//! tests below call the same. In: anything. Out: nothing; a panic, endless work or a broken promise is the finding.

mod browser;
mod oauth_requests;
mod passwords;
mod redirects;
#[cfg(test)]
mod tests;

/// A function that is fed bytes.
pub type Target = fn(&[u8]);

/// The targets by name, which is also that of the folder of their corpus in `fuzz/corpus`.
pub const TARGETS: [(&str, Target); 3] = [
    ("htpasswd", passwords::htpasswd),
    ("oauth_requests", oauth_requests::oauth_requests),
    ("redirects", |bytes| redirects::redirects(&String::from_utf8_lossy(bytes))),
];
