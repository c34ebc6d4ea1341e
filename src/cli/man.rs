//! `man`: the manual pages, made of what the help is made of.

use std::fs;

use clap::CommandFactory;
use clap_mangen::Man;

use super::args::{Args, ManArgs};
use super::error::CliError;
use super::out::Out;
use crate::exit::Exit;

pub(super) fn man(args: &ManArgs, out: &mut Out) -> Result<Exit, CliError> {
    let Some(folder) = &args.dir else {
        // A failure to print is kept by `out`.
        let _printed = Man::new(Args::command()).render(out);
        return Ok(Exit::Done);
    };
    fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Args::command(), folder))
        .map_err(|source| CliError::File {
            path: folder.clone(),
            what: "write the manual pages",
            source,
        })?;
    Ok(Exit::Done)
}
