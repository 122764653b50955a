//! `plimsoll`: the argument table, the wiring, the progress line and the exit codes. No logic.

/// A line on standard error. A terminal that was closed meanwhile is not a reason to fail: what is
/// running is still to be ended.
macro_rules! tell {
    ($($argument:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(anstream::stderr(), $($argument)*);
    }};
}

mod arguments;
mod failure;
mod live;
mod output;
mod places;
mod progress;
mod signals;
mod verbs;

use std::process::ExitCode;

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use arguments::{Arguments, Verb};
use failure::Failure;
use verbs::survey::is_plan;
use verbs::{
    assets, bisect, build, campaign, confirm, doctor, exchange, gate, host, init, machine, plan,
    post, results, submit, verdicts, workload,
};

fn main() -> ExitCode {
    if let Err(error) = plimsoll_lab::guard::unblock_signals() {
        tell!("plimsoll: {error}");
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let is_help = matches!(
                error.kind(),
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
            );
            let _ = error.print();
            if let Some(plan) = plan_instead_of_verb(&error) {
                tell!("{plan} is a plan: plimsoll run {plan}");
            }
            return ExitCode::from(if is_help { 0 } else { failure::USAGE });
        }
    };
    let places = &arguments.places;
    let outcome = match arguments.verb {
        Verb::Run(run) => campaign::run(places, &run),
        Verb::Init(init) => init::init(places, &init),
        Verb::Resume {
            campaign,
            offline,
            over,
        } => campaign::resume(places, campaign.as_deref(), offline, &over),
        Verb::Show(show) => results::show(places, &show),
        Verb::Report(report) => results::report(places, &report),
        Verb::Post(post) => post::post(places, &post),
        Verb::Compare(compare) => exchange::compare(places, &compare),
        Verb::Explain(explain) => verdicts::explain(places, &explain),
        Verb::History(history) => verdicts::history(places, &history),
        Verb::Gate(gate) => gate::gate(places, &gate),
        Verb::Confirm(confirm) => confirm::confirm(places, &confirm),
        Verb::Bisect(bisect) => bisect::bisect(places, &bisect),
        Verb::Import(import) => exchange::import(places, &import),
        Verb::Export(export) => exchange::export(places, &export),
        Verb::Build { verb } => build::build(places, &verb),
        Verb::Plan { verb } => plan::plan(places, &verb),
        Verb::Workload { verb } => workload::workload(&verb),
        Verb::Doctor { json } => doctor::doctor(places, json),
        Verb::Machine { verb } => machine::machine(places, &verb),
        Verb::Host { file, verb } => host::host(places, &file, &verb),
        Verb::Submit(submit) => submit::submit(places, &submit),
        Verb::Completions { shell } => assets::completions(shell),
        Verb::Manual { folder } => assets::manual(&folder),
        Verb::Trial { continued } => campaign::trial(continued),
        Verb::Work(work) => host::work(places, &work),
        Verb::Client => host::client(),
        Verb::Guard { parent, command } => {
            plimsoll_lab::guard::main(parent, &command).map_err(Failure::from)
        }
        Verb::ProbeLibrary {
            engine,
            library,
            folder,
            companions,
        } => build::probe_library(engine.engine, &library, &folder, companions.as_deref()),
    };
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            tell!("plimsoll: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}

/// The plan that stands where a verb should.
fn plan_instead_of_verb(error: &clap::Error) -> Option<&str> {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    match error.get(ContextKind::InvalidSubcommand)? {
        ContextValue::String(name) if is_plan(name) => Some(name),
        _ => None,
    }
}
