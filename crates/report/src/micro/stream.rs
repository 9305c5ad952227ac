//! Memory bandwidth.

use super::{huge_words, size};
use crate::format::significant;
use crate::table::{ALWAYS, Align, Cell, Table, Tone};

/// The kernels at one number of threads and size of arrays.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamCell<'a> {
    pub threads: usize,
    pub cpus: &'a [u32],
    /// Of each of the three arrays.
    pub array_bytes: u64,
    pub stores: String,
    pub placement: String,
    pub rounds: usize,
    /// Bytes of all three arrays on huge pages, or why that is not known.
    pub huge_bytes: &'a Result<u64, String>,
    /// NUMA nodes with their pages; none where they are not known.
    pub nodes: Vec<u32>,
    pub kernels: Vec<KernelRate<'a>>,
}

/// One kernel: rates in 10^9 bytes a second, and seconds of a pass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KernelRate<'a> {
    pub name: &'a str,
    pub best_gb_s: f64,
    pub mean_gb_s: f64,
    pub worst_gb_s: f64,
    pub min_s: f64,
    pub mean_s: f64,
    pub max_s: f64,
}

/// A row for each kernel of each cell.
pub fn stream(cells: &[StreamCell<'_>]) -> Table {
    let mut table = Table::new("Memory bandwidth, GB/s")
        .column("threads", Align::Right, ALWAYS)
        .column("each array", Align::Right, ALWAYS)
        .column("kernel", Align::Left, ALWAYS)
        .column("best", Align::Decimal, ALWAYS)
        .column("mean", Align::Decimal, 20)
        .column("worst", Align::Decimal, 19)
        .column("min ms", Align::Decimal, 10)
        .column("mean ms", Align::Decimal, 9)
        .column("max ms", Align::Decimal, 8);
    for cell in cells {
        for (at, kernel) in cell.kernels.iter().enumerate() {
            let once = |text: String| Cell::from(if at == 0 { text } else { String::new() });
            let ms = |seconds: f64| Cell::from(significant(seconds * 1e3, 3));
            let rate = |gb_s: f64| significant(gb_s, 4);
            table.row(vec![
                once(cell.threads.to_string()),
                once(size(cell.array_bytes)),
                kernel.name.into(),
                Cell::new(rate(kernel.best_gb_s), Tone::Strong),
                rate(kernel.mean_gb_s).into(),
                rate(kernel.worst_gb_s).into(),
                ms(kernel.min_s),
                ms(kernel.mean_s),
                ms(kernel.max_s),
            ]);
        }
    }
    if let Some(cell) = cells.last() {
        table.note(format!(
            "Bytes as STREAM counts them (copy and scale two arrays, add and triad three), GB = \
             10^9 B; {} stores; {} rounds; results verified.",
            cell.stores, cell.rounds
        ));
        let nodes: Vec<String> = cell.nodes.iter().map(u32::to_string).collect();
        let nodes = match nodes.is_empty() {
            true => "NUMA node not known".to_owned(),
            false => format!("NUMA node {}", nodes.join(", ")),
        };
        table.note(format!(
            "CPUs {:?}; memory placed by {} on {nodes}; {}.",
            cell.cpus,
            cell.placement,
            huge_words(cell.huge_bytes, cell.array_bytes * 3)
        ));
    }
    table
}
