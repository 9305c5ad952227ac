//! The tables of a study's report.

use std::collections::{BTreeMap, BTreeSet};

use analyse::answer::{
    Answer, AnswerKind, FactorEffects, FrontCell, MetricInfo, RunWithSettings, gather,
    metric_words, provenance,
};
use analyse::effect::{EffectScale, EffectSize};
use analyse::{CellRuns, Description, Metric, Verdict, outliers};
use model::design::Question;
use model::{Origin, ReadingValue as ReadingAnswer, Scope};

use super::StudyReport;
use super::plot::{Plot, PlotValue};
use super::units::{converted, written};
use crate::format;
use crate::overview::{REPEATS, is_many};
use crate::table::{ALWAYS, Align, Cell, ColumnPriority, Table, Tone};
use crate::tables::origin_name;

/// Every comparison of every question: its size, interval and verdict. None without one.
pub fn effects(study: &StudyReport) -> Option<Table> {
    let mut table = Table::new("Effects")
        .column("metric", Align::Wrap, ALWAYS)
        .column("what", Align::Wrap, ALWAYS)
        .column("effect", Align::Right, ALWAYS)
        .column("95 %", Align::Left, ALWAYS)
        .column("verdict", Align::Left, ALWAYS)
        .column("p", Align::Right, 40)
        .column("p, Holm", Align::Right, 50)
        .column("in sd", Align::Decimal, 20)
        .column("explains", Align::Right, 30)
        .column("from … to", Align::Left, 25)
        .column("runs", Align::Right, 15);
    let mut methods: BTreeSet<String> = BTreeSet::new();
    for answer in &study.answers {
        let AnswerKind::Effects { of, interactions, .. } = &answer.kind else { continue };
        for effects in of {
            effect_rows(&mut table, effects, &mut methods);
        }
        let unit = of.first().map_or("", |effects| effects.metric.unit.as_str());
        for interaction in interactions {
            let [first, second] = &interaction.of.factors;
            let metric = of.first().map_or("", |effects| effects.metric.name.as_str());
            let what = format!(
                "{first} {} → {} when {second} {} → {}",
                interaction.of.first.0,
                interaction.of.first.1,
                interaction.of.second.0,
                interaction.of.second.1
            );
            let share = of.first().and_then(|effects| share(effects, &[first, second]));
            let size = &interaction.of.size;
            methods.extend(size.interval.as_ref().ok().map(method));
            let runs = interaction.of.n.to_string();
            let mut cells = vec![metric.into(), what.into()];
            cells.extend(sized(size, unit, (interaction.corrected, interaction.verdict)));
            cells.extend([share_cell(share), "".into(), runs.into()]);
            table.row(cells);
        }
    }
    if table.rows.is_empty() {
        return None;
    }
    for method in methods {
        table.note(method);
    }
    table.note(
        "effect: the level against the first, averaged over the combinations of the other factors; \
         from … to: the same in single combinations; of an interaction, the factor by which it \
         changes the effect",
    );
    table.note(
        "p, Holm: corrected for all comparisons of the study; the verdict uses it. in sd: the \
         effect in standard deviations of repeats. explains: share of all that varies",
    );
    Some(table.without_empty_columns())
}

fn effect_rows(table: &mut Table, effects: &FactorEffects, methods: &mut BTreeSet<String>) {
    let unit = effects.metric.unit.as_str();
    for (nth, level) in effects.levels.iter().enumerate() {
        let size = &level.of.size;
        methods.extend(size.interval.as_ref().ok().map(method));
        let simple: Vec<f64> = level.of.simple.iter().map(|one| one.size.value).collect();
        let range = match simple.len() {
            0 | 1 => String::new(),
            _ => {
                let least = simple.iter().copied().fold(f64::INFINITY, f64::min);
                let most = simple.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                format!("{} … {}", size_text(size, least, unit), size_text(size, most, unit))
            }
        };
        // The share is the factor's, not the level's.
        let share = if nth == 0 { share(effects, &[&effects.factor]) } else { None };
        let mut cells = vec![
            effects.metric.name.clone().into(),
            format!("{} {} → {}", effects.factor, level.of.from, level.of.to).into(),
        ];
        cells.extend(sized(size, unit, (level.corrected, level.verdict)));
        cells.extend([
            share_cell(share),
            range.into(),
            format!("{}:{}", level.of.n_from, level.of.n_to).into(),
        ]);
        table.row(cells);
    }
}

