//! The `crashlab` command.

use std::io;
use std::process::ExitCode;

use clap::Parser;
use crashlab::cli::{self, Args, Output};

fn main() -> ExitCode {
    let args = Args::parse();
    let mut output = Output::new(io::BufWriter::new(io::stdout().lock()));
    let code = cli::dispatch(&args, &mut output);
    cli::finish(output, code).into()
}
