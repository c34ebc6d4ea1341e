//! `export`: the checkpoint in the reference's format, from whatever store. Changes nothing.

use std::io::Write;

use super::args::ExportArgs;
use super::error::CliError;
use super::out::Out;
use super::place::Place;
use crate::exit::Exit;

pub(super) fn export(args: &ExportArgs, out: &mut Out) -> Result<Exit, CliError> {
    let loaded = Place::open(&args.place)?.load()?;
    // ASCII without control characters but the line feed. A failure to print is kept by `out`.
    let _printed = out.write_all(&loaded.checkpoint.encode());
    Ok(Exit::Done)
}
