//! The `long-horizon` command.

fn main() -> std::process::ExitCode {
    long_horizon::cli::main(std::env::args_os()).into()
}