/// Size, interval, verdict, both p and the size in standard deviations.
fn sized(size: &EffectSize, unit: &str, (corrected, called): (Option<f64>, Verdict)) -> [Cell; 6] {
    let interval = match &size.interval {
        Ok(i) => {
            format!("{} … {}", size_text(size, i.low, unit), size_text(size, i.high, unit))
        }
        Err(_) => format::NONE.to_owned(),
    };
    let p = |p: Option<f64>| p.map_or(format::NONE.to_owned(), probability);
    [
        Cell::new(size_text(size, size.value, unit), Tone::Strong),
        interval.into(),
        verdict(called),
        p(size.p).into(),
        p(corrected).into(),
        size.standardised.map_or("".into(), |sds| format::significant(sds, 2).into()),
    ]
}

/// How an interval was obtained, without the numbers that differ from row to row.
fn method(interval: &analyse::Interval) -> String {
    let text = interval.method.to_string();
    let freedom = |part: &&str| !part.ends_with("degrees of freedom");
    let sentences = text
        .split("; ")
        .map(|sentence| sentence.split(", ").filter(freedom).collect::<Vec<_>>().join(", "));
    let ranks = |c: char| c.is_ascii_digit();
    let text = sentences.collect::<Vec<_>>().join("; ");
    match text.strip_prefix("order statistics ") {
        Some(rest) if rest.starts_with(ranks) => "order statistics around the median".to_owned(),
        _ => text,
    }
}

/// A size with as many decimals as the width of its interval allows.
pub(super) fn size_text(size: &EffectSize, value: f64, unit: &str) -> String {
    match size.scale {
        EffectScale::Ratio => {
            let width = size.interval.as_ref().map_or(1.0, |i| i.high - i.low);
            let decimals = match width {
                w if w < 0.002 => 4,
                w if w < 0.05 => 3,
                _ => 2,
            };
            match value {
                v if v < 10.0 => format!("{v:.decimals$}×"),
                v => format::ratio(v),
            }
        }
        EffectScale::Difference => {
            let text = written(value, unit);
            // What is below all that is worth reading has its own sign.
            let sign = if value > 0.0 && !text.starts_with('<') { "+" } else { "" };
            format!("{sign}{text}")
        }
    }
}

fn probability(p: f64) -> String {
    if p < 0.001 { "<0.001".to_owned() } else { format!("{p:.3}") }
}

fn share(effects: &FactorEffects, factors: &[&String]) -> Option<f64> {
    let same = |known: &[String]| {
        known.len() == factors.len() && factors.iter().all(|f| known.contains(f))
    };
    effects.shares.iter().find(|share| same(&share.factors)).map(|share| share.share)
}

fn share_cell(share: Option<f64>) -> Cell {
    share.map_or("".into(), |share| format!("{:.0} %", share * 100.0).into())
}

fn verdict(verdict: Verdict) -> Cell {
    let tone = match verdict {
        Verdict::Better => Tone::Good,
        Verdict::Worse => Tone::Bad,
        Verdict::Different => Tone::Strong,
        Verdict::NoDifference => Tone::Muted,
        Verdict::NotEnoughData | Verdict::OtherWork => Tone::Warning,
    };
    let text = match verdict {
        Verdict::NoDifference => "no difference shown".to_owned(),
        other => other.to_string(),
    };
    Cell::new(text, tone)
}

/// One table for each question after a Pareto front.
pub fn fronts(study: &StudyReport) -> Vec<Table> {
    study.answers.iter().filter_map(|answer| front(study, answer)).collect()
}

