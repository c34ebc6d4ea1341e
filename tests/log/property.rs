//! What the reader of the log must do with any bytes, for `cargo test` and for the fuzz target `log`.

use jiff::Timestamp;
use long_horizon::history::{sessions, settle};
use long_horizon::log::{Entry, Event, ReadLog};
use serde_json::Value;

/// Panics unless each line is read as if it stood alone, and is an entry, or said to be none; and the entries can be
/// written and read again, cut anywhere, and told of.
pub(crate) fn holds_for(bytes: &[u8]) {
    let read = ReadLog::parse(bytes);
    is_read_line_by_line(&read, bytes);
    what_is_lost_is_said(&read);
    is_the_same_once_more(&read.entries);
    history_is_whole(read.entries);
}

fn is_read_line_by_line(read: &ReadLog, bytes: &[u8]) {
    let mut expected = ReadLog::default();
    for (number, line) in (1..).zip(bytes.split_inclusive(|&byte| byte == b'\n')) {
        let alone = ReadLog::parse(line);
        let said = (alone.entries.as_slice(), alone.bad_lines.as_slice(), alone.torn_bytes);
        match said {
            ([entry], [], 0) => is_what_is_there(entry, line),
            ([], [1], 0) => expected.bad_lines.push(number),
            ([], [], torn) if torn == line.len() => {
                assert!(!line.ends_with(b"\n"), "line {number} is not torn");
                expected.torn_bytes = torn;
            }
            ([], [], 0) if line.trim_ascii().is_empty() => {}
            _ => panic!("line {number} is neither an entry nor none: {alone:?}"),
        }
        expected.entries.extend(alone.entries);
    }
    assert_eq!(*read, expected);
}

/// Each field of the entry is what a generic reader of JSON finds in the line.
fn is_what_is_there(entry: &Entry, line: &[u8]) {
    let line: Value = serde_json::from_slice(line).expect("an entry is JSON");
    let written = serde_json::to_value(entry).expect("an entry can be written");
    for (name, field) in written.as_object().expect("an entry is an object") {
        match name.as_str() {
            "time" => {
                let time = line[name].as_str().and_then(|time| time.parse::<Timestamp>().ok());
                assert_eq!(time, Some(entry.time), "{line}");
            }
            "cited" => assert!(holds(&line[name], field), "{name}: {field} from {line}"),
            _ => assert_eq!(line[name], *field, "{name} of {line}"),
        }
    }
}

/// Whether all that is in `part` is in `whole`: an older program may have left out what may be null, a later one may
/// have said more.
fn holds(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len()
                && whole.iter().zip(part).all(|(whole, part)| holds(whole, part))
        }
        (Value::Object(_), Value::Object(part)) => {
            part.iter().all(|(name, part)| holds(&whole[name], part))
        }
        _ => whole == part,
    }
}

fn what_is_lost_is_said(read: &ReadLog) {
    const LENGTH_MAX: usize = 300;
    let complaint = read.complaint().unwrap_or_default();
    let whole = read.torn_bytes == 0 && read.bad_lines.is_empty();
    assert_eq!(complaint.is_empty(), whole, "{complaint}");
    let torn = format!("torn ({} bytes)", read.torn_bytes);
    assert_eq!(complaint.contains(&torn), read.torn_bytes > 0, "{complaint}");
    let first_bad = read.bad_lines.first().map(ToString::to_string).unwrap_or_default();
    assert!(complaint.contains(&first_bad), "{complaint} does not name line {first_bad}");
    assert!(complaint.len() <= LENGTH_MAX && !complaint.contains('\n'), "{complaint}");
}

fn is_the_same_once_more(entries: &[Entry]) {
    let log = written(entries);
    let again = ReadLog::parse(&log);
    assert_eq!(again.complaint(), None);
    assert_eq!(written(&again.entries), log);
    assert_eq!(again.entries.len(), entries.len());
    for (again, entry) in again.entries.iter().zip(entries) {
        assert_eq!(again.event, entry.event);
        // A time is written in milliseconds.
        let lost = entry.time.duration_since(again.time).as_nanos();
        assert!((0..1_000_000).contains(&lost), "{} became {}", entry.time, again.time);
    }
    for eighth in 0..8 {
        a_cut_keeps_what_is_before_it(&again, &log[..log.len() * eighth / 8]);
    }
}

fn written(entries: &[Entry]) -> Vec<u8> {
    let line = |entry| serde_json::to_string(entry).expect("an entry can be written") + "\n";
    entries.iter().map(line).collect::<String>().into_bytes()
}

fn a_cut_keeps_what_is_before_it(whole: &ReadLog, beginning: &[u8]) {
    let cut = ReadLog::parse(beginning);
    assert!(cut.bad_lines.is_empty(), "{cut:?}");
    assert!(whole.entries.starts_with(&cut.entries));
    let torn = beginning.rsplit(|&byte| byte == b'\n').next().map_or(0, <[u8]>::len);
    let finished = beginning.iter().filter(|&&byte| byte == b'\n').count();
    // A last line that lacks its line feed alone is whole.
    let is_whole = cut.entries.len() == finished + 1 && cut.torn_bytes == 0;
    let is_torn = cut.entries.len() == finished && cut.torn_bytes == torn;
    assert!(is_whole || is_torn, "{cut:?}");
}

/// Each end, real or settled, is the end of one session, and no decision is left open.
fn history_is_whole(entries: Vec<Entry>) {
    let saved = entries.iter().rev().find_map(|entry| match &entry.event {
        Event::Decision(end) => end.after.clone(),
        Event::Resolving(made) => Some(made.after.clone()),
        _ => None,
    });
    let before = entries.len();
    let settled = settle(entries, saved.as_deref());
    assert!(settled.len() <= before);
    let is_open = |entry: &Entry| matches!(entry.event, Event::Decision(_) | Event::Resolving(_));
    assert!(!settled.iter().any(is_open));
    let count = |is: fn(&Event) -> bool| settled.iter().filter(|entry| is(&entry.event)).count();
    let sessions = sessions(&settled);
    let ended = sessions.iter().filter(|session| session.end.is_some()).count();
    assert_eq!(ended, count(|event| matches!(event, Event::End(_))));
    assert!(sessions.len() - ended <= count(|event| matches!(event, Event::Start(_))));
}
