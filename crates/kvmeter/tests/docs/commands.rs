//! Every command that a document or the help shows is one that kvmeter understands.

use analyse::gate::GateCondition;
use cachesim::{Policy, SimulatedMachine, Traffic};
use clap::ArgMatches;
use store::StoreUrl;
use study::{BUILT_IN, LOAD_OPTIONS, LoadOptions, StudyText, open_platform};

use crate::markdown::Document;
use crate::tree::documents;

/// What stands for a value of the reader's.
const PLACEHOLDERS: [(&str, &str); 17] = [
    ("STORE", "null"),
    ("STUDY", "quickstart"),
    ("FILE", "file.toml"),
    ("A", "a"),
    ("B", "b"),
    ("C", "c"),
    ("W", "ycsb-c"),
    ("ADDR", "127.0.0.1:9377"),
    ("PATH", "/path"),
    ("P", "s1"),
    ("F", "csv"),
    ("NAME", "s1"),
    ("COMMAND", "true"),
    ("CONDITION", "ipc < 0%"),
    ("MODEL", "model"),
    ("N", "1"),
    ("R", "20k"),
];

#[test]
fn every_command_is_understood() {
    let mut commands = in_help(&kvmeter::command(), "kvmeter");
    let of_help = commands.len();
    commands.extend(documents().iter().filter(|it| !is_history(it)).flat_map(in_document));
    assert!(of_help > 50 && commands.len() > 200, "{of_help} in help, {} in all", commands.len());
    let refused: Vec<String> = commands
        .iter()
        .filter_map(|shown| {
            let why = why_refused(&shown.text, shown.is_part)?;
            Some(format!("{}: {}\n    {why}", shown.place, shown.text))
        })
        .collect();
    assert!(refused.is_empty(), "refused:\n{}", refused.join("\n"));
}

#[test]
fn what_is_wrong_in_a_command_is_found() {
    for (text, words) in [
        ("kvmeter run arm-vs-x68", "did you mean `arm-vs-x86`?"),
        ("kvmeter run arm-vs-x86 --platform s44", "did you mean `s4`?"),
        ("kvmeter run arm-vs-x86 --scale tiny", "--scale tiny"),
        ("sudo kvmeter run quickstart --set data.recods=1  # more", "recods"),
        ("kvmeter bench rockdb:/tmp/db", "rockdb"),
        ("kvmeter bench null --lenght 5s", "--lenght"),
        ("kvmeter bench null --arrivals often", "arrivals"),
        ("kvmeter cost r.sqlite --platform s1,wats=5", "wats"),
        ("kvmeter cost --published arm-vs-x68", "arm-vs-x86"),
        ("kvmeter simulate dca --policy iatt", "iat"),
        ("kvmeter compare a b --fail-on 'ipc < 3%'", "write `< -3%`"),
        ("kvmeter report 'r.sqlite", "quote"),
    ] {
        let why = why_refused(text, false).unwrap_or_default();
        assert!(why.contains(words), "{text}: {why}");
    }
    for text in [
        "kvmeter run arm-vs-x86 --platform s4",
        "kvmeter bench null --workload ycsb-c --duration 5s --warmup 1s --repeats 3",
        "kvmeter search redis://h --slo 'p99<1ms' --duration 5s",
    ] {
        assert_eq!(why_refused(text, false), None, "{text}");
    }
}

/// What changed, and why it was so decided, names commands of other times.
fn is_history(document: &Document) -> bool {
    document.path.ends_with("CHANGELOG.md") || document.path.starts_with("docs/decisions")
}

/// A command as it is shown somewhere.
struct Shown {
    place: String,
    text: String,
    /// A sentence names it.
    is_part: bool,
}