fn front(study: &StudyReport, answer: &Answer) -> Option<Table> {
    let AnswerKind::Front { metrics, fronts } = &answer.kind else { return None };
    let words: Vec<String> = metrics.iter().map(|metric| metric_words(metric)).collect();
    let mut table = Table::new(format!("Front of {}", words.join(", ")))
        .column("at", Align::Wrap, ALWAYS)
        .column("cell", Align::Wrap, ALWAYS);
    for metric in words {
        table = table.column(metric, Align::Right, ALWAYS);
    }
    table = table
        .column("runs", Align::Right, 20)
        .column("on the front", Align::Left, ALWAYS)
        .column("in resamples", Align::Right, 60)
        .column("beaten by", Align::Wrap, 40);
    let units: Vec<String> = metrics.iter().map(|metric| unit_of(study, metric)).collect();
    let cells = fronts.iter().flat_map(|front| front.cells.iter().map(move |cell| (front, cell)));
    for (front, cell) in cells {
        let words = |cell: &FrontCell| match cell.words.as_str() {
            "" => cell.title.clone(),
            words => words.to_owned(),
        };
        let mut row: Vec<Cell> = vec![front.given.clone().into(), words(cell).into()];
        row.extend(
            cell.standing.medians.iter().zip(&units).map(|(v, unit)| written(*v, unit).into()),
        );
        row.push(cell.runs.to_string().into());
        row.push(match cell.standing.on_front() {
            true => Cell::new("yes", Tone::Good),
            false => Cell::new("no", Tone::Muted),
        });
        row.push(cell.standing.share.map_or("".into(), |s| format!("{:.0} %", s * 100.0).into()));
        row.push(cell.beaten_by.map_or_else(String::new, |by| words(&front.cells[by])).into());
        table.row(row);
    }
    let draws = if study.runs.len() > 20_000 { "100 or more" } else { "1,000" };
    table.note(format!(
        "medians of the valid runs; in resamples: the share of {draws} draws of the runs, with \
         replacement, in which the cell is on the front"
    ));
    Some(table.without_empty_columns())
}

/// One table for each question after the best choice.
pub fn best_choices(study: &StudyReport) -> Vec<Table> {
    study.answers.iter().filter_map(best_choice).collect()
}

fn best_choice(answer: &Answer) -> Option<Table> {
    let AnswerKind::Best { metric, choices } = &answer.kind else { return None };
    let mut table = Table::new(format!("The best in {}", metric_words(&metric.name)))
        .column("at", Align::Wrap, ALWAYS)
        .column("best", Align::Wrap, ALWAYS)
        .column(format!("median{}", of_unit(&metric.unit)), Align::Decimal, ALWAYS)
        .column("95 %", Align::Left, 50)
        .column("next", Align::Wrap, 40)
        .column("best / next", Align::Right, 45)
        .column("95 % of it", Align::Left, 30)
        .column("p, Holm", Align::Right, 35)
        .column("choices", Align::Right, 20)
        .column("runs", Align::Right, 15);
    for choice in choices {
        let value = &choice.winner.value;
        let interval = match value.interval() {
            Ok(i) => format!("{} … {}", written(i.low, ""), written(i.high, "")),
            Err(_) => format::NONE.to_owned(),
        };
        let mut row: Vec<Cell> = vec![
            choice.given.clone().into(),
            Cell::new(choice.winner.words.clone(), Tone::Strong),
            written(value.median, "").into(),
            interval.into(),
        ];
        row.extend(match &choice.next {
            None => ["", "", "", ""].map(Cell::from),
            Some((next, size)) => {
                let of = &size.of.size;
                let ends = of.interval.as_ref().map_or(format::NONE.to_owned(), |i| {
                    let end = |value| size_text(of, value, &metric.unit);
                    format!("{} … {}", end(i.low), end(i.high))
                });
                [
                    next.words.clone().into(),
                    size_text(of, of.value, &metric.unit).into(),
                    ends.into(),
                    size.corrected.map_or(format::NONE.to_owned(), probability).into(),
                ]
            }
        });
        row.extend([choice.choices.to_string().into(), value.n.to_string().into()]);
        table.row(row);
    }
    table.note(
        "the best median of the valid runs at each level of what is given; next: the second best, \
         with which it is compared",
    );
    Some(table.without_empty_columns())
}

fn of_unit(unit: &str) -> String {
    if unit.is_empty() { String::new() } else { format!(", {unit}") }
}

fn unit_of(study: &StudyReport, metric: &str) -> String {
    let Ok(named) = analyse::Metric::parse(metric) else { return String::new() };
    let units = study
        .runs
        .iter()
        .find_map(|(_, run)| named.value(run).ok().and_then(|_| named.unit(Some(run))));
    units.unwrap_or_default().to_owned()
}

