//! Terminal and Markdown, whole, against snapshots; and what no width may break.

#[allow(dead_code)]
mod sample;

use model::{Phase, RunSettings, Unit};
use report::{CheckRow, CheckState, DifferenceRow, PlanRow, RowVerdict, Style, markdown, terminal};
use unicode_width::UnicodeWidthStr;

fn style(width: usize) -> Style {
    Style { color: false, width, unicode: true }
}

fn checks() -> Vec<CheckRow> {
    let row = |name: &str, group: &str, state, result: &str| CheckRow {
        name: name.to_owned(),
        group: group.to_owned(),
        state,
        found: result.to_owned(),
        why: None,
        remedy: None,
    };
    vec![
        row("cpu.user", "signals", CheckState::Ok, "getrusage"),
        CheckRow {
            why: Some("no intel-rapl zone: a virtual machine".to_owned()),
            remedy: Some("run on the physical machine, as root".to_owned()),
            ..row("energy.package", "signals", CheckState::Unavailable, "")
        },
        row("rocksdb", "stores", CheckState::Ok, "RocksDB 11.8.1"),
        CheckRow {
            why: Some("2.1 % of the time was stolen in the last minute".to_owned()),
            ..row("steal", "signals", CheckState::Note, "/proc/stat")
        },
    ]
}

fn differences() -> Vec<DifferenceRow> {
    let row = |what: &str, unit, a: f64, b: f64, span: f64, verdict| DifferenceRow {
        what: what.to_owned(),
        unit,
        a: Some(a),
        b: Some(b),
        ratio: Some(b / a),
        low: Some(b / a - span),
        high: Some(b / a + span),
        verdict,
        note: None,
        n_a: 5,
        n_b: 5,
    };
    vec![
        row(
            "ycsb-a throughput",
            Unit::OpsPerSecond,
            172_400.0,
            203_300.0,
            0.04,
            RowVerdict::Better,
        ),
        row("ycsb-a read p99", Unit::Nanoseconds, 22_500.0, 37_600.0, 0.2, RowVerdict::Worse),
        row(
            "ycsb-c throughput",
            Unit::OpsPerSecond,
            301_200.0,
            299_000.0,
            0.05,
            RowVerdict::NoDifference,
        ),
        DifferenceRow {
            a: None,
            ratio: None,
            low: None,
            high: None,
            n_a: 0,
            note: Some("A has no valid run".to_owned()),
            ..row(
                "ycsb-e scan p99",
                Unit::Nanoseconds,
                1.0,
                331_000.0,
                0.0,
                RowVerdict::NotEnoughData,
            )
        },
    ]
}

fn plan() -> Vec<PlanRow> {
    let settings = |workload: &str| -> RunSettings {
        [("store", "rocksdb:/data/db"), ("threads", "2"), ("workload", workload)]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into()
    };
    let row = |ordinal, workload: &str, phase, seconds| PlanRow {
        ordinal,
        label: format!("rocksdb {workload}"),
        phase,
        repeat: 1,
        settings: settings(workload),
        seconds,
        guessed: false,
        bytes: Some(1_342_177_280),
    };
    vec![
        row(1, "ycsb-load", Phase::Load, None),
        row(2, "ycsb-a", Phase::Measure, Some(15.0)),
        row(3, "ycsb-b", Phase::Measure, Some(75.0)),
    ]
}

#[test]
fn runs_in_a_terminal() {
    let study = sample::study();
    let runs = sample::pairs(&study);
    insta::assert_snapshot!("terminal_80", terminal::runs(&runs, &style(80)));
    insta::assert_snapshot!("terminal_160", terminal::runs(&runs, &style(160)));
    let ascii = Style { color: false, width: 100, unicode: false };
    insta::assert_snapshot!("terminal_ascii", terminal::runs(&runs, &ascii));
    // One valid closed run, as `bench` prints it: no column that only says "nothing".
    insta::assert_snapshot!("terminal_bench", terminal::runs(&runs[2..3], &style(80)));
}

