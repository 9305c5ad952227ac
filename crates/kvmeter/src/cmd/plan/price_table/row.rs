//! A row by the names of its columns.

use analyse::cost::RentalTerm;

use super::InstancePrice;

/// What a column holds, by its names in files; case, `_` and spaces do not matter.
const INSTANCE: &[&str] = &["instance", "instancetype", "type"];
const USD_PER_H: &[&str] =
    &["usdperh", "usdperhour", "priceperhour", "hourlyprice", "priceperunit"];
const TERM: &[&str] = &["term", "termtype"];
const REGION: &[&str] = &["region", "regioncode", "location"];
const VCPUS: &[&str] = &["vcpus", "vcpu"];
const MEMORY: &[&str] = &["memorygib", "memory", "memorygb"];

/// Reads a row from pairs of column and text; columns with other names do not matter.
pub(super) fn row<'a>(
    place: String,
    columns: impl Iterator<Item = (&'a str, &'a str)>,
) -> Result<InstancePrice, String> {
    let pairs: Vec<(String, &str)> =
        columns.map(|(name, text)| (plain(name), text.trim())).collect();
    let of = |names: &[&str]| {
        let found = pairs.iter().find(|(name, _)| names.contains(&name.as_str()));
        found.map(|(_, text)| *text).filter(|text| !text.is_empty())
    };
    let wrong = |words: String| format!("{place}: {words}");
    let required =
        |name: &str, names: &[&str]| of(names).ok_or_else(|| wrong(format!("`{name}` is missing")));
    let instance = required("instance", INSTANCE)?.to_owned();
    let text = required("usd_per_h", USD_PER_H)?;
    let usd_per_h = number(text).filter(|usd| *usd > 0.0).ok_or_else(|| {
        wrong(format!("`usd_per_h` is `{}`: it must be a number above zero", short(text)))
    })?;
    let term = match of(TERM) {
        None => RentalTerm::OnDemand,
        Some(text) => RentalTerm::from_name(text).ok_or_else(|| {
            let words = "it must be on-demand, reserved or spot";
            wrong(format!("`term` is `{}`: {words}", short(text)))
        })?,
    };
    let optional = |name: &str, names: &[&str]| match of(names) {
        None => Ok(None),
        Some(text) => number(text).filter(|value| *value > 0.0).map(Some).ok_or_else(|| {
            wrong(format!("`{name}` is `{}`: it must be a number above zero", short(text)))
        }),
    };
    Ok(InstancePrice {
        usd_per_h,
        term,
        region: of(REGION).map(str::to_owned),
        vcpus: optional("vcpus", VCPUS)?,
        memory_gib: optional("memory_gib", MEMORY)?,
        instance,
        place,
    })
}

/// Whether columns of these names hold instance types and prices.
pub(super) fn lacking<'a>(names: impl Iterator<Item = &'a str>) -> Option<&'static str> {
    let names: Vec<String> = names.map(plain).collect();
    let has = |wanted: &[&str]| names.iter().any(|name| wanted.contains(&name.as_str()));
    match (has(INSTANCE), has(USD_PER_H)) {
        (false, _) => Some("instance"),
        (_, false) => Some("usd_per_h"),
        _ => None,
    }
}

fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// `0.5`, `$0.5`, `64 GiB`.
fn number(text: &str) -> Option<f64> {
    let text = text.strip_prefix('$').unwrap_or(text);
    let text = ["GiB", "GB"].iter().find_map(|unit| text.strip_suffix(unit)).unwrap_or(text);
    text.trim().parse::<f64>().ok().filter(|value| value.is_finite())
}

/// For a message.
fn short(text: &str) -> String {
    const MOST: usize = 40;
    text.chars().take(MOST).collect()
}
