//! Where the parts of a JSON text are, so that one of them can be changed and all else stays byte for byte.

use std::collections::HashMap;
use std::ops::Range;

use serde::de::IgnoredAny;

use super::pointer::Pointer;

/// Places below so many others are not enumerated: common parsers refuse such a text.
const DEPTH_MAX: usize = 128;

/// Bytes that are known to be JSON.
pub(super) struct Text<'a> {
    pub(super) bytes: &'a [u8],
    root: Range<usize>,
}

/// An object or a list, one level of it.
pub(super) struct Holder {
    /// From the opening brace or bracket to behind the closing one.
    pub(super) span: Range<usize>,
    pub(super) is_object: bool,
    pub(super) items: Vec<Item>,
}

/// A member of an object or an element of a list.
pub(super) struct Item {
    /// Decoded; `None` in a list, and where it is no Unicode text (half of a surrogate pair).
    name: Option<String>,
    /// The white space before it.
    pub(super) lead: Range<usize>,
    /// The name, with its quotes; nothing in a list.
    pub(super) key: Range<usize>,
    pub(super) value: Range<usize>,
}

/// A place that a pointer leads to.
pub(super) struct Found {
    pub(super) value: Range<usize>,
    /// What it is in, and its position there; `None` for the whole document.
    pub(super) holder: Option<(Holder, usize)>,
}

impl<'a> Text<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Text<'a>, String> {
        // Checks everything, so that the scanner below need not.
        serde_json::from_slice::<IgnoredAny>(bytes)
            .map_err(|error| format!("the file is not JSON: {error}"))?;
        let mut scanner = Scanner { bytes, at: 0 };
        scanner.blanks();
        let root = scanner.value();
        Ok(Text { bytes, root })
    }

    pub(super) fn whole_object(&self) -> Result<Holder, String> {
        let holder = self.holder(&self.root).filter(|holder| holder.is_object);
        holder.ok_or_else(|| "the file is JSON, but not an object".into())
    }

    /// The object or list that a value is.
    pub(super) fn holder(&self, value: &Range<usize>) -> Option<Holder> {
        Scanner { bytes: self.bytes, at: value.start }.holder()
    }

    /// The place that a pointer leads to.
    pub(super) fn find(&self, pointer: &Pointer) -> Result<Found, String> {
        let mut found = Found { value: self.root.clone(), holder: None };
        let mut above = Pointer::default();
        for token in pointer.tokens() {
            let here = || match above.tokens() {
                [] => "the document".to_owned(),
                _ => format!("`{above}`"),
            };
            let holder = self
                .holder(&found.value)
                .ok_or_else(|| format!("{} is neither an object nor a list", here()))?;
            let position = holder.position(token).map_err(|why| why.of(&here(), token))?;
            found = Found {
                value: holder.items[position].value.clone(),
                holder: Some((holder, position)),
            };
            above = above.child(token.clone());
        }
        Ok(found)
    }

    /// Every place that one pointer alone leads to, in the order of the text.
    pub(super) fn places(self) -> Places<'a> {
        let open = vec![(Pointer::default(), self.root.clone())];
        Places { text: self, open }
    }
}

/// Why there is nothing in a holder.
pub(super) enum Nothing {
    NoField { near: Option<String> },
    SeveralFields,
    NoIndex { count: usize },
}

impl Nothing {
    pub(super) fn of(self, holder: &str, token: &str) -> String {
        match self {
            Nothing::NoField { near: Some(near) } => {
                format!("{holder} has no field `{token}`; did you mean `{near}`?")
            }
            Nothing::NoField { near: None } => format!("{holder} has no field `{token}`"),
            Nothing::SeveralFields => format!("{holder} has the field `{token}` more than once"),
            Nothing::NoIndex { count: 0 } => format!("the list {holder} is empty"),
            Nothing::NoIndex { count } => {
                format!("the list {holder} has no element `{token}`, only 0 to {}", count - 1)
            }
        }
    }
}

impl Holder {
    /// The position of the only item of this name, or of this index.
    pub(super) fn position(&self, token: &str) -> Result<usize, Nothing> {
        if !self.is_object {
            let index = token.parse().ok().filter(|index: &usize| index.to_string() == token);
            let count = self.items.len();
            return index.filter(|index| *index < count).ok_or(Nothing::NoIndex { count });
        }
        let is_it = |item: &Item| item.name.as_deref() == Some(token);
        match (self.items.iter().position(is_it), self.items.iter().rposition(is_it)) {
            (Some(first), Some(last)) if first == last => Ok(first),
            (Some(_), _) => Err(Nothing::SeveralFields),
            (None, _) => {
                let names = self.items.iter().filter_map(|item| item.name.as_deref());
                let near = crate::scenario::nearest(token, names).map(str::to_owned);
                Err(Nothing::NoField { near })
            }
        }
    }