/// The lines of examples below the help of a verb and of its own verbs.
fn in_help(command: &clap::Command, name: &str) -> Vec<Shown> {
    let help = [command.get_after_help(), command.get_after_long_help()];
    let help: Vec<String> = help.into_iter().flatten().map(ToString::to_string).collect();
    let place = format!("{name} --help");
    let shown = |text| Shown { place: place.clone(), text, is_part: false };
    let mut found: Vec<Shown> = lines(&help.join("\n")).into_iter().map(shown).collect();
    for verb in command.get_subcommands() {
        found.extend(in_help(verb, &format!("{name} {}", verb.get_name())));
    }
    found
}

/// Those in code blocks, and those that a code span holds.
fn in_document(document: &Document) -> Vec<Shown> {
    let place = document.path.display().to_string();
    let shown = |is_part| {
        let place = place.clone();
        move |text| Shown { place: place.clone(), text, is_part }
    };
    let spans = document.blocks().into_iter().flat_map(|block| block.code);
    let spans = spans.filter(|code| code.starts_with("kvmeter "));
    lines(&document.code_blocks())
        .into_iter()
        .map(shown(false))
        .chain(spans.map(shown(true)))
        .collect()
}

/// The lines that begin with kvmeter, behind a prompt, `sudo` or the sign of a list in YAML; continued
/// ones as one.
fn lines(text: &str) -> Vec<String> {
    let text = text.replace("\\\n", " ");
    let commands = text.lines().map(str::trim).filter(|line| {
        let before = line.split("kvmeter ").next().unwrap_or(line).trim();
        line.contains("kvmeter ") && ["", "$", "sudo", "server$", "client$", "-"].contains(&before)
    });
    commands.map(str::to_owned).collect()
}

fn lacks_words(error: &clap::Error) -> bool {
    use clap::error::ErrorKind;
    let kinds = [
        ErrorKind::MissingRequiredArgument,
        ErrorKind::MissingSubcommand,
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
    ];
    kinds.contains(&error.kind())
}

/// Why kvmeter refuses a command; None if it understands it. `is_part`: a sentence names it, and may
/// leave out what it needs.
fn why_refused(line: &str, is_part: bool) -> Option<String> {
    let words = match words(line) {
        Ok(words) => words,
        Err(why) => return Some(why.to_owned()),
    };
    let is_elided = |word: &&str| ["...", "…"].contains(word);
    let shown: Vec<&str> = words.iter().map(String::as_str).filter(|it| !is_elided(it)).collect();
    let filled = shown.iter().map(|word| {
        // One of several, and what may be left out.
        let one = word.trim_matches(['[', ']']).split('|').next().unwrap_or(word);
        match PLACEHOLDERS.iter().find(|(name, _)| *name == one) {
            Some(("NAME", _)) if shown.contains(&"micro") => "stream",
            Some((_, value)) => value,
            None => one,
        }
    });
    match kvmeter::command().try_get_matches_from(filled) {
        Ok(matches) => in_verb(&matches).err(),
        Err(error) if !error.use_stderr() => None,
        // What a line leaves out is known to the reader.
        Err(error) if (is_part || shown.len() < words.len()) && lacks_words(&error) => None,
        Err(error) => Some(error.to_string()),
    }
}

/// What the verb would refuse on any machine.
fn in_verb(matches: &ArgMatches) -> Result<(), String> {
    let Some((verb, args)) = matches.subcommand() else { return Ok(()) };
    match verb {
        "run" => study_of(args),
        "bench" | "search" => load_of(args),
        "cost" | "mbwu" => costs_of(args),
        "compare" => gate_of(args),
        "simulate" => args.subcommand().map_or(Ok(()), |(_, args)| simulation_of(args)),
        _ => Ok(()),
    }
}

fn text<'m>(args: &'m ArgMatches, key: &str) -> Option<&'m String> {
    args.try_get_one::<String>(key).ok().flatten()
}

fn texts<'m>(args: &'m ArgMatches, key: &str) -> Vec<&'m String> {
    args.try_get_many::<String>(key).ok().flatten().into_iter().flatten().collect()
}