#[test]
fn a_sweep_of_rates() {
    let study = sample::sweep();
    let runs = sample::pairs(&study);
    insta::assert_snapshot!("sweep_terminal_80", terminal::runs(&runs, &style(80)));
    insta::assert_snapshot!("sweep_terminal_160", terminal::runs(&runs, &style(160)));
    insta::assert_snapshot!("sweep_markdown", markdown::runs(&runs));
    // Two rates are no curve: both sides of each run, as `bench` shows them.
    insta::assert_snapshot!("two_sides", terminal::runs(&runs[..2], &style(80)));
    let breach = "the server's p99";
    for text in [terminal::runs(&runs, &style(400)), markdown::runs(&runs)] {
        assert_eq!(text.matches(breach).count(), 1, "{text}");
        assert!(text.contains("is above the client's p99") && text.contains("other clients"));
    }
}

#[test]
fn other_durability_is_noted() {
    let mut study = sample::study();
    let text = |study: &[_]| terminal::runs(&sample::pairs(study), &style(400));
    for (_, runs) in &mut study {
        for run in runs {
            let is_lmdb = run.settings["store"].starts_with("lmdb");
            let survives = if is_lmdb { "power loss" } else { "process kill" };
            run.settings.insert(model::Run::SURVIVES.to_owned(), survives.to_owned());
        }
    }
    let note = "acknowledged writes survive a power loss (lmdb), a process kill (rocksdb)";
    assert!(text(&study).contains(note), "{}", text(&study));
    assert!(report::html::page(&study).contains(note));
    assert!(!text(&study[..1]).contains("acknowledged writes survive"));
}

#[test]
fn several_servers() {
    let study = sample::servers();
    let runs = sample::pairs(&study);
    let [narrow, wide] = [60, 160].map(|width| terminal::runs(&runs, &style(width)));
    insta::assert_snapshot!("servers_60", narrow);
    insta::assert_snapshot!("servers_160", wide);
    for text in [narrow, wide, markdown::runs(&runs), report::html::page(&study)] {
        for needle in ["Servers, latencies in µs", "10.20.30.40:7000", "66.7", "3,704", "255"] {
            assert!(text.contains(needle), "{needle}: {text}");
        }
    }
}

#[test]
fn everything_else_in_a_terminal() {
    insta::assert_snapshot!("terminal_doctor", terminal::doctor(&checks(), &style(80)));
    let text = terminal::comparison("a.kvm", "b.kvm", &differences(), &style(80));
    insta::assert_snapshot!("terminal_comparison", text);
    insta::assert_snapshot!("terminal_plan", terminal::plan(&plan(), &style(80)));
}

#[test]
fn markdown_for_a_pull_request() {
    let study = sample::study();
    insta::assert_snapshot!("markdown_runs", markdown::runs(&sample::pairs(&study)));
    insta::assert_snapshot!("markdown_doctor", markdown::doctor(&checks()));
    insta::assert_snapshot!("markdown_plan", markdown::plan(&plan()));
    let text = markdown::comparison("a.kvm", "b.kvm", &differences());
    insta::assert_snapshot!("markdown_comparison", text);
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let study = sample::study();
    let runs = sample::pairs(&study);
    let sweep = sample::sweep();
    let sweep = sample::pairs(&sweep);
    let servers = sample::servers();
    let servers = sample::pairs(&servers);
    for width in [60, 72, 80, 100, 132, 200] {
        let style = style(width);
        let all = [
            terminal::runs(&runs, &style),
            terminal::runs(&sweep, &style),
            terminal::runs(&servers, &style),
            terminal::doctor(&checks(), &style),
            terminal::comparison("a", "b", &differences(), &style),
            terminal::plan(&plan(), &style),
        ];
        for line in all.iter().flat_map(|text| text.lines()) {
            assert!(line.width() <= width, "{width}: {line}");
            assert_eq!(line, line.trim_end(), "a line ends in blanks");
        }
    }
}

#[test]
fn an_interval_is_never_left_out_and_nothing_is_cut_for_it() {
    let mut rows = differences();
    for row in &mut rows {
        row.what = format!("{}, threads=2 latency.update.p99_9", &row.what[..6]);
        row.note = row.low.map(|_| "between runs: Welch's t".to_owned());
    }
    rows[3].note = Some("A has no valid run".to_owned());
    for width in [60, 80, 100] {
        let text = terminal::comparison("a.kvm", "b.kvm", &rows, &style(width));
        for needle in ["95 %", "1.14…1.22", "0.943…1.04", "no difference", "threads=2", "p99_9"]
        {
            assert!(text.contains(needle), "{width}, {needle}: {text}");
        }
        assert_eq!(text.matches("Welch's t").count(), 1, "{text}");
    }
    let narrow = terminal::comparison("a.kvm", "b.kvm", &rows, &style(60));
    insta::assert_snapshot!("terminal_comparison_60", narrow);
}

