//! `crashlab init`.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use super::output::complain;
use super::{Code, InitArgs, Output};

/// A scenario that loads as it is. Every key of the format occurs; those that are optional are commented out with their
/// defaults or an example.
const TEMPLATE: &str = include_str!("init.toml");

/// Prints or writes the template. A file that exists is left alone.
pub(super) fn init(args: &InitArgs, output: &mut Output<'_>) -> Code {
    let Some(path) = &args.output else {
        output.print(TEMPLATE);
        return Code::Held;
    };
    match write_new(path) {
        Ok(()) => {
            let path = path.display();
            output.line(&format!("wrote {path}; edit it, then: crashlab run {path}"));
            Code::Held
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            complain(&format!(
                "{} exists and was left alone; choose another name, or remove it first",
                path.display()
            ));
            Code::Wrong
        }
        Err(error) => {
            complain(&format!("cannot write {}: {error}", path.display()));
            Code::Wrong
        }
    }
}

fn write_new(path: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(TEMPLATE.as_bytes())
}
