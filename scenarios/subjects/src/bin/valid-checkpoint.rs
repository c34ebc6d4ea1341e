//! Not a subject: says whether a file is a checkpoint of the reference's format, for the `valid` of a scenario. It
//! shares no code with any program that is tried, neither `long-horizon` nor the subjects' library.
//!
//! ```console
//! valid-checkpoint FILE
//! ```
//!
//! Valid is a regular file of JSON, in any layout: an object with `queue` (strings), and, if they are there, `notes`
//! (strings), `answers` (by question: `text` and `citations`), `pending` (by question: a string) and `sessions_run`
//! (0 to 2^64-1); no other field, and none twice. Exit code 0 if it is, 1 with the reason if it is not.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::process::ExitCode;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "what is in the fields does not matter, only that they are there")]
struct Checkpoint {
    queue: Vec<String>,
    #[serde(default)]
    notes: Vec<String>,
    #[serde(default)]
    answers: Questions<Answer>,
    #[serde(default)]
    pending: Questions<String>,
    #[serde(default)]
    sessions_run: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "what is in the fields does not matter, only that they are there")]
struct Answer {
    text: String,
    citations: Vec<String>,
}

/// An object in which no question is there twice.
struct Questions<T>(BTreeMap<String, T>);

impl<T> Default for Questions<T> {
    fn default() -> Self {
        Questions(BTreeMap::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Questions<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Each<T> {
            type Value = Questions<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with a value for each question")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Questions<T>, A::Error> {
                let mut questions = Questions::default();
                while let Some((question, value)) = map.next_entry()? {
                    if questions.0.insert(question, value).is_some() {
                        return Err(A::Error::custom("a question that was there before"));
                    }
                }
                Ok(questions)
            }
        }
        deserializer.deserialize_map(Each(PhantomData))
    }
}

fn main() -> ExitCode {
    let Some(file) = std::env::args_os().nth(1) else {
        eprintln!("usage: valid-checkpoint FILE");
        return ExitCode::from(2);
    };
    let bytes = match std::fs::symlink_metadata(&file) {
        Ok(found) if !found.is_file() => Err("it is no regular file".to_owned()),
        _ => std::fs::read(&file).map_err(|error| error.to_string()),
    };
    let parse = |bytes: Vec<u8>| {
        // A list of the right values is no object, though the parser would take it for one.
        let is_object = bytes.trim_ascii_start().starts_with(b"{");
        let parsed =
            serde_json::from_slice::<Checkpoint>(&bytes).map_err(|error| error.to_string());
        parsed.and_then(|_| if is_object { Ok(()) } else { Err("it is no object".to_owned()) })
    };
    match bytes.and_then(parse) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{}: {why}", file.display());
            ExitCode::FAILURE
        }
    }
}
