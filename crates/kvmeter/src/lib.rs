//! The command `kvmeter`.
#![forbid(unsafe_code)]

mod args;
mod cmd;
mod exit;
mod flags;
mod hosts;
mod interrupt;
mod metric_names;
mod network_checks;
mod output;
mod output_files;
mod own_process;
mod paths;
mod plan_output;
mod processor;
mod progress;
mod recording;
#[cfg(test)]
mod remedies;
mod results_target;
mod store_options;

use clap::{CommandFactory, FromArgMatches};

use args::{Cli, Verb};

/// The definition of the command line.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Runs the command line and returns the exit code of the process.
pub fn main() -> std::process::ExitCode {
    if let Err(code) = processor::check() {
        return code;
    }
    let read = command().try_get_matches();
    let (matches, cli) =
        match read.and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches))) {
            Ok((cli, matches)) => (matches, cli),
            Err(error) => return exit::report_usage(&error),
        };
    let show = output::Output::new(&cli.common);
    if let Err(error) = paths::check(&command(), &matches) {
        return exit::report(&error);
    }
    if let Err(error) = own_process::end_with_lease() {
        return exit::report(&error);
    }
    match cli.verb.plugin().and_then(own_process::run) {
        Ok(None) => {}
        Ok(Some(code)) => return code,
        Err(error) => return exit::report(&error),
    }
    if cli.verb.measures()
        && let Err(error) = cmd::knob::recover(&show)
    {
        return exit::report(&error);
    }
    if let Err(why) = host::report_bus_errors() {
        show.warn(&why);
    }
    let outcome = match cli.verb {
        Verb::Doctor(args) => cmd::doctor::run(&args, &show),
        Verb::Run(args) => cmd::run::run(&args, &show),
        Verb::Bench(args) => cmd::bench::run(&args, &show),
        Verb::Agent(args) => cmd::agent::run(&args, &show),
        Verb::Search(args) => cmd::search::run(&args, &show),
        Verb::Mbwu(args) => cmd::mbwu::run(&args, &show),
        Verb::Precondition(args) => cmd::precondition::run(&args, &show),
        Verb::Report(args) => cmd::report::run(&args, &show),
        Verb::Compare(args) => cmd::compare::run(&args, &show),
        Verb::History(args) => cmd::history::run(&args, &show),
        Verb::Cost(args) => cmd::cost::run(&args, &show),
        Verb::Plan(args) => cmd::plan::run(&args, &show),
        Verb::Merge(args) => cmd::merge::run(&args, &show),
        Verb::Export(args) => cmd::export::run(&args, &show),
        Verb::Micro(args) => cmd::micro::run(&args, &show),
        Verb::Workload(args) => cmd::workload::run(&args, &show),
        Verb::Knob(args) => cmd::knob::run(&args, &show),
        Verb::Simulate(args) => cmd::simulate::run(&args, &show),
        Verb::Leased(args) => cmd::leased::run(&args),
        #[cfg(feature = "kubernetes")]
        Verb::PodShell(args) => cmd::pod_shell::run(&args),
        Verb::Server(args) => cmd::server::run(&args, &show),
        Verb::SimulatedPass(args) => cmd::simulated_pass::run(&args),
        Verb::Completions(args) => cmd::completions::run(&args, &mut command()),
        Verb::Man(args) => cmd::man::run(&args, command()),
    };
    match outcome {
        Ok(outcome) => std::process::ExitCode::from(outcome.code()),
        Err(error) => exit::report(&error),
    }
}
