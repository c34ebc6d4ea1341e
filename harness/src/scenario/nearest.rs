//! "Did you mean": the right name that is nearest to a wrong one.

/// The candidate nearest to `wrong`, if one is near enough that a slip explains the difference.
///
/// Case, `_` for `-`, a slip in every third letter, and a beginning of at least three letters are forgiven.
pub(crate) fn nearest<'a>(
    wrong: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let wrong = plain(wrong);
    candidates
        .into_iter()
        .filter_map(|candidate| Some((slips(&wrong, &plain(candidate))?, candidate)))
        .min_by_key(|&(slips, _)| slips)
        .map(|(_, candidate)| candidate)
}

fn plain(name: &str) -> String {
    name.to_lowercase().replace(['_', ' '], "-")
}

/// How far apart two names are; `None` where they have nothing to do with each other.
fn slips(wrong: &str, right: &str) -> Option<usize> {
    let slips = strsim::damerau_levenshtein(wrong, right);
    let longest = wrong.chars().count().max(right.chars().count());
    let begins =
        wrong.chars().count() >= 3 && (right.starts_with(wrong) || wrong.starts_with(right));
    (slips <= longest.div_ceil(3).min(longest - 1) || begins).then_some(slips)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn slips_are_forgiven_and_strangers_are_not() {
        let names = ["command", "state", "time-limit", "truncated"];
        for (wrong, right) in [
            ("comand", Some("command")),
            ("STATE", Some("state")),
            ("time_limit", Some("time-limit")),
            ("trunc", Some("truncated")),
            ("colour", None),
            ("", None),
            ("x", None),
        ] {
            assert_eq!(nearest(wrong, names), right, "{wrong}");
        }
    }
}