    /// A name that no member has.
    pub(super) fn free_name(&self) -> String {
        let is_taken =
            |name: &String| self.items.iter().any(|item| item.name.as_ref() == Some(name));
        let names = (2..).map(|number| format!("unknown{number}"));
        ["unknown".to_owned()]
            .into_iter()
            .chain(names)
            .find(|name| !is_taken(name))
            .unwrap_or_default()
    }

    /// The items with the tokens that lead to them, without names that are there more than once.
    fn children(self) -> Vec<(String, Range<usize>)> {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for name in self.items.iter().filter_map(|item| item.name.as_deref()) {
            *counts.entry(name).or_default() += 1;
        }
        let child = |(index, item): (usize, &Item)| match &item.name {
            _ if !self.is_object => Some((index.to_string(), item.value.clone())),
            Some(name) if counts[name.as_str()] == 1 => Some((name.clone(), item.value.clone())),
            _ => None,
        };
        self.items.iter().enumerate().filter_map(child).collect()
    }
}

/// Walks through a document, from the outside to the inside.
pub(super) struct Places<'a> {
    text: Text<'a>,
    /// Still to come, the next one last.
    open: Vec<(Pointer, Range<usize>)>,
}

impl Iterator for Places<'_> {
    /// The place, and whether it is an object or a list.
    type Item = (Pointer, bool);

    fn next(&mut self) -> Option<(Pointer, bool)> {
        let (pointer, value) = self.open.pop()?;
        let holder = self.text.holder(&value);
        let is_holder = holder.is_some();
        if let Some(holder) = holder.filter(|_| pointer.tokens().len() < DEPTH_MAX) {
            let children = holder.children().into_iter().rev();
            self.open.extend(children.map(|(token, value)| (pointer.child(token), value)));
        }
        Some((pointer, is_holder))
    }
}

/// Walks through text that is known to be JSON. At the end of the text it sees NULs.
struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Scanner<'_> {
    fn next(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(0)
    }

    fn blanks(&mut self) -> Range<usize> {
        self.pass(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'))
    }

    fn pass(&mut self, wanted: impl Fn(u8) -> bool) -> Range<usize> {
        let start = self.at;
        while self.at < self.bytes.len() && wanted(self.next()) {
            self.at += 1;
        }
        start..self.at
    }

    /// From an opening brace or bracket.
    fn holder(&mut self) -> Option<Holder> {
        let start = self.at;
        let (is_object, closing) = match self.next() {
            b'{' => (true, b'}'),
            b'[' => (false, b']'),
            _ => return None,
        };
        let mut items = Vec::new();
        self.at += 1;
        loop {
            let lead = self.blanks();
            if self.next() == closing {
                break;
            }
            items.push(self.item(lead, is_object));
            self.blanks();
            if self.next() != b',' {
                break;
            }
            self.at += 1;
        }
        Some(Holder { span: start..self.at + 1, is_object, items })
    }

    fn item(&mut self, lead: Range<usize>, is_member: bool) -> Item {
        if !is_member {
            return Item { name: None, key: self.at..self.at, lead, value: self.value() };
        }
        let key = self.value();
        self.pass(|byte| byte != b':');
        self.at += 1;
        self.blanks();
        let value = self.value();
        let name = serde_json::from_slice(&self.bytes[key.clone()]).ok();
        Item { name, lead, key, value }
    }

    /// Any value, from its first byte.
    fn value(&mut self) -> Range<usize> {
        let start = self.at;
        let mut depth = 0;
        loop {
            match self.next() {
                b'"' => self.string(),
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    depth -= 1;
                    self.at += 1;
                }
                // A number, `true`, `false` or `null`; inside of lists and objects also what separates.
                _ if depth == 0 => drop(self.pass(|byte| {
                    !matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r')
                })),
                _ => self.at += 1,
            }
            if depth == 0 || self.at >= self.bytes.len() {
                return start..self.at;
            }
        }
    }

    fn string(&mut self) {
        self.at += 1;
        loop {
            match self.next() {
                b'\\' => self.at += 2,
                b'"' => break self.at += 1,
                _ if self.at >= self.bytes.len() => break,
                _ => self.at += 1,
            }
        }
    }
}
