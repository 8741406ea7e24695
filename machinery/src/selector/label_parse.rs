//! The grammar of label selectors (`labels.Parse`).

use super::super::SelectorError;
use super::{LabelRequirement, Operator};
use crate::names;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token<'a> {
    Close,
    Comma,
    DoubleEquals,
    End,
    Equals,
    Greater,
    Less,
    Not,
    NotEquals,
    Open,
    Word(&'a str),
}

pub(super) struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The whole selector.
    pub(super) fn selector(mut self) -> Result<Vec<LabelRequirement>, SelectorError> {
        let mut requirements = Vec::new();
        if self.peek() == Token::End {
            return Ok(requirements);
        }
        loop {
            match self.peek() {
                Token::Word(_) | Token::Not => {}
                found => {
                    return Err(error(&found, "!, identifier, or 'end of string'"));
                }
            }
            let requirement = self.requirement();
            requirements.push(requirement.map_err(|SelectorError(why)| {
                SelectorError(format!("unable to parse requirement: {why}"))
            })?);
            match self.next() {
                Token::End => break,
                Token::Comma => match self.peek() {
                    Token::Word(_) | Token::Not => {}
                    found => return Err(error(&found, "identifier after ','")),
                },
                found => return Err(error(&found, "',' or 'end of string'")),
            }
        }
        // Upstream sorts by key, so equal selectors print alike.
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(requirements)
    }

    fn requirement(&mut self) -> Result<LabelRequirement, SelectorError> {
        let negated = self.peek() == Token::Not;
        if negated {
            self.next();
        }
        let key = match self.next() {
            Token::Word(word) => word.to_owned(),
            found => return Err(error(&found, "identifier")),
        };
        if let Err(why) = names::qualified_name(&key) {
            return Err(invalid_key(&key, &why));
        }
        if negated {
            return Ok(LabelRequirement { key, operator: Operator::DoesNotExist, values: Vec::new() });
        }
        if matches!(self.peek(), Token::End | Token::Comma) {
            return Ok(LabelRequirement { key, operator: Operator::Exists, values: Vec::new() });
        }
        let (operator, values) = self.comparison()?;
        check_values(&key, operator, &values)?;
        Ok(LabelRequirement { key, operator, values })
    }

    fn comparison(&mut self) -> Result<(Operator, Vec<String>), SelectorError> {
        let one = |operator| (operator, false);
        let (operator, many) = match self.next() {
            Token::Equals | Token::DoubleEquals => one(Operator::In),
            Token::NotEquals => one(Operator::NotIn),
            Token::Greater => one(Operator::GreaterThan),
            Token::Less => one(Operator::LessThan),
            Token::Word("in") => (Operator::In, true),
            Token::Word("notin") => (Operator::NotIn, true),
            found => {
                return Err(error(&found, "in, notin, =, ==, !=, gt, lt"));
            }
        };
        let values = if many { self.values()? } else { vec![self.exact_value()?] };
        Ok((operator, values))
    }

    /// `(a, b)`.
    fn values(&mut self) -> Result<Vec<String>, SelectorError> {
        match self.next() {
            Token::Open => {}
            found => {
                // Without a comma, alone among these texts.
                let SelectorError(text) = error(&found, "'('");
                return Err(SelectorError(text.replace("', expected", "' expected")));
            }
        }
        let mut values = Vec::new();
        loop {
            match self.next() {
                Token::Word(word) => {
                    values.push(word.to_owned());
                    match self.next() {
                        Token::Comma if self.peek() == Token::Close => values.push(String::new()),
                        Token::Comma => {}
                        Token::Close => break,
                        found => return Err(error(&found, "',' or ')'")),
                    }
                }
                Token::Comma => values.push(String::new()),
                Token::Close => break,
                found => return Err(error(&found, "',', ')' or identifier")),
            }
        }
        if values.is_empty() {
            values.push(String::new());
        }
        values.sort_unstable();
        values.dedup();
        Ok(values)
    }

    /// A value, which may be empty.
    fn exact_value(&mut self) -> Result<String, SelectorError> {
        match self.peek() {
            Token::End | Token::Comma => Ok(String::new()),
            Token::Word(word) => {
                self.next();
                Ok(word.to_owned())
            }
            found => Err(error(&found, "identifier")),
        }
    }

    fn peek(&self) -> Token<'a> {
        self.scan().0
    }

    fn next(&mut self) -> Token<'a> {
        let (token, end) = self.scan();
        self.at = end;
        token
    }

    fn scan(&self) -> (Token<'a>, usize) {
        let bytes = self.text.as_bytes();
        let mut at = self.at;
        while bytes.get(at).is_some_and(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n')) {
            at += 1;
        }
        let two = bytes.get(at + 1) == Some(&b'=');
        match bytes.get(at) {
            None => (Token::End, at),
            Some(b'(') => (Token::Open, at + 1),
            Some(b')') => (Token::Close, at + 1),
            Some(b',') => (Token::Comma, at + 1),
            Some(b'!') if two => (Token::NotEquals, at + 2),
            Some(b'!') => (Token::Not, at + 1),
            Some(b'=') if two => (Token::DoubleEquals, at + 2),
            Some(b'=') => (Token::Equals, at + 1),
            Some(b'>') => (Token::Greater, at + 1),
            Some(b'<') => (Token::Less, at + 1),
            Some(_) => {
                let end = self.text[at..]
                    .find([' ', '\t', '\r', '\n', '(', ')', ',', '!', '=', '>', '<'])
                    .map_or(self.text.len(), |n| at + n);
                (Token::Word(&self.text[at..end]), end)
            }
        }
    }
}

fn error(found: &Token<'_>, expected: &str) -> SelectorError {
    let found = match found {
        Token::Word(word) => *word,
        Token::End => "",
        Token::Close => ")",
        Token::Comma => ",",
        Token::DoubleEquals => "==",
        Token::Equals => "=",
        Token::Greater => ">",
        Token::Less => "<",
        Token::Not => "!",
        Token::NotEquals => "!=",
        Token::Open => "(",
    };
    SelectorError(format!("found '{found}', expected: {expected}"))
}

fn invalid_key(key: &str, why: &str) -> SelectorError {
    SelectorError(format!("<nil>: Invalid value: \"{key}\": {why}"))
}

fn check_values(key: &str, operator: Operator, values: &[String]) -> Result<(), SelectorError> {
    for (at, value) in values.iter().enumerate() {
        if matches!(operator, Operator::GreaterThan | Operator::LessThan) {
            if value.parse::<i64>().is_err() {
                return Err(SelectorError(format!(
                    "values[{at}]: Invalid value: \"{value}\": for 'Gt', 'Lt' operators, the value must be an integer"
                )));
            }
        } else if let Err(why) = names::label_value(value) {
            return Err(SelectorError(format!("values[{at}][{key}]: Invalid value: \"{value}\": {why}")));
        }
    }
    Ok(())
}
