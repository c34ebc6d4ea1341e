//! `crashlab completions`.

use clap::CommandFactory;

use super::{Args, Code, CompletionsArgs, Output};

/// Prints what a shell needs in order to complete the command.
pub(super) fn completions(args: &CompletionsArgs, output: &mut Output<'_>) -> Code {
    let mut command = Args::command();
    let name = command.get_name().to_owned();
    clap_complete::generate(args.shell, &mut command, name, output);
    Code::Held
}
