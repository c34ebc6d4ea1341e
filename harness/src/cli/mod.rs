//! The command line: [`Args`] is parsed, becomes a [`plan`], is carried out by the command's own module, and is printed
//! through one [`Output`].

mod args;
mod check;
mod completions;
pub mod damage;
pub mod doctor;
mod exit;
mod init;
mod interrupt;
mod list;
mod man;
mod models;
mod output;
pub mod plan;
mod progress;
mod race;
mod record;
mod recording;
mod replay;
mod run;
mod schema;
mod shell;

pub use args::{
    Args, CheckArgs, Command, CompletionsArgs, DamageArgs, Deny, DoctorArgs, FaultList, InitArgs,
    ListArgs, ManArgs, ModelsArgs, RaceArgs, RecordArgs, RecoveryArgs, ReplayArgs, ReportArgs,
    RunArgs, Victims,
};
pub use exit::Code;
pub use output::Output;

/// Carries out one command and says how it went. Results go to `output`, complaints to standard error.
pub fn dispatch(args: &Args, output: &mut Output<'_>) -> Code {
    let done = match &args.command {
        Command::Run(args) => plan::run(args).map(|plan| run::run(&plan, output)),
        Command::Check(args) => Ok(check::check(args, output)),
        Command::Race(args) => Ok(race::race(args, output)),
        Command::List(args) => plan::list(args).map(|plan| list::list(&plan, output)),
        Command::Record(args) => plan::record(args).map(|plan| record::record(&plan, output)),
        Command::Replay(args) => plan::replay(args).map(|plan| match &plan.of {
            plan::ReplayOf::Scenario(scenario) => replay::replay(&plan, scenario, output),
            plan::ReplayOf::Recording(file) => recording::replay(&plan, file, output),
        }),
        Command::Damage(args) => Ok(damage::run(args, output)),
        Command::Models(args) => Ok(models::models(args, output)),
        Command::Init(args) => Ok(init::init(args, output)),
        Command::Schema => Ok(schema::schema(output)),
        Command::Doctor(args) => Ok(doctor::run(args, output)),
        Command::Completions(args) => Ok(completions::completions(args, output)),
        Command::Man(args) => Ok(man::man(args, output)),
    };
    done.unwrap_or_else(|error| {
        output::complain(&error.to_string());
        Code::Wrong
    })
}

/// The exit code once all is printed: what could not be printed was not told, so that is no success.
pub fn finish(output: Output<'_>, code: Code) -> Code {
    match output.finish() {
        Ok(()) => code,
        Err(error) => {
            output::complain(&format!("cannot print to standard output: {error}"));
            Code::NotMeasured
        }
    }
}
