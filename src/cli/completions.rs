//! `completions`: what a shell needs in order to complete the command.

use std::io::Write;

use clap::CommandFactory;

use super::args::{Args, CompletionsArgs};
use super::out::Out;
use crate::exit::Exit;

/// How `clap_complete` spells this command's name where bash notes which command it completes.
const NOTED: &str = "long__horizon";
/// How it spells the name where bash looks that up. With two spellings for a name with a hyphen no option of a command is ever found:
/// <https://github.com/clap-rs/clap/issues/6421>.
const LOOKED_UP: &str = "long__subcmd__horizon";

pub(super) fn completions(args: &CompletionsArgs, out: &mut Out) -> Exit {
    let mut command = Args::command();
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    let script = String::from_utf8_lossy(&script).replace(LOOKED_UP, NOTED);
    // A failure to print is kept by `out`.
    let _printed = out.write_all(script.as_bytes());
    Exit::Done
}
