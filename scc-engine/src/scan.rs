//! Reads blocks of ids as Go's `fmt.Sscanf` does, with its errors.

use thiserror::Error;

/// Why a block cannot be read; the texts are those of Go's library.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum ScanError {
    /// The text ends where a number is due.
    #[error("EOF")]
    End,
    /// The text ends between the numbers.
    #[error("unexpected EOF")]
    HalfWay,
    /// There is no number where one is due.
    #[error("expected integer")]
    NoNumber,
    /// A line ends where none may.
    #[error("unexpected newline")]
    Newline,
    /// The numbers are not separated as they should be.
    #[error("input does not match format")]
    Separator,
    /// A number is too large for an id.
    #[error("unsigned integer overflow on token {0}")]
    Overflow(String),
    /// A number is too large for anything.
    #[error("strconv.ParseUint: parsing \"{0}\": value out of range")]
    OutOfRange(String),
}

/// Ids from one to another, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// Reads `START/SIZE` or `START-END`. What follows is not looked at.
pub(crate) fn block(text: &str) -> Result<Block, ScanError> {
    let separator = if text.contains('/') { '/' } else { '-' };
    let (start, rest) = number(text)?;
    let mut rest = rest.chars();
    match rest.next() {
        None => return Err(ScanError::HalfWay),
        Some(found) if found != separator => return Err(ScanError::Separator),
        Some(_) => {}
    }
    let (second, _) = number(rest.as_str())?;
    let end = if separator == '/' { start.wrapping_add(second).wrapping_sub(1) } else { second };
    Ok(Block { start, end })
}

fn number(text: &str) -> Result<(u32, &str), ScanError> {
    let text = text.trim_start_matches(|c: char| c.is_whitespace() && c != '\n' && c != '\r');
    if text.starts_with(['\n', '\r']) {
        return Err(ScanError::Newline);
    }
    if text.is_empty() {
        return Err(ScanError::End);
    }
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (token, rest) = text.split_at(end);
    if token.is_empty() {
        return Err(ScanError::NoNumber);
    }
    let value: u64 = token.parse().map_err(|_| ScanError::OutOfRange(token.to_owned()))?;
    let value = u32::try_from(value).map_err(|_| ScanError::Overflow(token.to_owned()))?;
    Ok((value, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_both_forms() {
        assert_eq!(block("1000/10"), Ok(Block { start: 1000, end: 1009 }));
        assert_eq!(block(" 1000-2000, and more"), Ok(Block { start: 1000, end: 2000 }));
        assert_eq!(block("5/0"), Ok(Block { start: 5, end: 4 }));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[ 0-9/,a\n-]{0,24}") {
            let _ = block(&text).map_err(|error| error.to_string());
        }

        #[test]
        fn what_is_written_is_read(start in any::<u32>(), end in any::<u32>()) {
            prop_assert_eq!(block(&format!("{start}-{end}")), Ok(Block { start, end }));
        }
    }
}
