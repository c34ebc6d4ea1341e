//! JSON pointers (RFC 6901).

use std::fmt;
use std::str::FromStr;

/// A place in a JSON document: the names and indices that lead to it. Without any it is the whole document.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Pointer(Vec<String>);

impl Pointer {
    /// The names and indices, the outermost first.
    pub fn tokens(&self) -> &[String] {
        &self.0
    }

    /// The place of this name or index in what is here.
    pub(super) fn child(&self, token: String) -> Pointer {
        Pointer([self.0.as_slice(), &[token]].concat())
    }
}

/// A text that is no JSON pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a JSON pointer is empty or begins with a slash, and a ~ in it is followed by 0 or 1")]
pub struct NoPointer;

impl FromStr for Pointer {
    type Err = NoPointer;

    fn from_str(text: &str) -> Result<Pointer, NoPointer> {
        if text.is_empty() {
            return Ok(Pointer::default());
        }
        let tokens = text.strip_prefix('/').ok_or(NoPointer)?.split('/');
        tokens.map(unescaped).collect::<Result<_, _>>().map(Pointer)
    }
}

fn unescaped(token: &str) -> Result<String, NoPointer> {
    let mut parts = token.split('~');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (sign, rest) = match part.as_bytes().first() {
            Some(b'0') => ('~', &part[1..]),
            Some(b'1') => ('/', &part[1..]),
            _ => return Err(NoPointer),
        };
        text.push(sign);
        text += rest;
    }
    Ok(text)
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|token| write!(f, "/{}", token.replace('~', "~0").replace('/', "~1")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read() {
        // The examples of RFC 6901, section 5.
        for text in ["", "/foo", "/foo/0", "/", "/a~1b", "/c%d", "/e^f", "/ ", "/m~0n", "/~01"] {
            assert_eq!(
                text.parse::<Pointer>().map(|pointer| pointer.to_string()).as_deref(),
                Ok(text)
            );
        }
        let tokens = |text: &str| text.parse::<Pointer>().map(|pointer| pointer.0);
        assert_eq!(tokens("/a~1b/~01"), Ok(vec!["a/b".to_owned(), "~1".to_owned()]));
        for text in ["foo", "/~", "/~2", "/a~/b"] {
            assert_eq!(text.parse::<Pointer>(), Err(NoPointer), "{text}");
        }
    }
}
