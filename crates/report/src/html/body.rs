//! The sections of the page.

use std::collections::BTreeSet;

use model::{Execution, Run};

use super::markup::Markup;
use super::sections::Runs;
use super::{ALL_RUNS, RATES, Section, WHY, figures, sections, singles, study, table, why};
use crate::cells::ReportCell;
use crate::charts::{self, CellSeries, ShownFigure};
use crate::curves::{self, RateCurve};
use crate::glance;
use crate::overview::{DRAWN, MAX_FIGURES, is_many};
use crate::run_names;
use crate::study::StudyReport;
use crate::table::Table;
use crate::tables;

/// Shown instead of a figure that would repeat the curves.
const SWEPT: &str = "Every run is a point of a curve: see \
    <a href=\"#rates-section\">latency against rate</a>.";
/// The method of a study's answers, and its limits.
const METHOD_OF_STUDIES: &str = "<div><dt>Effects</dt><dd>Cells that differ in one factor alone \
                                 are compared, and the differences averaged over the combinations \
                                 of the others: contrasts of 20 % trimmed means of logarithms \
                                 (plain means below 5 repeats), Welch's t without pooling the \
                                 cells' variances. So neither one disturbed repeat nor a setting \
                                 that varies more than another \
                                 decides.</dd></div><div><dt>Verdicts</dt><dd>A difference is \
                                 significant where p is below 0.05 after Holm's correction for all \
                                 comparisons of the study. “Not shown” is not “equal”: the \
                                 interval says how large a difference could \
                                 hide.</dd></div><div><dt>Outliers</dt><dd>Repeats with a modified \
                                 z-score above 3.5 are marked, and still \
                                 counted.</dd></div><div><dt>Limits</dt><dd>An effect is of these \
                                 levels, on this machine, with these versions. Averages over \
                                 combinations weigh each the same, however often it occurs in \
                                 practice.</dd></div>";

/// What the sections show.
pub(super) struct Body<'a> {
    executions: &'a [(Execution, Vec<Run>)],
    all: &'a Runs<'a>,
    /// Without simulations.
    runs: &'a Runs<'a>,
    /// The runs are too many for a row each.
    is_many: bool,
    series: CellSeries,
    /// The cells that are drawn, and those of them that are no points of curves.
    drawn: Vec<&'a ReportCell<'a>>,
    alone: Vec<&'a ReportCell<'a>>,
    /// Every run is a point of a curve.
    all_swept: bool,
    /// Cells that are not drawn.
    left_out: usize,
    studies: &'a [StudyReport<'a>],
    curves: &'a [RateCurve<'a>],
}