/// The numbers of a figure.
pub(super) fn plotted(plotted: &Plot) -> Table {
    let mut table = Table::new("");
    let panels = plotted.panels.iter().any(|name| !name.is_empty());
    let series = plotted.series.iter().any(|name| !name.is_empty());
    if panels {
        table = table.column("panel", Align::Left, ALWAYS);
    }
    table = table.column(&plotted.x, Align::Left, ALWAYS);
    if series {
        table = table.column("series", Align::Left, ALWAYS);
    }
    table = described(table, &plotted.y);
    for point in &plotted.points {
        let mut row: Vec<Cell> = Vec::new();
        if panels {
            row.push(plotted.panels[point.panel].clone().into());
        }
        row.push(plotted.xs[point.x].clone().into());
        if series {
            row.push(plotted.series[point.series].clone().into());
        }
        match &point.value {
            PlotValue::Measured { of, values, outliers } => {
                row.extend(description(of, values, outliers, &plotted.unit));
            }
            PlotValue::Published { y, read, .. } => {
                row.extend(["".into(), written(*y, &plotted.unit).into()]);
                row.extend(["", "", "", ""].map(Cell::from));
                let read = if read.is_empty() { String::new() } else { format!(", {read}") };
                row.push(Cell::new(format!("published{read}"), Tone::Warning));
            }
        }
        table.row(row);
    }
    if plotted.origin != Origin::Measured {
        table.note(format!("{}, not measured", origin_name(plotted.origin)));
    }
    table.without_empty_columns()
}

/// The columns that [`description`] fills.
fn described(table: Table, metric: &str) -> Table {
    let columns: [(&str, Align, ColumnPriority); 6] = [
        (metric, Align::Right, ALWAYS),
        ("95 % interval", Align::Left, ALWAYS),
        ("mean", Align::Right, 30),
        ("sd", Align::Right, 20),
        ("cv", Align::Right, 40),
        ("apart", Align::Wrap, 50),
    ];
    let table = table.column("n", Align::Right, ALWAYS);
    columns.into_iter().fold(table, |table, (head, align, keep)| table.column(head, align, keep))
}

fn description(of: &Description, values: &[f64], outliers: &[usize], unit: &str) -> [Cell; 7] {
    let interval = match of.interval() {
        Ok(i) => format!("{} … {}", written(i.low, unit), written(i.high, unit)),
        Err(_) => format::NONE.to_owned(),
    };
    let listed = outliers.iter().take(REPEATS);
    let mut apart: Vec<String> = listed.map(|at| written(values[*at], unit)).collect();
    if outliers.len() > REPEATS {
        apart.push(format!("and {} more", outliers.len() - REPEATS));
    }
    [
        of.n.to_string().into(),
        Cell::new(written(of.median, unit), Tone::Strong),
        interval.into(),
        written(of.mean, unit).into(),
        of.sd.map_or("".into(), |sd| written(sd, unit).into()),
        of.cv.map_or("".into(), |cv| format::percent(cv).into()),
        Cell::new(apart.join(", "), Tone::Warning),
    ]
}

/// A metric that a study asks about or draws, in every cell.
pub struct MetricCells {
    pub metric: MetricInfo,
    /// The title of each cell, and its runs.
    pub cells: Vec<(String, CellRuns)>,
}

/// Every metric that the study asks about or draws and that some valid run has.
pub fn measured(study: &StudyReport) -> Vec<MetricCells> {
    let questions = study.design.questions.iter();
    let of_questions = questions.flat_map(Question::metrics);
    let drawn = study.design.figures.iter().map(|figure| &figure.y);
    let mut metrics: Vec<&String> = Vec::new();
    for metric in of_questions.chain(drawn) {
        if !metrics.contains(&metric) {
            metrics.push(metric);
        }
    }
    metrics.into_iter().flat_map(|metric| by_provenance(study, metric)).collect()
}

/// A metric in its cells, separately for each boundary and origin, which are not compared.
fn by_provenance(study: &StudyReport, metric: &str) -> Vec<MetricCells> {
    let Ok(named) = Metric::parse(metric) else { return Vec::new() };
    type MetricTableKind = Option<(Scope, Origin)>;
    let mut kinds: Vec<(MetricTableKind, Vec<&RunWithSettings<'_>>)> = Vec::new();
    for run in study.runs_with_settings.iter().filter(|run| named.value(run.run).is_ok()) {
        let kind = provenance(&named, run.run);
        match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, runs)) => runs.push(run),
            None => kinds.push((kind, vec![run])),
        }
    }
    let of = |runs: &[&RunWithSettings<'_>]| {
        let mut gathered = gather(&study.design, runs, &[metric], &["workload"]).ok()?;
        let runs = gathered.cells.iter().map(|cell| cell.runs[0].clone());
        let cells = gathered.titles().into_iter().zip(runs).collect();
        Some(MetricCells { metric: gathered.metrics.swap_remove(0), cells })
    };
    kinds.iter().filter_map(|(_, runs)| of(runs)).collect()
}

