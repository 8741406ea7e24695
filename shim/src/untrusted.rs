//! What strangers send to the door, one function for each kind of it: `hack/fuzz` and the tests below call the same. In:
//! anything. Out: nothing; a panic, endless work or a broken promise is the finding.

mod request_heads;
#[cfg(test)]
mod tests;

/// A function that is fed bytes.
pub type Target = fn(&[u8]);

/// The targets by name, which is also that of the folder of their corpus in `fuzz/corpus`.
pub const TARGETS: [(&str, Target); 1] = [("request_heads", request_heads::request_heads)];
