//! A JSON parser that says what is wrong in the words of Go's `encoding/json`, and keeps what a schema check needs
//! (see [`Node`]).

use super::node::Node;

/// How deep objects and lists may nest. What is stored is read back by a parser that stops at 128.
pub const MAX_DEPTH: usize = 100;

/// Why bytes are no JSON; Go's text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SyntaxError(pub String);

type Parsed<T> = Result<T, SyntaxError>;

/// Parses one JSON value.
///
/// # Errors
/// [`SyntaxError`], also for nesting deeper than [`MAX_DEPTH`].
pub fn parse(bytes: &[u8]) -> Parsed<Node> {
    let mut parser = Parser { bytes, at: 0, depth: 0 };
    let node = parser.value()?;
    parser.skip_space();
    match parser.peek() {
        None => Ok(node),
        Some(byte) => Err(invalid(byte, "after top-level value")),
    }
}

struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// The next byte that is no space; it is not consumed.
    fn next_token(&mut self) -> Parsed<u8> {
        self.skip_space();
        self.peek().ok_or_else(unexpected_end)
    }

    fn value(&mut self) -> Parsed<Node> {
        match self.next_token()? {
            b'{' => self.nested(Self::map),
            b'[' => self.nested(Self::list),
            b'"' => self.text().map(Node::Text),
            b't' => self.literal("true", Node::Bool(true)),
            b'f' => self.literal("false", Node::Bool(false)),
            b'n' => self.literal("null", Node::Null),
            b'-' | b'0'..=b'9' => self.number(),
            other => Err(invalid(other, "looking for beginning of value")),
        }
    }

    fn nested(&mut self, parse: fn(&mut Self) -> Parsed<Node>) -> Parsed<Node> {
        if self.depth == MAX_DEPTH {
            return Err(SyntaxError("exceeded max depth".to_owned()));
        }
        self.depth += 1;
        self.at += 1;
        let node = parse(self);
        self.depth -= 1;
        node
    }

    fn map(&mut self) -> Parsed<Node> {
        let mut members = Vec::new();
        if self.next_token()? == b'}' {
            self.at += 1;
            return Ok(Node::Map(members));
        }
        loop {
            match self.next_token()? {
                b'"' => {}
                other => return Err(invalid(other, "looking for beginning of object key string")),
            }
            let name = self.text()?;
            match self.next_token()? {
                b':' => self.at += 1,
                other => return Err(invalid(other, "after object key")),
            }
            let value = self.value()?;
            members.push((name, value));
            match self.next_token()? {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    return Ok(Node::Map(members));
                }
                other => return Err(invalid(other, "after object key:value pair")),
            }
        }
    }

    fn list(&mut self) -> Parsed<Node> {
        let mut items = Vec::new();
        if self.next_token()? == b']' {
            self.at += 1;
            return Ok(Node::List(items));
        }
        loop {
            items.push(self.value()?);
            match self.next_token()? {
                b',' => self.at += 1,
                b']' => {
                    self.at += 1;
                    return Ok(Node::List(items));
                }
                other => return Err(invalid(other, "after array element")),
            }
        }
    }

    fn literal(&mut self, word: &str, node: Node) -> Parsed<Node> {
        for (done, expected) in word.bytes().enumerate() {
            match self.peek() {
                Some(found) if found == expected => self.at += 1,
                Some(found) => {
                    let context = format!("in literal {word} (expecting {})", quote(expected));
                    debug_assert!(done > 0, "the first byte chose the literal");
                    return Err(invalid(found, &context));
                }
                None => return Err(unexpected_end()),
            }
        }
        Ok(node)
    }

    fn number(&mut self) -> Parsed<Node> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            Some(other) => return Err(invalid(other, "in numeric literal")),
            None => return Err(unexpected_end()),
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.required_digits("after decimal point in numeric literal")?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.required_digits("in exponent of numeric literal")?;
        }
        Ok(Node::Number(String::from_utf8_lossy(&self.bytes[start..self.at]).into()))
    }

    fn digits(&mut self) {
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
    }

    fn required_digits(&mut self, context: &str) -> Parsed<()> {
        match self.peek() {
            Some(b'0'..=b'9') => {
                self.digits();
                Ok(())
            }
            Some(other) => Err(invalid(other, context)),
            None => Err(unexpected_end()),
        }
    }

    /// A text; the parser stands at its opening quote. Bytes that are not UTF-8 become U+FFFD, as in Go.
    fn text(&mut self) -> Parsed<String> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let start = self.at;
            while !matches!(self.peek(), None | Some(b'"' | b'\\' | 0..=0x1f)) {
                self.at += 1;
            }
            push_text(&mut out, &self.bytes[start..self.at]);
            match self.peek() {
                None => return Err(unexpected_end()),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => {
                    self.at += 1;
                    out.push(self.escape()?);
                }
                Some(control) => return Err(invalid(control, "in string literal")),
            }
        }
    }

    fn escape(&mut self) -> Parsed<char> {
        let byte = self.peek().ok_or_else(unexpected_end)?;
        self.at += 1;
        Ok(match byte {
            b'"' | b'\\' | b'/' => byte as char,
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode(),
            other => return Err(invalid(other, "in string escape code")),
        })
    }

    /// `XXXX` behind `\u`, and the second half of a surrogate pair where one follows.
    fn unicode(&mut self) -> Parsed<char> {
        let first = self.hex4()?;
        if !(0xd800..0xdc00).contains(&first) {
            return Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        let rest = self.at;
        if self.bytes[self.at..].starts_with(b"\\u") {
            self.at += 2;
            let second = self.hex4()?;
            if (0xdc00..0xe000).contains(&second) {
                let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
        }
        self.at = rest;
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn hex4(&mut self) -> Parsed<u32> {
        let mut code = 0;
        for _ in 0..4 {
            let byte = self.peek().ok_or_else(unexpected_end)?;
            let digit = (byte as char).to_digit(16);
            code = code * 16 + digit.ok_or_else(|| invalid(byte, "in \\u hexadecimal character escape"))?;
            self.at += 1;
        }
        Ok(code)
    }
}

/// Appends bytes as text; each byte that is not UTF-8 becomes one U+FFFD.
pub(crate) fn push_text(out: &mut String, bytes: &[u8]) {
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        out.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
}

fn unexpected_end() -> SyntaxError {
    SyntaxError("unexpected end of JSON input".to_owned())
}

fn invalid(byte: u8, context: &str) -> SyntaxError {
    SyntaxError(format!("invalid character {} {context}", quote(byte)))
}

/// A byte as Go's scanner quotes it: as the code point of the same number.
fn quote(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        byte => {
            let quoted = picoshift_machinery::field_error::quote(&char::from(byte).to_string());
            format!("'{}'", quoted.trim_matches('"'))
        }
    }
}

#[cfg(test)]
mod tests;