/// Every cell of every metric that the study asks about or draws: n, median, interval, mean,
/// standard deviation, coefficient of variation and outliers. One table a metric.
pub fn cells<'a>(study: &'a StudyReport) -> &'a [Table] {
    study.cells.get_or_init(|| measured(study).iter().map(cells_of).collect())
}

fn cells_of(MetricCells { metric, cells }: &MetricCells) -> Table {
    let unit = &metric.unit;
    let table = Table::new(format!("Cells: {}", metric.name)).column("cell", Align::Wrap, ALWAYS);
    let mut table = described(table, "median");
    let mut methods: BTreeSet<String> = BTreeSet::new();
    for (title, runs) in cells {
        let Ok(of) = runs.describe_by_median() else { continue };
        methods.extend(of.interval().ok().map(|interval| method(&interval)));
        let odd = outliers(&runs.values);
        let mut row: Vec<Cell> = vec![title.clone().into()];
        row.extend(description(&of, &runs.values, &odd, unit));
        table.row(row);
    }
    if let Some((scope, origin)) = metric.provenance {
        table.note(format!("{}, {}", scope, origin_name(origin)));
    }
    for method in methods {
        table.note(format!("95 %: {method}"));
    }
    table.note(
        "95 %: of the median, or of a single run from within it; \
         outliers still count",
    );
    table.without_empty_columns()
}

/// Every published number with the measured one at the same levels, and published findings. Empty
/// if nothing was published.
pub fn published(study: &StudyReport) -> Vec<Table> {
    let Some(published) = &study.design.published else { return Vec::new() };
    let mut tables = Vec::new();
    let mut numbers = Table::new("Published beside measured")
        .column("at", Align::Wrap, ALWAYS)
        .column("metric", Align::Wrap, ALWAYS)
        .column("published", Align::Right, ALWAYS)
        .column("measured", Align::Right, ALWAYS)
        .column("measured / published", Align::Right, 50)
        .column("where", Align::Wrap, 30);
    let figures = study.design.figures.iter().zip(study.plotted());
    let plots: Vec<(&String, &Plot)> = figures
        .filter_map(|(spec, plotted)| Some((spec.published.as_ref()?, plotted.as_ref().ok()?)))
        .collect();
    for (nth, series) in published.series.iter().enumerate() {
        let at: Vec<String> =
            series.at.iter().map(|(name, level)| format!("{name}={level}")).collect();
        for (at_point, point) in series.points.iter().enumerate() {
            let mut place = at.clone();
            place.push(point.x.0.clone());
            let measured = plots
                .iter()
                .filter(|(id, _)| **id == series.id)
                .find_map(|(_, plotted)| measured_at(plotted, (nth, at_point)));
            let own = match &measured {
                Some((value, unit)) => written(*value, unit),
                None => format::NONE.to_owned(),
            };
            let ratio = measured.and_then(|(value, unit)| {
                let other = converted(point.y, &series.unit, unit)?;
                (other > 0.0).then(|| format::ratio(value / other))
            });
            numbers.row(vec![
                place.join(", ").into(),
                series.metric.clone().into(),
                Cell::new(written(point.y, &series.unit), Tone::Warning),
                own.into(),
                ratio.unwrap_or_default().into(),
                series.read.clone().into(),
            ]);
        }
    }
    if !numbers.rows.is_empty() {
        numbers.note(format!("published, not measured here: {}", published.source));
        numbers.note(
            "another machine, store version and scale: compare the direction and the size of \
             effects, not single numbers",
        );
        tables.push(numbers.without_empty_columns());
    }
    tables.extend(super::claims::table(study));
    tables
}

