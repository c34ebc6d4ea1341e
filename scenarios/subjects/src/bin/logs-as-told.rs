//! Bad: appends a line to `log.txt`, as its argument tells it: `plain`, or `checked` with a checksum at the end of each line, by
//! which the next run knows how far the log is whole; and each of them with `-sync` behind it or not.
//!
//! The lab must say, after a power cut: `torn` where a line is there in part and taken for one, `lost` where an acknowledged
//! one can be missing. With checksum and sync it must have nothing to say.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::process::ExitCode;

use crashlab_subjects::{finish, mark};

const LOG: &str = "log.txt";
/// Length of what stands in a line, in bytes: more than a block of the disk.
const LONG: usize = 5000;

fn main() -> ExitCode {
    let how = std::env::args().nth(1).unwrap_or_default();
    finish(append(&how).map_err(|error| format!("{LOG}: cannot append: {error}")))
}

fn append(how: &str) -> io::Result<()> {
    let mut file = (OpenOptions::new().read(true).append(true).create(true)).open(LOG)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let count = match how.starts_with("checked") {
        true => {
            let whole: Vec<&[u8]> = lines.by_ref().take_while(|line| is_whole(line)).collect();
            let end: usize = whole.iter().map(|line| line.len()).sum();
            if end < bytes.len() {
                file.set_len(end as u64)?;
                file.sync_all()?;
            }
            whole.len()
        }
        false => lines.count(),
    };
    mark("loaded");
    let text = format!("{count} {}", "x".repeat(LONG));
    let sum =
        if how.starts_with("checked") { format!(" {:016x}", sum(&text)) } else { String::new() };
    file.write_all(format!("{text}{sum}\n").as_bytes())?;
    if how.ends_with("-sync") {
        file.sync_data()?;
    }
    println!("line {count} is in the log");
    Ok(())
}

fn is_whole(line: &[u8]) -> bool {
    let line = std::str::from_utf8(line).ok().and_then(|line| line.strip_suffix('\n'));
    let parts = line.and_then(|line| line.rsplit_once(' '));
    parts.is_some_and(|(text, own)| own == format!("{:016x}", sum(text)))
}

/// FNV-1a.
fn sum(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
