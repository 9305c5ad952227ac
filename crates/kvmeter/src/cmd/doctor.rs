use std::path::PathBuf;

use host::{Context, Root};
use store::{ADAPTERS, StoreUrl};

use crate::args::Doctor;
use crate::exit::Outcome;
use crate::show::Show;

pub fn run(args: &Doctor, show: &Show) -> anyhow::Result<Outcome> {
    let root = Root::live();
    let context = Context { store_path: args.store.as_deref().map(place).transpose()? };
    let mut machine = host::facts(&root);
    if let Some(path) = &context.store_path {
        machine.facts.extend(host::storage(&root, path));
    }
    let mut checks = host::doctor(&root, &context);
    checks.extend(ADAPTERS.iter().map(store_check));
    if args.json {
        let value = serde_json::json!({
            "kvmeter": env!("CARGO_PKG_VERSION"),
            "machine": machine,
            "checks": checks,
        });
        show.print(&serde_json::to_string_pretty(&value)?)?;
    } else {
        show.print(&report::terminal::doctor(&machine, &rows(&checks), show.style()))?;
    }
    Ok(Outcome::Done)
}

/// The path of a store's URL, or the path itself.
fn place(text: &str) -> anyhow::Result<PathBuf> {
    let scheme = text.split_once(':').map(|(scheme, _)| scheme);
    if ADAPTERS.iter().any(|adapter| Some(adapter.scheme) == scheme) {
        return Ok(text.parse::<StoreUrl>()?.path);
    }
    Ok(PathBuf::from(text))
}