/// The measured median and its unit at the levels of a published value.
fn measured_at(plotted: &Plot, which: (usize, usize)) -> Option<(f64, &str)> {
    let is = |value: &PlotValue| matches!(value, PlotValue::Published { nth, .. } if *nth == which);
    let of = plotted.points.iter().find(|point| is(&point.value))?;
    let same = |point: &&super::PlotPoint| {
        (point.panel, point.series, point.x) == (of.panel, of.series, of.x)
    };
    plotted.points.iter().filter(same).find_map(|point| match &point.value {
        PlotValue::Measured { of, .. } => Some((of.median, plotted.unit.as_str())),
        PlotValue::Published { .. } => None,
    })
}

/// What was not run or not measured, with the reason. None if nothing is missing.
pub fn gaps(study: &StudyReport) -> Option<Table> {
    let mut table = Table::new("What is missing here")
        .column("what", Align::Wrap, ALWAYS)
        .column("why", Align::Wrap, ALWAYS)
        .column("to do", Align::Wrap, 40);
    for skipped in &study.design.skipped {
        let levels: Vec<String> =
            skipped.levels.iter().map(|(name, level)| format!("{name}={level}")).collect();
        let what = format!("not run: {}", levels.join(", "));
        table.row(vec![what.into(), skipped.why.clone().into(), "".into()]);
    }
    for execution in &study.executions {
        for note in &execution.notes {
            table.row(vec!["deviation from plan".into(), note.clone().into(), "".into()]);
        }
        let made: BTreeSet<u32> = study
            .runs
            .iter()
            .filter(|(of, _)| of.id == execution.id)
            .map(|(_, r)| r.ordinal)
            .collect();
        let left = execution.plan.iter().filter(|run| !made.contains(&run.ordinal)).count();
        if left > 0 {
            let what = format!("{left} of {} planned runs", execution.plan.len());
            let design = &study.design;
            let may_not_need = design.adaptive.is_some() || design.spare_repeats > 0;
            let (why, remedy) = match (&execution.finished_at, may_not_need) {
                (None, _) => ("the study was not finished", "resume it with `run --resume`"),
                (Some(_), false) => ("they were dropped", "resume it with `run --resume`"),
                (Some(_), true) => ("they were dropped, or not needed any more", ""),
            };
            table.row(vec![what.into(), why.into(), remedy.into()]);
        }
    }
    for (spec, plotted) in study.design.figures.iter().zip(study.plotted()) {
        if let Err(why) = plotted {
            table.row(vec![
                format!("figure: {}", spec.title).into(),
                why.clone().into(),
                "".into(),
            ]);
        }
    }
    for ((signals, reason, remedy), runs) in unavailable(study) {
        let what = match is_many(&study.runs) {
            true => format!("{signals} (in the first run of each label)"),
            false => format!("{signals} ({runs} runs)"),
        };
        table.row(vec![what.into(), reason.into(), remedy.into()]);
    }
    (!table.rows.is_empty()).then(|| table.without_empty_columns())
}

type MissingValue = (String, String, String);

/// Signals that no run could read, those of one reason together, with the number of runs.
fn unavailable(study: &StudyReport) -> Vec<(MissingValue, usize)> {
    let mut by_signal: BTreeMap<&str, (usize, bool, &str, &str)> = BTreeMap::new();
    for reading in study.runs.iter().flat_map(|(_, run)| &run.readings) {
        let entry = by_signal.entry(&reading.signal).or_insert((0, true, "", ""));
        match &reading.answer {
            ReadingAnswer::Value(_) => entry.1 = false,
            ReadingAnswer::Unavailable { reason, remedy } => {
                entry.0 += 1;
                (entry.2, entry.3) = (reason, remedy.as_deref().unwrap_or_default());
            }
        }
    }
    let mut by_reason: Vec<((&str, &str), Vec<&str>, usize)> = Vec::new();
    for (signal, (runs, never, reason, remedy)) in by_signal {
        if !never {
            continue;
        }
        match by_reason.iter_mut().find(|(known, ..)| *known == (reason, remedy)) {
            Some((_, signals, most)) => {
                signals.push(signal);
                *most = (*most).max(runs);
            }
            None => by_reason.push(((reason, remedy), vec![signal], runs)),
        }
    }
    let entry_of = |((reason, remedy), signals, runs): ((&str, &str), Vec<&str>, usize)| {
        ((signals.join(", "), reason.to_owned(), remedy.to_owned()), runs)
    };
    by_reason.into_iter().map(entry_of).collect()
}