impl<'a> Body<'a> {
    /// `cells` are those of the measured `runs`.
    pub(super) fn new(
        executions: &'a [(Execution, Vec<Run>)],
        all: &'a Runs<'a>,
        runs: &'a Runs<'a>,
        cells: &'a [ReportCell<'a>],
        studies: &'a [StudyReport<'a>],
        curves: &'a [RateCurve<'a>],
    ) -> Body<'a> {
        // At a target rate throughput is that rate, and latency is a point of its curve.
        let swept = curves::run_ids(runs);
        let is_alone =
            |cell: &&ReportCell| !cell.runs.iter().any(|run| swept.contains(run.id.as_str()));
        let alone: Vec<&ReportCell> = cells.iter().filter(is_alone).take(DRAWN).collect();
        Body {
            executions,
            all,
            runs,
            is_many: is_many(runs),
            series: CellSeries::of(cells),
            drawn: cells.iter().take(DRAWN).collect(),
            all_swept: alone.is_empty() && !swept.is_empty(),
            alone,
            left_out: cells.len().saturating_sub(DRAWN),
            studies,
            curves,
        }
    }

    pub(super) fn write(&self, out: &mut Markup, sections: &[Section]) {
        for (id, title) in sections {
            out.raw("<section id=\"").raw(id).raw("\"><h2>").raw(title).raw("</h2>");
            self.section(out, id);
            out.raw("</section>");
        }
    }

    fn section(&self, out: &mut Markup, id: &'static str) {
        match id {
            "glance" => self.glance(out),
            "throughput-section" => self.throughput(out),
            RATES => self.rates(out),
            "latency-section" => self.latency(out),
            "percentiles" => self.percentiles(out),
            "series" => self.series(out),
            WHY => why::section(out, self.all),
            "cost" => self.cost(out),
            "validity" => self.validity(out),
            ALL_RUNS => singles::section(out, self.all),
            "method" => method(out, self.runs, self.studies),
            "machine" => sections::machines(out, self.executions),
            "provenance" => {
                sections::readings(out, self.all);
                sections::provenance(out, self.executions);
            }
            of_study => study::section(out, of_study, self.studies),
        }
    }

    fn glance(&self, out: &mut Markup) {
        for sentence in glance::sentences(self.all, self.studies) {
            out.raw("<p class=\"sentence\">").text(sentence).raw("</p>");
        }
        if !self.runs.is_empty() {
            table::table(out, &tables::answer(self.runs));
        }
        titled_tables(out, tables::mbwu(self.runs).iter().chain(&tables::simulations(self.all)));
    }

    fn throughput(&self, out: &mut Markup) {
        let shown = || charts::throughput(&self.alone, &self.series);
        self.unless_swept(out, shown, "No runs are finished yet.");
        let table = match self.is_many {
            true => tables::cells(self.runs),
            false => tables::throughput(self.runs),
        };
        table::table(out, &table);
        if !self.is_many {
            titled_tables(out, tables::misses(self.runs, &BTreeSet::new()).iter());
            titled_tables(out, tables::servers(self.runs, &BTreeSet::new()).iter());
        }
    }

    fn rates(&self, out: &mut Markup) {
        let tables = tables::rates(self.runs);
        for (shown, own) in charts::rates(self.curves).iter().zip(&tables) {
            figures::figure(out, shown);
            table::table(out, own);
        }
    }

    fn latency(&self, out: &mut Markup) {
        let shown = || charts::latency(&self.alone, &self.series);
        self.unless_swept(out, shown, "No latencies were recorded.");
        if self.is_many {
            return;
        }
        table::table(out, &tables::latency(self.runs, &BTreeSet::new()));
        if let Some(sides) = tables::sides(self.runs, &BTreeSet::new()) {
            out.raw("<details open><summary>").text(&sides.title).raw("</summary>");
            table::table(out, &sides);
            out.raw("</details>");
        }
    }

    fn percentiles(&self, out: &mut Markup) {
        out.raw("<p>The whole distribution, logarithmic to both sides: each step to the ");
        out.raw("right is ten times rarer. The last point is the slowest answer.</p>");
        let mut shown = charts::percentiles(&self.drawn, &self.series);
        let more = self.left_out + shown.len().saturating_sub(MAX_FIGURES);
        shown.truncate(MAX_FIGURES);
        grid(out, shown, "No latencies were recorded.");
        not_drawn(out, more);
    }

    fn series(&self, out: &mut Markup) {
        let names = run_names::names(self.runs);
        let detailed = sections::detailed(self.runs);
        let shown = self.runs.iter().zip(&names).enumerate();
        let shown = shown.filter(|(i, _)| detailed.contains(i));
        let shown = shown.filter_map(|(i, ((_, run), name))| charts::series(run, name, i));
        grid(out, shown.collect(), "No run has a time series.");
    }

    fn cost(&self, out: &mut Markup) {
        let (drawn, series) = (&self.drawn, &self.series);
        figure(out, charts::cpu(drawn, series), "CPU time is unavailable in every run.");
        let amplification = charts::amplification(drawn, series);
        figure(out, amplification, "I/O amplification is unavailable in every run.");
        if let Some(energy) = charts::energy(drawn, series) {
            figures::figure(out, &energy);
        }
        not_drawn(out, self.left_out);
        if !self.is_many {
            let of_runs = [tables::machine_side(self.runs), tables::simulated(self.runs)];
            titled_tables(out, of_runs.iter().flatten());
        }
        out.raw("<p class=\"note\">The readings of each run say why a number is missing.</p>");
    }

    fn validity(&self, out: &mut Markup) {
        sections::validity(out, self.all);
        titled_tables(out, tables::side_checks(self.runs).iter());
    }

    /// A figure of cells, unless it would repeat the curves.
    fn unless_swept(
        &self,
        out: &mut Markup,
        shown: impl Fn() -> Option<ShownFigure>,
        without: &'static str,
    ) {
        if self.all_swept {
            out.raw("<p class=\"note\">").raw(SWEPT).raw("</p>");
        } else {
            figure(out, shown(), without);
            not_drawn(out, self.left_out);
        }
    }
}

fn titled_tables<'t>(out: &mut Markup, tables: impl Iterator<Item = &'t Table>) {
    for own in tables {
        out.raw("<h3>").text(&own.title).raw("</h3>");
        table::table(out, own);
    }
}

/// Notes how many configurations are not drawn.
fn not_drawn(out: &mut Markup, cells: usize) {
    if cells > 0 {
        out.raw("<p class=\"note\">").text(cells).raw(" more configurations are not drawn: ");
        out.raw("their numbers are in the tables.</p>");
    }
}

fn figure(out: &mut Markup, shown: Option<ShownFigure>, without: &'static str) {
    match shown {
        Some(shown) => figures::figure(out, &shown),
        None => {
            out.raw("<p class=\"note\">").raw(without).raw("</p>");
        }
    }
}

fn grid(out: &mut Markup, shown: Vec<ShownFigure>, without: &'static str) {
    if shown.is_empty() {
        out.raw("<p class=\"note\">").raw(without).raw("</p>");
    } else {
        figures::grid(out, &shown);
    }
}

fn method(out: &mut Markup, runs: &Runs, studies: &[StudyReport]) {
    table::table(out, &tables::method(runs));
    let of_studies = if studies.is_empty() { "" } else { METHOD_OF_STUDIES };
    out.raw(
        "<dl class=\"terms\"><div><dt>Percentiles</dt><dd>From histograms that keep three \
         significant digits of every latency; repeats are added up, never \
         averaged.</dd></div><div><dt>Harness/op</dt><dd>The same workload against a store that \
         answers at once, in the same process. It is part of the throughput, and of CPU \
         time.</dd></div><div><dt>Harness busy</dt><dd>Share of the window in which the harness \
         was neither waiting for the store nor idle until the next request was \
         due.</dd></div><div><dt>Answers checked</dt><dd>Answers compared with what must have been \
         written; a wrong one marks the run.</dd></div><div><dt>Unavailable</dt><dd>Could not be \
         measured here, for the reason given; never zero.</dd></div>",
    );
    out.raw(of_studies).raw("</dl>");
}
