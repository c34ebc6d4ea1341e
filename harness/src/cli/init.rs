//! `crashlab init`.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::output::complain;
use super::{Code, InitArgs, Output};
use crate::fault::power::MODELS;
use crate::run::{LabError, Settings, find_state};

/// A scenario that loads as it is. Every key of the format occurs; those that are optional are commented out with their
/// defaults or an example.
const TEMPLATE: &str = include_str!("init.toml");

/// Prints or writes the template, or the scenario of a program. A file that exists is left alone.
pub(super) fn init(args: &InitArgs, output: &mut Output<'_>) -> Code {
    let text = match args.command.as_slice() {
        [] => TEMPLATE.to_owned(),
        command => match of_program(command, &args.watch, args.output.as_deref()) {
            Ok(text) => text,
            Err(error) => {
                complain(&error.to_string());
                return error.into();
            }
        },
    };
    let Some(path) = &args.output else {
        output.print(&text);
        return Code::Held;
    };
    match write_new(path, &text) {
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

/// The scenario that `check` would use for a program, with the state that a run of it shows.
fn of_program(
    command: &[String],
    watch: &[PathBuf],
    output: Option<&Path>,
) -> Result<String, LabError> {
    let scenario = super::check::of_command(command, watch).map_err(LabError::Scenario)?;
    let found = find_state(&scenario, &Settings::default())?;
    let quoted = |text: String| toml::Value::String(text).to_string();
    let list =
        |texts: &mut dyn Iterator<Item = String>| texts.map(quoted).collect::<Vec<_>>().join(", ");
    // As a person would write them: those in other folders by absolute paths.
    let watched = scenario.subject.watched().unwrap_or_default();
    let path = |path: &PathBuf| {
        let written = path.strip_prefix(&watched.current).map(Path::to_owned);
        written.unwrap_or_else(|_| watched.base.join(path)).to_string_lossy().into_owned()
    };
    let command = list(&mut command.iter().cloned());
    let state = list(&mut found.state.iter().take(1).map(path));
    let others = list(&mut found.state.iter().skip(1).chain(&found.locks).map(path));
    let others = match others.is_empty() {
        true => String::new(),
        false => format!(
            "# It changes these as well; files that are named together must agree: {others}\n"
        ),
    };
    // Relative to the file, which another machine may have elsewhere.
    let is_here =
        output.is_none_or(|path| path.parent().is_none_or(|folder| folder.as_os_str().is_empty()));
    let folder = match (is_here, &scenario.subject.folder) {
        (false, Some(folder)) => folder.to_string_lossy().into_owned(),
        _ => ".".to_owned(),
    };
    let watch =
        list(&mut scenario.subject.watch.iter().map(|folder| folder.to_string_lossy().into()));
    let watch = match watch.is_empty() {
        true => String::new(),
        false => format!("# So it is with these.\nwatch = [{watch}]\n"),
    };
    Ok(format!(
        "title = {}\nproves = \"What it saved before is there, or what it saves now\"\n\n[subject]\ncommand = \
         [{command}]\n# Must survive.\nstate = [{state}]\n{others}# The programs see a copy of it at its own \
         path.\nfolder = {}\n{watch}\n# What a user would run next, where it is not the same again.\n# [recovery]\n# command \
         = [\"my-program\", \"--resume\"]\n\n[[fault]]\nkind = \"kill\"\n\n[[fault]]\nkind = \"power\"\nmodel = [\"{}\"]\n",
        quoted(format!("{} is killed", scenario.name)),
        quoted(folder),
        MODELS[0].name,
    ))
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())
}
