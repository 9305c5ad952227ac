//! Every flag that a message names exists for each verb that shows the message.
//!
//! The flags are those of the command's definition, the messages all texts in the sources. A flag
//! after a verb (`doctor --store`, `kvmeter run ... --out`) belongs to that verb; for others the
//! table below lists the verbs that show the texts of a file.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory};

use crate::args::Cli;

enum MessageContext {
    /// By each of these verbs.
    By(&'static [&'static str]),
    /// By any verb: help, definitions, arguments of child processes.
    Somewhere,
    /// Another program's flags.
    Foreign,
}

use MessageContext::{By, Foreign, Somewhere};

const LOADS: MessageContext = By(&["bench", "search"]);
const ALL_LOADS: MessageContext = By(&["bench", "search", "run"]);

/// The longest matching prefix applies.
const SHOWN: &[(&str, MessageContext)] = &[
    ("agents/src", LOADS),
    ("agents/src/flags.rs", Somewhere),
    ("analyse/src", LOADS),
    ("analyse/src/cost", By(&["cost"])),
    ("analyse/src/fleet_plan", By(&["plan"])),
    ("micro/dpdk/src", Foreign),
    ("drive/src", ALL_LOADS),
    ("execute/src", ALL_LOADS),
    ("execute/src/bench/micro.rs", Somewhere),
    ("execute/src/co_runner.rs", Somewhere),
    ("execute/src/distributed/permissions.rs", By(&["agent"])),
    ("execute/src/mbwu", By(&["run"])),
    ("execute/src/repeat_policy.rs", By(&["run"])),
    ("execute/src/search.rs", By(&["search"])),
    ("fleet/src/ansible.rs", Foreign),
    ("fleet/src/kubernetes", Foreign),
    ("fleet/src/kubernetes_lacking.rs", Foreign),
    ("fleet/src/slurm", Foreign),
    ("host/src/cachegrind", Foreign),
    ("host/src/doctor/cpu.rs", Foreign),
    ("host/src/doctor/memory.rs", Foreign),
    ("host/src/knob", By(&["bench", "search", "run", "knob"])),
    ("host/src/probe", LOADS),
    ("kvmeter/src", Somewhere),
    ("kvmeter/src/cmd/bench", By(&["bench"])),
    ("kvmeter/src/cmd/cost", By(&["cost"])),
    ("kvmeter/src/cmd/doctor", By(&["doctor"])),
    ("kvmeter/src/cmd/export.rs", By(&["export"])),
    ("kvmeter/src/cmd/mbwu.rs", By(&["mbwu"])),
    ("kvmeter/src/cmd/plan", By(&["plan"])),
    ("kvmeter/src/cmd/precondition", By(&["precondition"])),
    ("kvmeter/src/cmd/report.rs", By(&["report"])),
    ("kvmeter/src/cmd/run", By(&["run"])),
    // Arguments of `leased`, and `--version`, on another machine.
    ("kvmeter/src/cmd/run/fleet/host.rs", Somewhere),
    ("kvmeter/src/hosts/program.rs", Foreign),
    ("kvmeter/src/cmd/search", By(&["search"])),
    ("kvmeter/src/flags/platform.rs", By(&["cost", "mbwu", "plan"])),
    ("kvmeter/src/flags.rs", LOADS),
    ("kvmeter/src/results_target.rs", LOADS),
    ("kvmeter/src/network_checks.rs", By(&["doctor"])),
    ("kvmeter/src/store_options.rs", By(&["doctor"])),
    ("micro/src/net", Somewhere),
    ("micro/src/precondition", By(&["precondition"])),
    // Of a loop device's or a partition's own tools.
    ("micro/src/precondition/device.rs", Foreign),
    ("record/src", By(&["bench", "search", "run", "merge"])),
    ("record/src/export", By(&["export"])),
    ("record/src/table", By(&["export"])),
    ("report/src", By(&["report", "run"])),
    ("report/src/cost", By(&["cost"])),
    ("report/src/fleet_plan", By(&["plan"])),
    ("server/src/launch", Foreign),
    // Cargo's.
    ("store/src/adapters", Foreign),
    ("study/src", ALL_LOADS),
    ("study/src/plan/known_names.rs", Somewhere),
    ("study/src/plan/mbwu.rs", By(&["run"])),
    // Plans without a study.
    ("study/src/plan/replay.rs", By(&["bench"])),
    ("study/src/plan/single.rs", By(&["bench"])),
    ("study/src/probes/flag.rs", LOADS),
    ("study/src/text", By(&["run"])),
    ("server/tap/src/preload.rs", Foreign),
    ("workload/src/trace", By(&["bench"])),
    ("workload/src/ycsb", LOADS),
    ("workload/src/ycsb/core_workload.rs", By(&["bench"])),
];

