//! `doctor --options`: what the options of the stores' URLs do.

use model::suggest::hint;
use report::table::{ALWAYS, Align, Table};
use store::{ADAPTERS, Adapter};

use crate::exit::{Outcome, request};
use crate::show::Show;

/// How values are written, in all stores.
const VALUES: &str = "Sizes: 512, 64MiB, 2GiB; a number alone is in bytes. Times: 500ms, 5s, 2m; a \
    number alone is in seconds. Switches: on, off. docs/stores.md tells more.";

/// Prints the options of the store that `asked` names, as a scheme or a URL, or of all of them.
pub fn print(asked: Option<&str>, json: bool, show: &Show) -> anyhow::Result<Outcome> {
    let adapters = match asked {
        None => ADAPTERS.iter().collect(),
        Some(store) => vec![named(store)?],
    };
    if json {
        let all: Vec<_> = adapters.into_iter().map(object).collect();
        show.json(&all)?;
        return Ok(Outcome::Done);
    }
    let mut tables: Vec<Table> = adapters.into_iter().map(table).collect();
    if let Some(last) = tables.last_mut() {
        last.note(VALUES);
    }
    let parts: Vec<String> =
        tables.iter().map(|table| report::terminal::table(table, show.style())).collect();
    show.print(&parts.join("\n"))?;
    Ok(Outcome::Done)
}

fn named(store: &str) -> anyhow::Result<&'static Adapter> {
    let scheme = store.split([':', '?']).next().unwrap_or(store);
    ADAPTERS.iter().find(|adapter| adapter.scheme == scheme).ok_or_else(|| {
        let hint = hint(scheme, ADAPTERS.iter().map(|adapter| adapter.scheme));
        request(format!("--options: there is no store `{scheme}`; {hint}"))
    })
}

fn table(adapter: &Adapter) -> Table {
    let mut table = Table::new(format!("{}: {}", adapter.scheme, adapter.what))
        .column("option", Align::Left, ALWAYS)
        .column("default", Align::Wrap, ALWAYS)
        .column("what it sets", Align::Wrap, ALWAYS);
    for option in adapter.options {
        let shapes = if option.shapes_data { "; shapes the data" } else { "" };
        let what = format!("{}{shapes}", option.what);
        table.row(vec![option.name.into(), option.default.into(), what.into()]);
    }
    match adapter.available() {
        Err(not) => table.note(format!("{}: {}", not.reason, not.remedy)),
        Ok(_) if adapter.options.is_empty() => table.note("takes no options"),
        Ok(_) => {}
    }
    table
}

fn object(adapter: &Adapter) -> serde_json::Value {
    let options: Vec<_> = adapter
        .options
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
