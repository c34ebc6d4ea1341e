//! Finds the end of a run of bytes that need no attention, eight at a time: most of a checkpoint is such text.

const ONES: u64 = u64::from_le_bytes([0x01; 8]);
const HIGHS: u64 = u64::from_le_bytes([0x80; 8]);

/// Where the first byte at or after `at` is that ends a run in a JSON string that is being read: a quote, a backslash or
/// a control character. The length of `bytes` if there is none.
pub(super) fn plain_in_json(bytes: &[u8], at: usize) -> usize {
    run_end(bytes, at, stops_reading)
}

/// Where the first byte at or after `at` is that cannot be written into a JSON string as it is: a quote, a backslash, or
/// anything outside printable ASCII. The length of `bytes` if there is none.
pub(super) fn plain_in_text(bytes: &[u8], at: usize) -> usize {
    run_end(bytes, at, |word| stops_reading(word) | equal(word, 0x7f) | word)
}

/// `stops` sets the high bit of a byte of the word that ends the run. It may set too many, but only above a right one.
fn run_end(bytes: &[u8], mut at: usize, stops: impl Fn(u64) -> u64) -> usize {
    while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let found = stops(u64::from_le_bytes(*chunk)) & HIGHS;
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    // The last few bytes: filled up with spaces, which end no run.
    let rest = bytes.get(at..).unwrap_or_default();
    let mut chunk = [b' '; 8];
    chunk[..rest.len()].copy_from_slice(rest);
    match stops(u64::from_le_bytes(chunk)) & HIGHS {
        0 => bytes.len(),
        found => at + found.trailing_zeros() as usize / 8,
    }
}

fn stops_reading(word: u64) -> u64 {
    let below_space = word.wrapping_sub(ONES * 0x20) & !word;
    below_space | equal(word, b'"') | equal(word, b'\\')
}

/// The well-known test for a zero byte, after an exclusive or with the byte that is looked for.
fn equal(word: u64, byte: u8) -> u64 {
    let zero_where_equal = word ^ (ONES * u64::from(byte));
    zero_where_equal.wrapping_sub(ONES) & !zero_where_equal
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_end_of_a_run_is_what_a_plain_loop_finds(
            bytes in proptest::collection::vec(
                prop_oneof![4 => 0x20u8..0x7f, 1 => any::<u8>(), 1 => Just(b'"'), 1 => Just(b'\\')], 0..40),
            start in 0usize..40,
        ) {
            let start = start.min(bytes.len());
            let slow = |stop: fn(u8) -> bool| {
                (start..bytes.len()).find(|&i| stop(bytes[i])).unwrap_or(bytes.len())
            };
            let in_json = slow(|b| b < 0x20 || b == b'"' || b == b'\\');
            let in_text = slow(|b| !(0x20..0x7f).contains(&b) || b == b'"' || b == b'\\');
            prop_assert_eq!(plain_in_json(&bytes, start), in_json);
            prop_assert_eq!(plain_in_text(&bytes, start), in_text);
        }
    }
}
