//! `crashlab man`.

use std::fs;

use clap::CommandFactory;
use clap_mangen::Man;

use super::output::complain;
use super::{Args, Code, ManArgs, Output};

/// Prints the manual page, or writes those of all commands; they are made of what the help is made of.
pub(super) fn man(args: &ManArgs, output: &mut Output<'_>) -> Code {
    let Some(folder) = &args.dir else {
        // A failure to print is kept by `output`.
        let _printed = Man::new(Args::command()).render(output);
        return Code::Held;
    };
    let written =
        fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(Args::command(), folder));
    if let Err(error) = written {
        complain(&format!("cannot write the manual pages into {}: {error}", folder.display()));
        return Code::Wrong;
    }
    Code::Held
}