/// In a study the file replaces flags, so a text may name its key or table instead.
const STUDIES: [&str; 3] = ["[probes]", "of a study", "` (--"];

/// The long flags of each verb and its subcommands.
fn flags() -> BTreeMap<String, Vec<String>> {
    fn of(command: &Command) -> Vec<String> {
        let own = command.get_arguments().filter_map(|arg| arg.get_long().map(str::to_owned));
        own.chain(command.get_subcommands().flat_map(of)).collect()
    }
    let mut root = Cli::command();
    root.build();
    root.get_subcommands().map(|verb| (verb.get_name().to_owned(), of(verb))).collect()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

/// The flags of a line, each with the text before it.
fn mentions(line: &str) -> impl Iterator<Item = (&str, &str)> {
    line.match_indices("--").filter_map(|(at, _)| {
        let before = &line[..at];
        let rest = &line[at + 2..];
        let end = rest
            .find(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'))
            .unwrap_or(rest.len());
        let name = rest[..end].trim_end_matches('-');
        let begins = !before.ends_with(|c: char| c.is_alphanumeric() || c == '-' || c == '_');
        (begins && name.starts_with(|c: char| c.is_ascii_lowercase())).then_some((before, name))
    })
}

/// The verb before a flag: `kvmeter VERB ... --flag`, or directly.
fn named_verb<'a>(before: &'a str, verbs: &BTreeMap<String, Vec<String>>) -> Option<&'a str> {
    let word = |text: &'a str| text.split([' ', '`', '"', '\'']).find(|word| !word.is_empty());
    let behind = before.rsplit_once("kvmeter ").and_then(|(_, rest)| word(rest));
    let last = before.trim_end().rsplit([' ', '`', '"', '(']).next();
    behind.into_iter().chain(last).find(|word| verbs.contains_key(*word))
}

#[test]
fn flags_that_messages_name_exist_where_they_are_shown() {
    let verbs = flags();
    assert!(verbs["run"].iter().any(|flag| flag == "resume") && verbs.len() > 12);
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    sources(crates, &mut files);
    files.retain(|file| file.components().any(|part| part.as_os_str() == "src"));
    let (mut wrong, mut flags_seen) = (Vec::new(), 0);
    for file in files {
        let name = file.strip_prefix(crates).unwrap().display().to_string();
        if name.ends_with("tests.rs") || name == "kvmeter/src/remedies.rs" {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let lines: Vec<&str> =
            text.lines().take_while(|line| !line.trim().starts_with("#[cfg(test)]")).collect();
        let fits = |(path, _): &&(&str, MessageContext)| name.starts_with(path);
        let shown = SHOWN.iter().filter(fits).max_by_key(|(path, _)| path.len());
        for (at, line) in lines.iter().enumerate() {
            let is_text = !line.trim_start().starts_with("//") && line.contains(['"', '`', '\\']);
            // A command behind ` -- `, and cargo's.
            let is_foreign =
                |(before, _): &(&str, &str)| before.contains(" -- ") || before.contains("cargo ");
            for (before, flag) in mentions(line).filter(|found| is_text && !is_foreign(found)) {
                let near = lines[at.saturating_sub(2)..(at + 3).min(lines.len())].join("\n");
                let has = |verb: &str| verbs[verb].iter().any(|known| known == flag);
                let helps = |verb: &&str| {
                    has(verb) || *verb == "run" && STUDIES.iter().any(|words| near.contains(words))
                };
                let lacking: Vec<&str> = match (named_verb(before, &verbs), shown) {
                    (Some(verb), _) => Some(verb).into_iter().filter(|verb| !has(verb)).collect(),
                    (None, Some((_, Foreign))) => Vec::new(),
                    (None, Some((_, Somewhere))) => match verbs.keys().any(|verb| has(verb)) {
                        true => Vec::new(),
                        false => vec!["any verb"],
                    },
                    (None, Some((_, By(all)))) => {
                        all.iter().copied().filter(|verb| !helps(verb)).collect()
                    }
                    (None, None) => vec!["a verb that SHOWN names"],
                };
                flags_seen += 1;
                if !lacking.is_empty() {
                    let line = line.trim();
                    wrong.push(format!("{name}:{}: --{flag} of {lacking:?}: {line}", at + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "flags that do not exist:\n{}", wrong.join("\n"));
    assert!(flags_seen > 150, "{flags_seen} flags were found in all texts");
}
