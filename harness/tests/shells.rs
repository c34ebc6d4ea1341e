//! What `crashlab` gives to shells and to `man`.

mod shell_and_man;

const PROGRAM: &str = env!("CARGO_BIN_EXE_crashlab");

#[test]
fn each_shell_can_read_its_script() {
    shell_and_man::each_shell_can_read_its_script(PROGRAM);
}

#[test]
fn bash_completes_every_command() {
    shell_and_man::bash_completes_every_command(PROGRAM);
}

#[test]
fn every_command_has_a_manual_page() {
    shell_and_man::every_command_has_a_manual_page(PROGRAM);
}

#[test]
fn the_manual_pages_are_well_formed() {
    shell_and_man::the_manual_pages_are_well_formed(PROGRAM);
}

#[test]
fn a_manual_that_cannot_be_written_is_said() {
    shell_and_man::a_manual_that_cannot_be_written_is_said(PROGRAM, 2);
}
