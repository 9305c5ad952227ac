//! `kvmeter doctor`: what can be measured here.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use host::{Context, DoctorCheck, DoctorState, Root, RunWatch};
use report::{CheckRow, CheckState};
use store::{ADAPTERS, Adapter, StoreUrl};

use crate::exit::{ExitOutcome, request};
use crate::network_checks::network_checks;
use crate::output::Output;
use crate::output_files;
use crate::recording::{unpack, write};
use crate::store_options;

/// How long probes watch a machine that is recorded, so that each reads its files.
const WATCH_TIME: Duration = Duration::from_millis(300);
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kvmeter doctor\n  \
    kvmeter doctor --store rocksdb:/data/db     also looks at the disk under the store\n  \
    kvmeter doctor --options spill              what the options of a store's URL do\n  \
    kvmeter doctor --json | jq '.checks[] | select(.state != \"ok\")'")]
pub struct DoctorArgs {
    /// Also check the file system and device of this store or path
    #[arg(long, value_name = "STORE|PATH")]
    pub store: Option<String>,
    /// Only list what the options of this store's URL do, or of all stores' URLs
    #[arg(long, value_name = "STORE", num_args = 0..=1,
        conflicts_with_all = ["store", "record", "root"])]
    pub options: Option<Option<String>>,
    /// Record this machine in a text file for `--root`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub record: Option<PathBuf>,
    /// A recorded machine instead of this one: a file of `--record`, or a folder
    #[arg(long, value_name = "FILE|DIR", value_hint = ValueHint::AnyPath)]
    pub root: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

pub fn run(args: &DoctorArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    if let Some(store) = &args.options {
        return store_options::print(store.as_deref(), args.json, show);
    }
    if let Some(record) = &args.record {
        output_files::check_output("--record", record, &[])?;
    }
    let unpacked;
    let root = match &args.root {
        None => Root::live(),
        Some(dir) if dir.is_dir() => Root::at(dir),
        Some(file) => {
            unpacked = unpack(file)?;
            Root::at(unpacked.path())
        }
    };
    root.check().map_err(|error| request(format!("--root: {error}")))?;
    let (root, notes) = root.with_notes();
    let context = Context {
        store_path: args.store.as_deref().map(store_path).transpose()?,
        ..Context::default()
    };
    let mut machine = host::facts(&root);
    if let Some(path) = &context.store_path {
        machine.facts.extend(host::storage(&root, path));
    }
    let mut checks = host::doctor(&root, &context);
    checks.extend(ADAPTERS.iter().map(store_check));
    checks.extend(network_checks());
    if args.json {
        let value = serde_json::json!({
            "kvmeter": env!("CARGO_PKG_VERSION"),
            "machine": machine,
            "checks": checks,
        });
        show.json(&value)?;
    } else {
        let mut rows: Vec<CheckRow> = machine.facts.iter().map(CheckRow::of_fact).collect();
        rows.extend(checks.iter().map(row));
        show.print_styled(&report::terminal::doctor(&rows, show.style()))?;
    }
    if let Some(record) = &args.record {
        let watch = RunWatch::begin(&root, &context);
        std::thread::sleep(WATCH_TIME);
        watch.end();
        write(record, &root, &notes, &machine)?;
        show.note(&format!("written  {}; look through it before you send it", record.display()));
    }
    Ok(ExitOutcome::Done)
}

/// The path of a store's URL, or the path itself.
fn store_path(text: &str) -> anyhow::Result<PathBuf> {
    let path = PathBuf::from(text);
    let is_url = text.split_once(':').is_some_and(|(scheme, _)| {
        !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric())
    });
    Ok(if is_url && !path.exists() { text.parse::<StoreUrl>()?.path } else { path })
}

/// Whether a store was built in, as a check.
fn store_check(adapter: &Adapter) -> DoctorCheck {
    let options: Vec<String> = adapter
        .options
        .iter()
        .map(|option| format!("{}={}", option.name, option.default))
        .collect();
    let why = match options.is_empty() {
        true => adapter.what.to_owned(),
        false => format!(
            "{}; options, which `kvmeter doctor --options {}` describes: {}",
            adapter.what,
            adapter.scheme,
            options.join(", ")
        ),
    };
    let (state, found, remedy) = match adapter.available() {
        Ok(version) => (DoctorState::Ok, version, None),
        Err(not) => (DoctorState::Unavailable, not.reason, Some(not.remedy)),
    };
    let (name, group) = (adapter.scheme.to_owned(), "stores".to_owned());
    DoctorCheck { name, group, state, found, why, remedy }
}

fn row(check: &DoctorCheck) -> CheckRow {
    CheckRow {
        name: check.name.clone(),
        group: check.group.clone(),
        state: match check.state {
            DoctorState::Ok => CheckState::Ok,
            DoctorState::Note => CheckState::Note,
            DoctorState::Unavailable => CheckState::Unavailable,
        },
        found: check.found.clone(),
        why: Some(check.why.clone()),
        remedy: check.remedy.clone(),
    }
}