/// A file is the reader's own.
fn is_file(name: &str) -> bool {
    name.contains('/') || name.ends_with(".toml")
}

fn study_of(args: &ArgMatches) -> Result<(), String> {
    let words = |error: &dyn std::fmt::Display| error.to_string();
    if let Some(name) = text(args, "platform").filter(|name| !is_file(name)) {
        open_platform(name).map_err(|error| words(&error))?;
    }
    let name = text(args, "study").map_or("", String::as_str);
    if is_file(name) {
        return Ok(());
    }
    let mut study = StudyText::open(name).map_err(|error| words(&error))?;
    assert!(BUILT_IN.iter().any(|known| known.name == name));
    if let Some(scale) = text(args, "scale") {
        study.scale(scale).map_err(|error| words(&error))?;
    }
    let set: Vec<String> = texts(args, "set").into_iter().cloned().collect();
    study.set(&set).map_err(|error| words(&error))?;
    study.spec().map(drop).map_err(|error| words(&error))
}

fn load_of(args: &ArgMatches) -> Result<(), String> {
    if text(args, "server").is_none()
        && let Some(store) = text(args, "store")
    {
        store.parse::<StoreUrl>().map_err(|error| error.to_string())?;
    }
    if has(args, "trace") {
        return Ok(());
    }
    let mut given = LoadOptions::default();
    for option in LOAD_OPTIONS {
        let text = match option.key {
            // Which rate it is does not matter.
            "rate" if has(args, "rate") => Some("1k"),
            key => text(args, key).map(String::as_str),
        };
        let parsed = match text {
            Some(text) => (option.parse)(text)?,
            None => args.try_get_one(option.key).ok().flatten().cloned().unwrap_or_default(),
        };
        given = given.or(parsed);
    }
    given.config(1).map(drop).map_err(|error| error.to_string())
}

fn has(args: &ArgMatches, key: &str) -> bool {
    args.try_contains_id(key).is_ok_and(|is_there| is_there)
}

fn costs_of(args: &ArgMatches) -> Result<(), String> {
    if let Some(name) = text(args, "published") {
        analyse::cost::published::Published::named(name).map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn gate_of(args: &ArgMatches) -> Result<(), String> {
    let mut conditions = texts(args, "fail_on").into_iter();
    conditions.try_for_each(|text| match text.parse::<GateCondition>() {
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    })
}

fn simulation_of(args: &ArgMatches) -> Result<(), String> {
    let words = |error: cachesim::SimError| error.to_string();
    for policy in texts(args, "policy") {
        Policy::parse(policy).map_err(words)?;
    }
    let machine = text(args, "machine").map_or("xeon-gold-6140", String::as_str);
    if is_file(machine) {
        return Ok(());
    }
    let machine = SimulatedMachine::open(machine).map_err(words)?;
    match text(args, "traffic").filter(|name| !is_file(name)) {
        Some(name) => Traffic::open(name, &machine).map(drop).map_err(words),
        None => Ok(()),
    }
}

/// The words of a line as a shell reads them, from `kvmeter` on to a comment, a remark after wide
/// blanks, or another command.
fn words(line: &str) -> Result<Vec<String>, &'static str> {
    let start = line.find("kvmeter").unwrap_or(0);
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut rest = line[start..].chars().peekable();
    while let Some(c) = rest.next() {
        match (quote, c) {
            (Some(end), _) if c == end => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, ' ') => {
                words.extend(word.take());
                if rest.peek() == Some(&' ') && !line.contains('\\') {
                    let after: String = rest.clone().collect();
                    // Blanks of a continued line go on with a flag.
                    if !after.trim_start().starts_with("--") {
                        break;
                    }
                }
            }
            (None, '#' | '|' | '>' | ';' | '&') if word.is_none() => break,
            (None, _) => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return Err("a quote is not closed");
    }
    words.extend(word);
    Ok(words)
}
