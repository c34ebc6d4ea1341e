//! The command: arguments, one file for each command, and how it all ends.

mod args;
mod completions;
mod error;
mod export;
mod has_work;
mod import;
mod man;
mod out;
mod pending;
mod place;
mod resolve;
mod run;
mod status;
mod stop;
mod timeline;
mod verify;

use std::ffi::OsString;

use clap::Parser;

use crate::exit::Exit;
use args::{Args, Command};
use error::CliError;
use out::{Out, say};

/// Runs the command with these arguments, the first being its own name.
pub fn main(args: impl IntoIterator<Item = OsString>) -> Exit {
    let args: Vec<OsString> = args.into_iter().collect();
    let parsed = match Args::try_parse_from(&args) {
        Ok(parsed) => parsed,
        Err(error) => return refuse(&error, args.get(1).is_some_and(|name| name == "has-work")),
    };
    let is_has_work = matches!(parsed.command, Command::HasWork(_));
    let mut out = Out::new();
    let result = dispatch(&parsed.command, &mut out);
    let exit = match result {
        Ok(exit) => exit,
        Err(error) => {
            say(&format!("error: {error}"));
            error.exit()
        }
    };
    match (exit, out.finish()) {
        (Exit::Done, Err(error)) => {
            say(&format!("error: cannot write the output: {error}"));
            if is_has_work { Exit::HasWorkFailed } else { Exit::Failed }
        }
        (exit, _) => exit,
    }
}

fn dispatch(command: &Command, out: &mut Out) -> Result<Exit, CliError> {
    match command {
        Command::Run(args) => run::run(args, out),
        Command::Status(args) => status::status(args, out),
        Command::Pending(args) => pending::pending(args, out),
        Command::Resolve(args) => resolve::resolve(args, out),
        Command::Timeline(args) => timeline::timeline(args, out),
        Command::Stop(args) => stop::stop(args, out),
        Command::Resume(args) => stop::resume(args, out),
        Command::Verify(args) => verify::verify(args, out),
        Command::Export(args) => export::export(args, out),
        Command::Import(args) => import::import(args, out),
        Command::Completions(args) => Ok(completions::completions(args, out)),
        Command::Man(args) => man::man(args, out),
        // Its exit codes speak to systemd: everything but a clear yes or no is a failure.
        Command::HasWork(args) => match has_work::has_work(args, out) {
            Ok(exit) => Ok(exit),
            Err(error) => {
                say(&format!("error: {error}"));
                Ok(Exit::HasWorkFailed)
            }
        },
    }
}

/// Prints what clap has to say: help and version are no errors.
fn refuse(error: &clap::Error, is_has_work: bool) -> Exit {
    // Nobody is left to tell if this fails.
    let _printed = error.print();
    match (error.use_stderr(), is_has_work) {
        (false, _) => Exit::Done,
        (true, false) => Exit::Usage,
        (true, true) => Exit::HasWorkFailed,
    }
}
