//! Damages of JSON: one value is changed in the text, in the style of what is around it.

use std::ops::Range;

use super::json::{Found, Holder, Text};
use super::pointer::Pointer;

pub(super) fn not_an_object(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let span = Text::parse(bytes)?.whole_object()?.span;
    let list = [b"[", &bytes[span.clone()], b"]"].concat();
    Ok(replaced(bytes, span, &list))
}

pub(super) fn unknown_field(bytes: &[u8]) -> Result<Vec<u8>, String> {
    Ok(with_one_more(bytes, &Text::parse(bytes)?.whole_object()?))
}

pub(super) fn without_field(bytes: &[u8], name: &str) -> Result<Vec<u8>, String> {
    let (object, position) = field(&Text::parse(bytes)?, name)?;
    Ok(without_item(bytes, &object, position))
}

/// Another value for a field, unless it is of that kind already, which its first byte tells.
pub(super) fn with_field(
    bytes: &[u8],
    name: &str,
    (kind, value): (&str, &[u8]),
) -> Result<Vec<u8>, String> {
    let (object, position) = field(&Text::parse(bytes)?, name)?;
    let place = object.items[position].value.clone();
    if bytes[place.start] == value[0] {
        return Err(format!("the value of `{name}` is {kind} already"));
    }
    Ok(replaced(bytes, place, value))
}

fn field(text: &Text<'_>, name: &str) -> Result<(Holder, usize), String> {
    let object = text.whole_object()?;
    match object.position(name) {
        Ok(position) => Ok((object, position)),
        Err(nothing) => Err(nothing.of("the object", name)),
    }
}

/// A string becomes a number, and everything else a string.
pub(super) fn with_wrong_type(bytes: &[u8], pointer: &Pointer) -> Result<Vec<u8>, String> {
    let place = Text::parse(bytes)?.find(pointer)?.value;
    let value: &[u8] = if bytes[place.start] == b'"' { b"0" } else { b"\"of another type\"" };
    Ok(replaced(bytes, place, value))
}

pub(super) fn without(bytes: &[u8], pointer: &Pointer) -> Result<Vec<u8>, String> {
    match Text::parse(bytes)?.find(pointer)? {
        Found { holder: Some((holder, position)), .. } => {
            Ok(without_item(bytes, &holder, position))
        }
        Found { holder: None, .. } => {
            Err("nothing would be left, which is the damage `empty`".into())
        }
    }
}

pub(super) fn with_extra(bytes: &[u8], pointer: &Pointer) -> Result<Vec<u8>, String> {
    let text = Text::parse(bytes)?;
    let holder = text.holder(&text.find(pointer)?.value);
    let holder = holder.ok_or("the value there is neither an object nor a list")?;
    Ok(with_one_more(bytes, &holder))
}

/// One more item at the end: in the style of the last one, what is between two items, and between a name and its value.
fn with_one_more(bytes: &[u8], holder: &Holder) -> Vec<u8> {
    let (name, colon) = match holder.is_object {
        true => (format!("\"{}\"", holder.free_name()), ": "),
        false => (String::new(), ""),
    };
    let (place, item) = match holder.items.last() {
        None => (holder.span.start + 1, format!("{name}{colon}true").into_bytes()),
        Some(last) => {
            let (lead, colon) = (&bytes[last.lead.clone()], &bytes[last.key.end..last.value.start]);
            (last.value.end, [b",", lead, name.as_bytes(), colon, b"true"].concat())
        }
    };
    replaced(bytes, place..place, &item)
}

fn without_item(bytes: &[u8], holder: &Holder, position: usize) -> Vec<u8> {
    let item = &holder.items[position];
    let span = match (position.checked_sub(1), holder.items.get(position + 1)) {
        (_, Some(next)) => item.key.start..next.key.start,
        // The comma before the last item goes with it.
        (Some(before), None) => holder.items[before].value.end..item.value.end,
        (None, None) => item.key.start..item.value.end,
    };
    replaced(bytes, span, b"")
}

fn replaced(bytes: &[u8], span: Range<usize>, new: &[u8]) -> Vec<u8> {
    [&bytes[..span.start], new, &bytes[span.end..]].concat()
}
