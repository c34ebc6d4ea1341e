//! What a program prints for shells and for `man`, as bash and groff take it.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses its own part")]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails, also in what tests share")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Whether this program runs here; prints that the test is skipped where it does not.
pub fn have(program: &str) -> bool {
    // A version manager's stand-in may be there without anything behind it.
    let runs = Command::new(program).arg("--version").output();
    let have = runs.is_ok_and(|output| output.status.success());
    if !have {
        println!("skipped: no {program}");
    }
    have
}

/// Standard output of a command that must succeed without complaint.
fn output_of(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The commands that the program's help lists, without `help`.
fn subcommands(program: &str) -> Vec<String> {
    let help = output_of(Command::new(program).arg("-h"));
    let (_, listed) = help.split_once("Commands:\n").unwrap();
    let names: Vec<String> = listed
        .lines()
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|name| !matches!(*name, "" | "help"))
        .map(str::to_owned)
        .collect();
    assert!(names.len() > 5, "{names:?}");
    names
}

/// Every shell's own parser accepts its script, where the shell is there.
pub fn each_shell_can_read_its_script(program: &str) {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let script = output_of(Command::new(program).args(["completions", shell]));
        assert!(script.contains("completions"), "{shell}: {script}");
        let file = folder.path().join(shell);
        fs::write(&file, script).unwrap();
        if have(shell) {
            output_of(Command::new(shell).arg("-n").arg(file));
        }
    }
}

/// For each command, all but the last letter is typed, and then an option begun; prints what bash offers, an offer a line.
const COMPLETE: &str = r#"
program=$1 name=${1##*/}; shift
source <("$program" completions bash)
words=($(complete -p "$name"))
for i in "${!words[@]}"; do [[ ${words[i]} = -F ]] && function=${words[i+1]}; done
offered() { COMP_WORDS=("$name" "$@"); COMP_CWORD=$#; "$function" "$name" "${!#}" "${COMP_WORDS[-2]}"; printf '%s\n' "${COMPREPLY[@]}"; }
for command; do offered "${command%?}"; offered "$command" --hel; done
"#;

/// bash completes each command of the program and the options of each.
pub fn bash_completes_every_command(program: &str) {
    if !have("bash") {
        return;
    }
    let commands = subcommands(program);
    let offered = output_of(
        Command::new("bash").args(["--norc", "-c", COMPLETE, "bash", program]).args(&commands),
    );
    let expected: String = commands.iter().map(|command| format!("{command}\n--help\n")).collect();
    assert_eq!(offered, expected);
}

/// There is a page for the program and for each of its commands, and no other.
pub fn every_command_has_a_manual_page(program: &str) {
    let folder = tempfile::tempdir().unwrap();
    let pages = pages(program, &folder.path().join("made/man1"));
    let name = Path::new(program).file_name().unwrap().to_str().unwrap();
    let expected: BTreeSet<String> = subcommands(program)
        .iter()
        .map(|command| format!("{name}-{command}.1"))
        .chain([format!("{name}.1")])
        .collect();
    assert_eq!(pages, expected);
    let printed = output_of(Command::new(program).arg("man"));
    assert!(printed.contains(&format!(".TH {name} 1 ")), "{printed}");
}

/// The names of the manual pages, once they are written into the folder.
pub fn pages(program: &str, folder: &Path) -> BTreeSet<String> {
    assert_eq!(output_of(Command::new(program).args(["man", "--dir"]).arg(folder)), "");
    let names = fs::read_dir(folder).unwrap();
    names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// groff formats every page without a warning.
pub fn the_manual_pages_are_well_formed(program: &str) {
    if !have("groff") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for page in pages(program, folder.path()) {
        let mut groff = Command::new("groff");
        groff.args(["-man", "-Tutf8", "-ww", "-z"]).arg(folder.path().join(page));
        assert_eq!(output_of(&mut groff), "");
    }
}

/// A folder for the pages that cannot be made is told with its path.
pub fn a_manual_that_cannot_be_written_is_said(program: &str, code: i32) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let output = Command::new(program).args(["man", "--dir"]).arg(&file).output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains(file.to_str().unwrap()), "{said}");
}
