//! Every flag and place of the command line, as clap has them.

use std::any::TypeId;

use clap::{Arg, ArgAction, Command, ValueHint};

use crate::process::run_all;
use crate::{TEXTS, is_run, long};

/// What makes each verb do something small; several where flags exclude each other. A verb
/// without an entry fails the test.
const BASES: &[(&str, &[&str])] = &[
    ("doctor", &[""]),
    ("doctor", &["--options=null"]),
    ("run", &["study.toml"]),
    ("run", &["study.toml", "--device=."]),
    ("run", &["study.toml", "--on=local"]),
    ("bench", &["null", "--records=100", "--time=20ms", "--probes=off"]),
    ("bench", &["null", "--records=100", "--time=20ms", "--probes=off", "--rate=1k"]),
    ("bench", &["null", "--records=100", "--ops=100"]),
    ("bench", &["null", "--time=20ms", "--probes=off"]),
    ("bench", &["null", "--trace=trace.csv"]),
    ("bench", &["memcached://127.0.0.1:1", "--rate=1k", "--agents=127.0.0.1:1"]),
    ("agent", &["--listen=127.0.0.1:0"]),
    (
        "search",
        &["null", "--slo=p99<1ms", "--records=100", "--time=20ms", "--trials=1", "--probes=off"],
    ),
    ("search", &["null", "--slo=p99<1ms", "--time=20ms", "--trials=1"]),
    ("search", &["null", "--slo=p99<1ms", "--time=20ms", "--trials=1", "--trace=trace.csv"]),
    ("mbwu", &["results.sqlite"]),
    ("precondition", &["disk.img", "--size=1MiB"]),
    ("precondition", &["disk.img", "--size=1MiB", "--random"]),
    ("report", &["results.sqlite"]),
    ("compare", &["results.sqlite", "results.sqlite"]),
    ("history", &["results.sqlite"]),
    ("cost", &["--platform=a,throughput=1k,watts=10,price=100"]),
    ("plan", &["--rate=1k", "--platform=a,throughput=1k,watts=10,price=100"]),
    ("merge", &["results.sqlite", "--out=merged.sqlite"]),
    ("export", &["results.sqlite", "--format=csv"]),
    ("micro stream", &["--size=64KiB", "--time=10ms", "--threads=1"]),
    ("micro hog", &["--size=64KiB", "--time=10ms"]),
    ("micro latency", &["--size=64KiB", "--time=10ms"]),
    ("micro clock", &["--time=10ms"]),
    ("micro syscall", &["--time=10ms"]),
    ("micro switch", &["--time=10ms"]),
    ("micro pingpong", &["--size=64", "--time=10ms", "--warm-up=1ms"]),
    ("micro flow", &["--size=64", "--time=10ms", "--warm-up=1ms"]),
    ("micro job", &[r#"{"bench":{"Stream":{"size":"64KiB","time":"10ms","threads":"1"}}}"#]),
    ("knob list", &[]),
    ("knob show", &["idle"]),
    ("knob set", &["idle=none", "--dry-run"]),
    ("knob restore", &["--root=machine"]),
    ("knob supervise", &["state/kvmeter", "--root=machine"]),
    ("simulate dca", &["--traffic=forward"]),
    ("simulate dca", &["--traffic=forward", "--figures=figures.html"]),
    ("leased", &["--lease=5s", "completions", "bash"]),
    #[cfg(feature = "kubernetes")]
    ("pod-shell", &["--namespace=a", "--kubeconfig=nothing", "pod", "true"]),
    ("server", &["memcached", "--settings=server.json"]),
    ("simulated-pass", &["pass"]),
    ("workload describe", &["trace.csv"]),
    ("workload capture", &["trace.csv", "--out=capture.kvtrace"]),
    ("completions", &["bash"]),
    ("man", &["man"]),
];

/// Where a value is put.
#[derive(Clone)]
enum At {
    Flag(String),
    Place(usize),
}

/// Every verb that has none below it, with its words.
fn verbs(of: &Command, words: &str, all: &mut Vec<(String, Command)>) {
    let below: Vec<_> = of.get_subcommands().filter(|verb| verb.get_name() != "help").collect();
    if below.is_empty() {
        all.push((words.to_owned(), of.clone()));
    }
    for verb in below {
        verbs(verb, format!("{words} {}", verb.get_name()).trim(), all);
    }
}

fn takes_a_value(arg: &&Arg) -> bool {
    !matches!(
        arg.get_action(),
        ArgAction::SetTrue
            | ArgAction::SetFalse
            | ArgAction::Count
            | ArgAction::Help
            | ArgAction::HelpShort
            | ArgAction::HelpLong
            | ArgAction::Version
    )
}

/// The base with this value in it, in place of what stands there.
fn with(verb: &str, base: &[&str], at: &At, value: &str) -> Vec<String> {
    let mut args: Vec<String> =
        base.iter().filter(|arg| !arg.is_empty()).map(|arg| (*arg).to_owned()).collect();
    match at {
        At::Flag(name) => {
            args.retain(|arg| !arg.starts_with(&format!("{name}=")));
            args.push(format!("{name}={value}"));
        }
        At::Place(index) => {
            let mut places: Vec<usize> =
                (0..args.len()).filter(|at| !args[*at].starts_with("--")).collect();
            match places.drain(..).nth(*index - 1) {
                Some(place) => args[place] = value.to_owned(),
                None => args.push(value.to_owned()),
            }
        }
    }
    verb.split(' ').map(str::to_owned).chain(args).collect()
}

#[test]
fn every_flag_takes_or_refuses_extreme_values() {
    let mut command = kvmeter::command();
    command.build();
    let mut all = Vec::new();
    verbs(&command, "", &mut all);
    assert!(all.len() > 20, "{}", all.len());

    let mut processes = Vec::new();
    let mut refused = 0;
    for (verb, definition) in &all {
        let bases: Vec<_> =
            BASES.iter().filter(|(of, _)| of == verb).map(|(_, base)| *base).collect();
        assert!(!bases.is_empty(), "`{verb}` has no entry in BASES");
        for arg in definition.get_arguments().filter(takes_a_value) {
            let at = match (arg.get_long(), arg.get_index()) {
                (Some(long), _) => At::Flag(format!("--{long}")),
                (None, Some(index)) => At::Place(index),
                (None, None) => panic!("{verb}: {arg} has neither a name nor a place"),
            };
            let values = TEXTS.iter().map(|text| (*text).to_owned()).chain([long()]);
            for value in values {
                // The first base with which the command line is accepted; clap's refusal ends
                // with 2.
                let parses = |args: &Vec<String>| {
                    let line = std::iter::once("kvmeter".to_owned()).chain(args.iter().cloned());
                    match command.clone().try_get_matches_from(line) {
                        Ok(_) => true,
                        Err(error) => {
                            assert!(matches!(error.exit_code(), 0 | 2), "{args:?}: {error}");
                            false
                        }
                    }
                };
                let lines = bases.iter().map(|base| with(verb, base, &at, &value));
                let accepted: Vec<_> = lines.filter(parses).collect();
                refused += usize::from(accepted.is_empty());
                // A path is a path whatever it is, but for one that no file can have.
                let path = !matches!(arg.get_value_hint(), ValueHint::Unknown | ValueHint::Other);
                let wanted =
                    if path { value.is_empty() || value.len() > 255 } else { is_run(&value) };
                // Text is read by the verb, whatever stands beside it.
                let text = arg.get_value_parser().type_id() == TypeId::of::<String>();
                let bases = if text { 1 } else { accepted.len() };
                processes.extend(accepted.into_iter().take(bases).filter(|_| wanted));
            }
        }
    }
    println!("{refused} refused by clap, {} processes", processes.len());
    let faults = run_all(&processes);
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}