#[test]
fn wrong_answers_are_reported_once() {
    let mut study = sample::study();
    let run = &mut study[0].1[11];
    run.invalid_because
        .push("3 answers failed (store); the first: Resource temporarily unavailable".to_owned());
    for text in [
        terminal::runs(&sample::pairs(&study), &style(500)),
        markdown::runs(&sample::pairs(&study)),
    ] {
        assert_eq!(text.matches("Resource temporarily unavailable").count(), 1);
    }
}

#[test]
fn meters_that_contradict_each_other_are_a_finding() {
    let mut study = sample::study();
    let breach = format!("{}energy.meter drew less", analyse::meter_checks::BREACH);
    study[0].1[0].warnings = vec!["a short window".to_owned(), breach.clone()];
    let notes = report::tables::notes(&sample::pairs(&study));
    let weight = |text: &str| notes.iter().find(|note| note.text == text).map(|note| note.weight);
    assert_eq!(weight(&breach), Some(report::tables::NoteWeight::Finding));
    assert_eq!(weight("a short window"), Some(report::tables::NoteWeight::Warning));
    let text = terminal::runs(&sample::pairs(&study), &style(500));
    assert!(text.contains(&breach), "{text}");
}

#[test]
fn colours_only_where_they_are_wanted() {
    let study = sample::study();
    let runs = sample::pairs(&study);
    let plain = terminal::runs(&runs, &style(100));
    assert!(!plain.contains('\u{1b}'));
    let ascii = Style { color: false, width: 100, unicode: false };
    assert!(terminal::runs(&runs, &ascii).is_ascii());
    let coloured = terminal::runs(&runs, &Style { color: true, ..style(100) });
    assert!(coloured.contains("\u{1b}[31mINVALID"));
    // The colours are all that differs.
    let mut bare = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        bare += before;
        rest = after.split_once('m').unwrap().1;
    }
    assert_eq!(bare + rest, plain);
}

#[test]
fn notes_name_the_flag_that_helps() {
    let study = sample::study();
    let runs = sample::pairs(&study);
    for text in [terminal::runs(&runs, &style(200)), markdown::runs(&runs)] {
        assert!(text.contains("✗ rocksdb ycsb-c #3"), "{text}");
        assert!(text.contains("--max-steal") && text.contains("lower --rate"), "{text}");
        assert!(text.contains("closed loop: latency is service time"), "{text}");
    }
}

#[test]
fn a_study_in_the_terminal_and_in_markdown() {
    let study = sample::factorial();
    let executions = study.iter().map(|(execution, _)| execution);
    let studies = report::study::studies(executions, &sample::pairs(&study));
    insta::assert_snapshot!("study_terminal", terminal::study(&studies[0], &style(100)));
    insta::assert_snapshot!("study_markdown", markdown::study(&studies[0], Some("figures")));
    for width in [40, 80, 200] {
        let text = terminal::study(&studies[0], &style(width));
        assert!(!text.contains("NaN") && !text.contains("inf "), "{text}");
    }
}

/// Cells of many factors are wrapped at 80 columns, not left out.
#[test]
fn a_plan_tells_its_cells_apart_on_a_narrow_terminal() {
    let row = |ordinal, block_cache: &str| PlanRow {
        ordinal,
        label: "rocksdb kreon-c".to_owned(),
        phase: model::Phase::Measure,
        repeat: 1,
        settings: [
            ("factor.experiment", "block-cache"),
            ("factor.block_cache", block_cache),
            ("factor.rocksdb_data", "100M per cpu"),
            ("factor.rocksdb_records", "100M per cpu"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into(),
        seconds: Some(300.0),
        guessed: false,
        bytes: Some(1 << 30),
    };
    let text = terminal::plan(&[row(1, "0"), row(2, "20MiB")], &Style::default());
    assert!(text.contains("block_cache=0") && text.contains("block_cache=20MiB"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}
