//! `doctor --options`: the options of the stores' URLs.

use model::suggest::hint;
use report::table::{ALWAYS, Align, Table};
use store::{ADAPTERS, Adapter, DataLocation, OptionInfo, StoreUrl};

use crate::exit::{ExitOutcome, request};
use crate::output::Output;

/// The syntax of values, in all stores.
const VALUES: &str = "Sizes: 512, 64MiB, 2GiB; a number alone is in bytes. Times: 500ms, 5s, 2m; a \
    number alone is in seconds. Switches: on, off. See docs/stores.md.";

/// Prints the options of `store`, a scheme or a URL, or of all stores.
pub fn print(store: Option<&str>, json: bool, show: &Output) -> anyhow::Result<ExitOutcome> {
    let adapters: Vec<(&Adapter, &[OptionInfo])> = match store {
        None => ADAPTERS.iter().map(|adapter| (adapter, adapter.options)).collect(),
        Some(store) => {
            let adapter = find_adapter(store)?;
            let own = adapter.location == DataLocation::Library && store.contains(':');
            let url = own.then(|| store.parse::<StoreUrl>()).transpose()?;
            let options = url.map(|url| url.describe()).transpose()?;
            vec![(adapter, options.map_or(adapter.options, |known| known.options))]
        }
    };
    if json {
        let all: Vec<_> = adapters.into_iter().map(object).collect();
        show.json(&all)?;
        return Ok(ExitOutcome::Done);
    }
    let mut tables: Vec<Table> = adapters.into_iter().map(table).collect();
    if let Some(last) = tables.last_mut() {
        last.note(VALUES);
    }
    let parts: Vec<String> =
        tables.iter().map(|table| report::terminal::table(table, show.style())).collect();
    show.print(&parts.join("\n"))?;
    Ok(ExitOutcome::Done)
}

fn find_adapter(store: &str) -> anyhow::Result<&'static Adapter> {
    let scheme = store.split([':', '?']).next().unwrap_or(store);
    ADAPTERS.iter().find(|adapter| adapter.scheme == scheme).ok_or_else(|| {
        let hint = hint(scheme, ADAPTERS.iter().map(|adapter| adapter.scheme));
        request(format!("--options: there is no store `{scheme}`; {hint}"))
    })
}

fn table((adapter, options): (&Adapter, &[OptionInfo])) -> Table {
    let mut table = Table::new(format!("{}: {}", adapter.scheme, adapter.what))
        .column("option", Align::Left, ALWAYS)
        .column("default", Align::Wrap, ALWAYS)
        .column("what it sets", Align::Wrap, ALWAYS);
    for option in options {
        let shapes = if option.shapes_data { "; shapes the data" } else { "" };
        let what = format!("{}{shapes}", option.what);
        table.row(vec![option.name.into(), option.default.into(), what.into()]);
    }
    match adapter.available() {
        Err(not) => table.note(format!("{}: {}", not.reason, not.remedy)),
        Ok(_) if options.is_empty() => table.note("takes no options"),
        Ok(_) => {}
    }
    table
}

fn object((adapter, options): (&Adapter, &[OptionInfo])) -> serde_json::Value {
    let options: Vec<_> = options
        .iter()
        .map(|option| {
            serde_json::json!({
                "name": option.name,
                "default": option.default,
                "what": option.what,
                "shapes_data": option.shapes_data,
            })
        })
        .collect();
    serde_json::json!({ "store": adapter.scheme, "what": adapter.what, "options": options })
}
