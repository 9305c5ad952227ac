//! What the targets have in common: the cases and the invariants of the store crate's own tests.

#[path = "../../crates/store/tests/wire/cases.rs"]
pub mod cases;
#[path = "../../crates/store/tests/wire/invariants.rs"]
pub mod invariants;
#[path = "../../crates/store/tests/wire/model_server.rs"]
mod model_server;

use store::wire::Protocol;

/// Reads what the bytes say as a protocol's answer, and checks what holds of any.
pub fn check(protocol: Protocol, data: &[u8]) {
    if let Some(case) = cases::case(protocol, data) {
        case.check();
    }
}

/// A folder for the files of one input; in memory, where `TMPDIR` is.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// A recorded machine makes nothing outside of its folder, and what it made can be read or not,
/// but from nowhere else.
pub fn recordings(data: &[u8]) {
    use host::{Root, recorded};

    const SECRET: &str = "what lies outside";
    let text = String::from_utf8_lossy(data);
    let home = folder();
    let (inside, outside) = (home.path().join("inside"), home.path().join("outside"));
    std::fs::create_dir(&inside).expect("a folder");
    std::fs::write(&outside, SECRET).expect("a file");
    if let Err(error) = recorded::unpack(&text, "machine.tree", &inside) {
        assert!(error.to_string().starts_with("machine.tree:"), "{error}");
    }
    let root = Root::at(&inside);
    for line in text.lines().take(16) {
        let path = line.split([' ', ':']).next().unwrap_or_default();
        if path.starts_with('/') {
            let read = root.text(path);
            assert!(read.as_deref() != Ok(SECRET), "{path}");
            let _ = (root.list(path), root.link(path), root.bytes_at::<4>(path, 0));
        }
    }
    assert_eq!(std::fs::read_to_string(&outside).expect("still there"), SECRET);
    let names = std::fs::read_dir(home.path()).expect("a folder").count();
    assert_eq!(names, 2, "nothing new lies beside");
}

/// A journal of knobs, whatever is in it, leaves knobs that can be restored and turned again, and
/// writes nothing but places of knobs.
pub fn knob_journal(data: &[u8]) {
    use host::Root;
    use host::knob::Journal;

    const BOOT: &str = "proc/sys/kernel/random/boot_id";
    let home = folder();
    let (machine, state) = (home.path().join("machine"), home.path().join("state"));
    let write = |path: std::path::PathBuf, content: &[u8]| {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, content).expect("a file");
    };
    write(machine.join(BOOT), b"b\n");
    write(machine.join("proc/sys/kernel/randomize_va_space"), b"0\n");
    write(machine.join("etc/passwd"), b"untouched\n");
    write(state.join("kept.journal"), data);
    write(state.join("running.journal"), data);
    std::fs::set_permissions(&state, std::os::unix::fs::PermissionsExt::from_mode(0o700))
        .expect("own folder");
    let root = Root::at(&machine);
    if let Ok(mut journal) = Journal::open(&root, &state)
        && journal.restore_kept().is_ok()
    {
        // What could not be read is set aside: the next one finds nothing to do.
        assert_eq!(journal.restore_kept(), Ok(None));
    }
    let passwd = std::fs::read(machine.join("etc/passwd")).expect("still there");
    assert_eq!(passwd, b"untouched\n");
}

/// A trace ends with its last request or with an error that names the file.
pub fn traces(data: &[u8]) {
    use workload::trace::{TraceFormat, TraceOptions};

    let home = folder();
    let file = home.path().join("trace");
    std::fs::write(&file, data).expect("a file");
    read_trace(&file, &TraceOptions::default());
    let [chosen, ..] = data else { return };
    let format = TraceFormat::ALL[usize::from(*chosen) % TraceFormat::ALL.len()];
    let options = TraceOptions {
        format: Some(format),
        skip_bad: 8,
        copies: 2,
        scans: chosen & 0x80 == 0,
        ..TraceOptions::default()
    };
    read_trace(&file, &options);
}

fn read_trace(file: &std::path::Path, options: &workload::trace::TraceOptions) {
    use workload::trace::{ArrivalSpread, RequestChunk, TraceReader};

    // A line of some formats may stand for a million requests.
    const MOST: usize = 1 << 16;
    let Ok(mut trace) = TraceReader::with(file, options) else { return };
    let (mut chunk, mut requests) = (RequestChunk::new(), 0);
    let mut before = 0.0;
    while requests < MOST {
        match trace.next_second(ArrivalSpread::Even, &mut chunk) {
            Ok(true) => {
                for request in chunk.iter() {
                    assert!(request.at_s >= before, "{} after {before}", request.at_s);
                    assert!((1..=250).contains(&request.key.len()));
                    before = request.at_s;
                }
                requests += chunk.len();
            }
            Ok(false) => break,
            Err(error) => {
                assert!(error.to_string().contains("trace"), "{error}");
                break;
            }
        }
    }
    assert!(trace.counts().skipped() <= options.skip_bad);
}

/// A histogram is refused, or says the same after it was written again.
pub fn histograms(data: &[u8]) {
    let Ok(histogram) = model::histogram::decode(data) else { return };
    let again = model::histogram::encode(&histogram).expect("what was read can be written");
    let again = model::histogram::decode(&again).expect("what was written can be read");
    assert_eq!((histogram.len(), histogram.max()), (again.len(), again.max()));
}

/// A study is planned within bounds, or refused.
#[cfg(feature = "studies")]
pub fn studies(data: &[u8]) {
    use host::Root;

    let home = folder();
    let source = study::StudyText::new("study.toml", &String::from_utf8_lossy(data));
    if source.spec().is_ok() {
        let _ = study::Plan::of(&source, home.path(), &Root::at(home.path()));
    }
}

/// A results file is read whole, or refused.
#[cfg(feature = "results")]
pub fn results(data: &[u8]) {
    let home = folder();
    let path = home.path().join("results.sqlite");
    std::fs::write(&path, data).expect("a file");
    if let Ok(file) = record::ResultsFile::read(&path) {
        let _ = (file.executions(), file.runs(&record::RunFilter::default()));
    }
}

/// What an agent and its coordinator say to each other is understood or refused.
#[cfg(feature = "agents")]
pub fn agent_messages(data: &[u8]) {
    agents::fuzz::messages(data);
}

/// An agent's outcome is read whole, or refused.
#[cfg(feature = "agents")]
pub fn outcomes(data: &[u8]) {
    if let Ok(outcome) = drive::PhaseOutcome::from_bytes(data) {
        let again = outcome.to_bytes().expect("what was read can be written");
        assert!(drive::PhaseOutcome::from_bytes(&again).is_ok());
    }
}
