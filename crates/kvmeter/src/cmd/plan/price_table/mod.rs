//! A table of instance types and their prices, as clouds publish it.

mod csv;
mod json;
mod row;

use std::path::Path;

use analyse::cost::RentalTerm;

use crate::exit::request;

/// The longest file.
const MAX_BYTES: u64 = 64 << 20;

/// Rows of a file.
pub struct PriceTable {
    /// As messages call it.
    pub file: String,
    pub rows: Vec<InstancePrice>,
}

/// One price of one instance type.
#[derive(Debug, Clone, PartialEq)]
pub struct InstancePrice {
    /// Where it stands in the file: `line 3` of CSV, `object 3` of JSON.
    pub place: String,
    pub instance: String,
    pub usd_per_h: f64,
    pub term: RentalTerm,
    pub region: Option<String>,
    pub vcpus: Option<f64>,
    pub memory_gib: Option<f64>,
}

impl PriceTable {
    /// Reads CSV with a head line, or a JSON array of objects.
    pub fn open(path: &Path) -> anyhow::Result<PriceTable> {
        let file = path.display().to_string();
        let text = safe_file::read_text(path, MAX_BYTES)
            .map_err(|error| request(format!("--prices {file}: {}", error.why())))?;
        let rows = match text.trim_start().starts_with(['[', '{']) {
            true => json::rows(&text),
            false => csv::rows(&text),
        };
        let rows = rows.map_err(|why| request(format!("--prices {file}, {why}")))?;
        if rows.is_empty() {
            return Err(request(format!("--prices {file}: it has no price")));
        }
        Ok(PriceTable { file, rows })
    }

    /// The prices of an instance type, in this region if one is named, at most one a term.
    pub fn of(&self, names: &[&str], region: Option<&str>) -> anyhow::Result<Vec<&InstancePrice>> {
        let same = |a: &str, b: &str| a.trim().eq_ignore_ascii_case(b.trim());
        let here = |row: &&InstancePrice| match (region, &row.region) {
            (Some(wanted), Some(own)) => same(wanted, own),
            _ => true,
        };
        let own = |row: &&InstancePrice| names.iter().any(|name| same(name, &row.instance));
        let found: Vec<&InstancePrice> = self.rows.iter().filter(own).filter(here).collect();
        for (at, row) in found.iter().enumerate() {
            let Some(twin) = found[..at].iter().find(|other| other.term == row.term) else {
                continue;
            };
            return Err(request(format!(
                "--prices {}: {} and {} both have a price of {} {}; choose with --region, or \
                 leave one out",
                self.file, twin.place, row.place, row.instance, row.term
            )));
        }
        Ok(found)
    }
}
