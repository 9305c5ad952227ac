use std::path::PathBuf;

use host::{Check, Context, Root, State};
use model::Fact;
use store::{ADAPTERS, StoreUrl};

use report::{CheckRow, CheckState};
use store::Adapter;

use crate::args::Doctor;
use crate::exit::Outcome;
use crate::network_checks::network_checks;
use crate::show::Show;

pub fn run(args: &Doctor, show: &Show) -> anyhow::Result<Outcome> {
    let root = Root::live();
    let context =
        Context { store_path: args.store.as_deref().map(place).transpose()?, ..Context::default() };
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
        show.print(&serde_json::to_string_pretty(&value)?)?;
    } else {
        let mut rows: Vec<CheckRow> = machine.facts.iter().map(fact).collect();
        rows.extend(checks.iter().map(row));
        show.print(&report::terminal::doctor(&rows, show.style()))?;
    }
    Ok(Outcome::Done)
}

/// The path of a store's URL, or the path itself.
fn place(text: &str) -> anyhow::Result<PathBuf> {
    let path = PathBuf::from(text);
    let is_url = text.split_once(':').is_some_and(|(scheme, _)| {
        !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric())
    });
    Ok(if is_url && !path.exists() { text.parse::<StoreUrl>()?.path } else { path })
}

/// Whether a store was built in, as a check beside those of the machine.
fn store_check(adapter: &Adapter) -> Check {
    let options: Vec<String> = adapter
        .options
        .iter()
        .map(|option| format!("{}={}", option.name, option.default))
        .collect();
    let why = match options.is_empty() {
        true => adapter.what.to_owned(),
        false => format!("{}; options: {}", adapter.what, options.join(", ")),
    };
    let (state, found, remedy) = match adapter.available() {
        Ok(version) => (State::Ok, version, None),
        Err(not) => (State::Unavailable, not.reason, Some(not.remedy)),
    };
    let (name, group) = (adapter.scheme.to_owned(), "stores".to_owned());
    Check { name, group, state, found, why, remedy }
}

fn row(check: &Check) -> CheckRow {
    CheckRow {
        name: check.name.clone(),
        group: check.group.clone(),
        state: match check.state {
            State::Ok => CheckState::Ok,
            State::Note => CheckState::Note,
            State::Unavailable => CheckState::Unavailable,
        },
        found: check.found.clone(),
        why: Some(check.why.clone()),
        remedy: check.remedy.clone(),
    }
}

fn fact(fact: &Fact) -> CheckRow {
    let (state, found, why) = match &fact.value {
        Ok(value) => (CheckState::Ok, value.clone(), None),
        Err(reason) => (CheckState::Unavailable, String::new(), Some(reason.clone())),
    };
    let (name, group) = (fact.name.clone(), "machine".to_owned());
    CheckRow { name, group, state, found, why, remedy: None }
}
