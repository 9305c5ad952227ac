//! Probes and knobs around measurements, on a recorded machine whose sensors move.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::tool::{CommandOutput, Place, command_output};

const WATTS: f64 = 90.0;

/// A machine with two packages, whose counters of energy grow while it lives.
struct Machine {
    root: PathBuf,
    stop: Arc<AtomicBool>,
    sensors: Option<JoinHandle<()>>,
}

impl Machine {
    fn drawing(place: &Place) -> Machine {
        let root = place.file("machine");
        for (path, text) in [
            ("proc/sys/kernel/random/boot_id", "boot-one"),
            ("proc/sys/kernel/randomize_va_space", "2"),
            ("proc/cpuinfo", "vendor_id\t: GenuineIntel"),
            ("sys/class/powercap/intel-rapl:0/name", "package-0"),
            ("sys/class/powercap/intel-rapl:0/max_energy_range_uj", "262143328850"),
            ("sys/class/powercap/intel-rapl:0/energy_uj", "1000"),
            ("sys/class/powercap/intel-rapl:0:0/name", "dram"),
            ("sys/class/powercap/intel-rapl:0:0/max_energy_range_uj", "65712999613"),
            ("sys/class/powercap/intel-rapl:0:0/energy_uj", "5000"),
        ] {
            write(&root, path, text);
        }
        let stop = Arc::new(AtomicBool::new(false));
        let (folder, stopped) = (root.clone(), Arc::clone(&stop));
        let sensors = thread::spawn(move || {
            let began = Instant::now();
            while !stopped.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(2));
                let joules = began.elapsed().as_secs_f64();
                for (zone, share) in [("intel-rapl:0", 0.8), ("intel-rapl:0:0", 0.2)] {
                    let microjoules = (joules * WATTS * share * 1e6) as u64;
                    let file = format!("sys/class/powercap/{zone}/energy_uj");
                    write(&folder, &file, &(10_000 + microjoules).to_string());
                }
            }
        });
        Machine { root, stop, sensors: Some(sensors) }
    }

    fn bench(&self, place: &Place, args: &[&str]) -> Command {
        let root = self.root.display().to_string();
        let mut command = place.command(&["bench", "null", "--records", "10k", "--root", &root]);
        command.args(args).env("KVMETER_STATE_DIR", place.file("state"));
        command
    }

    fn holds(&self, path: &str) -> String {
        fs::read_to_string(self.root.join(path)).unwrap().trim().to_owned()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(sensors) = self.sensors.take() {
            sensors.join().unwrap();
        }
    }
}

fn ran(command: &mut Command) -> CommandOutput {
    command_output(command.output().unwrap())
}

/// At once: a sensor is never seen half written.
fn write(root: &Path, path: &str, text: &str) {
    let file = root.join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let new = file.with_extension("new");
    fs::write(&new, format!("{text}\n")).unwrap();
    fs::rename(new, file).unwrap();
}

fn reading<'a>(run: &'a Value, signal: &str) -> &'a Value {
    let all = run["readings"].as_array().unwrap();
    all.iter().find(|r| r["signal"] == signal).unwrap_or_else(|| panic!("no {signal}"))
}

fn value(run: &Value, signal: &str) -> f64 {
    let reading = reading(run, signal);
    reading["answer"]["value"].as_f64().unwrap_or_else(|| panic!("{reading}"))
}

#[test]
fn energy_is_integrated_over_the_window_gross_and_net() {
    let place = Place::new();
    let machine = Machine::drawing(&place);
    let args = ["--time", "2200ms", "--idle-power", "500ms", "--require", "energy.total", "--json"];
    let output = ran(machine.bench(&place, &args).args(["--out", "r.sqlite"]));
    assert_eq!(output.code, 0, "{}", output.err);
    let run: Value = output.json();
    let (seconds, operations) =
        (run["seconds"].as_f64().unwrap(), run["operations"].as_f64().unwrap());
    // The sensor steps every few milliseconds, and a busy machine delays it: not to the percent.
    let joules = value(&run, "energy.total");
    let expected = WATTS * seconds;
    assert!((joules / expected - 1.0).abs() < 0.3, "{joules} J, not {expected}");
    assert_eq!(run["energy_boundary"], "package_and_memory");
    assert_eq!(run["energy_origin"], "measured");
    let per_op = run["joules_per_op"].as_f64().unwrap();
    assert!((per_op * operations / joules - 1.0).abs() < 1e-9);
    assert!((run["ops_per_joule"].as_f64().unwrap() * per_op - 1.0).abs() < 1e-9);
    // It draws the same when it is idle.
    let net = run["joules_per_op_net"].as_f64().unwrap();
    assert!(net.abs() < 0.5 * per_op, "{net} of {per_op}");
    assert!(value(&run, "power.idle.total") > 0.0);
    let samples = run["samples"].as_array().unwrap();
    assert!(samples.iter().any(|series| series["signal"] == "power.package.0"), "{samples:?}");
    let csv = place.ok(&["export", "r.sqlite", "--format", "csv", "--table", "samples"]);
    assert!(csv.contains("power.package.0"), "{csv}");
    let page = place.ok(&["report", "r.sqlite", "--html", "r.html"]);
    assert!(page.contains("package and memory"), "{page}");
    let html = fs::read_to_string(place.file("r.html")).unwrap();
    assert!(html.contains("Energy per operation") && html.contains("power, W"));
}

#[test]
fn every_reading_of_a_run_is_a_signal_of_the_catalogue() {
    let place = Place::new();
    for store in [&["null"][..], &["spill:db", "--rate", "2k"]] {
        let load = ["--records", "2k", "--time", "1s", "--workload", "ycsb-a", "--out", "r.sqlite"];
        let energy = ["--probes", "model=40:120", "--idle-power", "200ms"];
        // On a busy machine the open loop may be late, and the run invalid: its readings are there.
        let result = place.run(&[&["bench"], store, &load, &energy].concat());
        assert!([0, 1].contains(&result.code), "{result:?}");
    }
    let report = place.json(&["report", "r.sqlite", "--json"]);
    let runs = report.as_array().unwrap();
    assert_eq!(runs.len(), 2);
    for run in runs {
        for reading in run["readings"].as_array().unwrap() {
            let name = reading["signal"].as_str().unwrap();
            let known = study::signals::catalogue().any(|signal| signal.is_named(name));
            assert!(known, "{reading}");
        }
    }
}

#[test]
fn modelled_and_measured_machines_are_not_compared() {
    let place = Place::new();
    let machine = Machine::drawing(&place);
    let short = ["--time", "200ms", "--idle-power", "0s", "--json"];
    let measured = ran(machine.bench(&place, &short).args(["--out", "a.sqlite"]));
    assert_eq!(measured.code, 0, "{}", measured.err);
    write(&machine.root, "proc/stat", "cpu  10 0 10 80 0 0 0 0 0 0");
    let modelled = ran(place
        .command(&["bench", "null", "--records", "10k", "--probes", "model=40:140"])
        .args(["--time", "200ms", "--json", "--out", "b.sqlite"]));
    assert_eq!(modelled.code, 0, "{}", modelled.err);
    let run: Value = modelled.json();
    if run["energy_origin"] != "modelled" {
        // This machine has a sensor of its own.
        return;
    }
    assert_eq!(value(&run, "power.idle.model"), 40.0);
    let text = place.ok(&["compare", "a.sqlite", "b.sqlite"]);
    let line =
        "ops_per_joule: not compared, its origin differs between the runs: measured and modelled";
    assert!(text.contains(line), "{text}");
    let shown = place.ok(&["report", "b.sqlite"]);
    assert!(shown.contains('~') && shown.contains("modelled"), "{shown}");
}

#[test]
fn knobs_are_turned_for_a_run_and_restored() {
    let place = Place::new();
    let machine = Machine::drawing(&place);
    let aslr = "proc/sys/kernel/randomize_va_space";
    let planned = ran(&mut machine.bench(&place, &["--knob", "aslr=off", "--dry-run"]));
    assert_eq!(planned.code, 0, "{}", planned.err);
    assert!(planned.out.contains("randomize_va_space: 2 -> 0"), "{}", planned.out);
    assert_eq!(machine.holds(aslr), "2");
    let short = ["--time", "100ms", "--probes", "off", "--json", "--knob", "aslr=off"];
    let output = ran(&mut machine.bench(&place, &short));
    assert_eq!(output.code, 0, "{}", output.err);
    let run: Value = output.json();
    assert_eq!(run["settings"]["knob.aslr"], "off");
    assert!(run["settings"]["knob.aslr.effect"].is_string(), "{}", run["settings"]);
    assert_eq!(machine.holds(aslr), "2");
    assert!(!place.file("state").join("running.jsonl").exists());
    // Nothing runs where a level is not here.
    let wrong = ran(&mut machine.bench(&place, &["--knob", "aslr=never"]));
    assert_eq!(wrong.code, 2, "{}", wrong.err);
    assert!(wrong.err.contains("the levels here are"), "{}", wrong.err);
}

#[test]
fn the_user_answers_for_an_undocumented_register_by_the_cpu_s_name() {
    let place = Place::new();
    let machine = Machine::drawing(&place);
    let name = "Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz";
    let cpu =
        format!("vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 106\nmodel name\t: {name}");
    write(&machine.root, "proc/cpuinfo", &cpu);
    let port = "sys/bus/pci/devices/0000:17:00.0";
    for (file, text) in [("vendor", "0x8086"), ("class", "0x060400"), ("device", "0x347a")] {
        write(&machine.root, &format!("{port}/{file}"), text);
    }
    let config = machine.root.join(port).join("config");
    fs::write(&config, [0x94; 4096]).unwrap();
    let bench = |args: &[&str]| {
        let level = ["--knob", "ddio=off@0000:17:00.0", "--time", "100ms", "--probes", "off"];
        ran(machine.bench(&place, args).args(level).arg("--json"))
    };
    for (args, words) in [
        ([].as_slice(), ["is not documented for", "--trust-register"]),
        (&["--trust-register", "another"], ["this machine's CPU is", name]),
    ] {
        let refused = bench(args);
        assert_eq!(refused.code, 2, "{}", refused.err);
        for word in words {
            assert!(refused.err.contains(word), "{}", refused.err);
        }
    }
    let output = bench(&["--trust-register", name]);
    assert_eq!(output.code, 0, "{}", output.err);
    let settings = &output.json()["settings"];
    assert_eq!(settings["knob.ddio"], "off@0000:17:00.0");
    assert_eq!(settings["knob.ddio.effect"], "unverified");
    assert_eq!(settings["knob.trusted_register"], name);
    assert_eq!(fs::read(&config).unwrap(), [0x94; 4096]);
    let root = machine.root.display().to_string();
    let set = ["knob", "--root", &root, "set", "ddio=off@0000:17:00.0", "--dry-run"];
    let run = ["run", "quickstart", "--root", &root, "--dry-run"];
    for (verb, done) in [(set.as_slice(), "config at 0x180"), (&run, "")] {
        let trusting = |model| ran(place.command(verb).args(["--trust-register", model]));
        assert_eq!(trusting("another").code, 2);
        let output = trusting(name);
        assert_eq!(output.code, 0, "{}", output.err);
        assert!(output.out.contains(done), "{}", output.out);
    }
}

#[test]
fn a_study_names_probes_and_knobs() {
    let place = Place::new();
    let machine = Machine::drawing(&place);
    let text = "name = \"s\"\nsequence = [\"ycsb-c\"]\nrepeats = 2\n[data]\nrecords = 1000\n\
        [store.null]\n[measure]\ntime = \"200ms\"\nthreads = 1\n\
        [probes]\nuse = [\"rapl\"]\nidle = \"200ms\"\nrequire = [\"energy.total\"]\n\
        [knobs]\naslr = \"off\"\n";
    fs::write(place.file("s.toml"), text).unwrap();
    let root = machine.root.display().to_string();
    let run = |file: &str| {
        let args = ["run", file, "--root", &root, "--out", "s.sqlite", "--json"];
        ran(place.command(&args).env("KVMETER_STATE_DIR", place.file("state")))
    };
    let output = run("s.toml");
    assert_eq!(output.code, 0, "{}", output.err);
    let lines = output.out;
    assert_eq!(lines.lines().count(), 2);
    for line in lines.lines() {
        let run: Value = serde_json::from_str(line).unwrap();
        assert_eq!(run["settings"]["knob.aslr"], "off");
        assert!(run["ops_per_joule"].as_f64().unwrap() > 0.0);
        assert!(value(&run, "power.idle.total") > 0.0);
        let other = &reading(&run, "ipc")["answer"]["unavailable"]["reason"];
        assert!(other.as_str().unwrap().contains("was not asked for"), "{other}");
    }
    assert_eq!(machine.holds("proc/sys/kernel/randomize_va_space"), "2");
    // A sensor that is required and not there ends it before anything is asked.
    fs::write(place.file("t.toml"), text.replace("energy.total", "energy.psys")).unwrap();
    fs::remove_file(place.file("s.sqlite")).unwrap();
    let output = run("t.toml");
    assert_eq!(output.code, 1, "{}", output.err);
    assert!(output.err.contains("`energy.psys` is required and unavailable"), "{}", output.err);
    fs::write(place.file("u.toml"), text.replace("aslr = \"off\"", "aslr = \"never\"")).unwrap();
    let output = run("u.toml");
    assert_eq!(output.code, 2, "{}", output.err);
    assert!(output.err.contains("u.toml:15:8"), "{}", output.err);
}

/// What cachegrind counted for each million operations, by signal.
fn simulated(run: &Value) -> Vec<(String, f64)> {
    let readings = run["readings"].as_array().unwrap();
    let of = |reading: &Value| {
        let signal = reading["signal"].as_str()?.strip_prefix("simulated.")?.to_owned();
        let value = reading["answer"]["value"].as_f64();
        assert_eq!(reading["origin"], "simulated", "{reading}");
        Some((signal, value.unwrap_or_else(|| panic!("{reading}"))))
    };
    readings.iter().filter_map(of).collect()
}

#[test]
fn cachegrind_counts_for_an_embedded_store_of_a_study() {
    let place = Place::new();
    place.write(
        "counted.toml",
        "name = \"counted\"\nsequence = [\"ycsb-c\"]\n[store.spill]\n[data]\nrecords = 2000\n\
         [measure]\ntime = \"200ms\"\nthreads = 1\n\
         [probes]\nuse = [\"cachegrind\"]\ncachegrind = { operations = [2000, 60000], limit = \"5m\", \
         i1 = { size = \"32KiB\", ways = 8, line = 64 }, \
         d1 = { size = \"32KiB\", ways = 8, line = 64 }, \
         ll = { size = \"256KiB\", ways = 16, line = 64 } }\n",
    );
    place.ok(&["run", "counted.toml", "--out", "counted.sqlite"]);
    let exported = place.json(&["export", "counted.sqlite", "--format", "json"]);
    let counted = simulated(&exported[0]);
    let of = |name: &str| counted.iter().find(|(known, _)| known == name).unwrap().1;
    // A read of Spill, with its check, is some thousand instructions, one in ten a branch.
    let instructions = of("instructions_per_mop");
    assert!((3e8..2e10).contains(&instructions), "{counted:?}");
    assert!(of("branches_per_mop") < instructions / 3.0, "{counted:?}");
    assert!(of("mispredicts_per_mop") < of("branches_per_mop"), "{counted:?}");
}

#[test]
fn cachegrind_counts_for_a_server_that_is_started() {
    let place = Place::new();
    place.write(
        "counted.toml",
        "name = \"counted\"\nsequence = [\"etc\"]\n[store.memcached]\n\
         [server.memcached]\nmemory = \"64MiB\"\nthreads = 1\n[data]\nrecords = 2000\n\
         [measure]\ntime = \"200ms\"\nthreads = 1\n\
         [probes]\nuse = [\"cachegrind\"]\ncachegrind = { operations = [2000, 40000], limit = \"5m\" }\n",
    );
    place.ok(&["run", "counted.toml", "--out", "counted.sqlite"]);
    let exported = place.json(&["export", "counted.sqlite", "--format", "json"]);
    let counted = simulated(&exported[0]);
    assert!(counted.len() >= 5, "{counted:?}");
    // Some thousand instructions a request, of the server alone.
    let instructions = counted.iter().find(|(name, _)| name == "instructions_per_mop").unwrap().1;
    assert!((1e9..1e10).contains(&instructions), "{counted:?}");
}

/// Runs it in a control group that may use a tenth of a CPU; None where none can be made.
fn under_a_quota(place: &Place, args: &[&str]) -> Option<CommandOutput> {
    let own = format!("kvmeter-cli-{}", std::process::id());
    let folders = [
        ("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "10000"),
        ("/sys/fs/cgroup", "cpu.max", "10000 100000"),
    ];
    let folder = folders.iter().find_map(|(top, file, quota)| {
        let folder = Path::new(top).join(&own);
        std::fs::create_dir(&folder).ok()?;
        let set = folder.join(file).exists() && std::fs::write(folder.join(file), quota).is_ok();
        if !set {
            let _ = std::fs::remove_dir(&folder);
        }
        set.then_some(folder)
    });
    let Some(folder) = folder else {
        eprintln!("NOT TESTED: no control group with a CPU quota can be made; run as root");
        return None;
    };
    let command = place.command(args);
    let mut inside = Command::new("sh");
    inside
        .args(["-c", "echo $$ > \"$0\" && exec \"$@\""])
        .arg(folder.join("cgroup.procs"))
        .arg(command.get_program())
        .args(command.get_args())
        .envs(command.get_envs().filter_map(|(key, value)| Some((key, value?))))
        .current_dir(place.path())
        .stdin(Stdio::null());
    let result = command_output(inside.output().unwrap());
    std::fs::remove_dir(&folder).unwrap();
    Some(result)
}

#[test]
fn a_cpu_quota_that_throttles_makes_a_run_invalid_and_is_named() {
    let place = Place::new();
    let args = ["bench", "null", "--time", "1s", "--probes", "off", "--quiet"];
    // A machine that is busy otherwise may give it less than even its quota: three tries.
    let mut seen = Vec::new();
    for _ in 0..3 {
        let Some(result) = under_a_quota(&place, &args) else { return };
        let words: String = result.out.split_whitespace().collect::<Vec<_>>().join(" ");
        let parts =
            ["a CPU quota held kvmeter back in", "0.1 CPUs by /sys/fs/cgroup/", "raise or remove"];
        if result.code == 1 && parts.iter().all(|part| words.contains(part)) {
            seen.clear();
            break;
        }
        seen.push(result);
    }
    assert!(seen.is_empty(), "{seen:#?}");
    // An open loop is advised what helps.
    let args = ["bench", "null", "--rate", "500k", "--time", "1s", "--probes", "off", "--quiet"];
    let Some(result) = under_a_quota(&place, &args) else { return };
    assert!(!result.out.contains("stop other programs"), "{result:?}");
}

#[test]
fn more_threads_than_cpus_are_noted() {
    let place = Place::new();
    let cpu = host::cpus(&host::Root::live()).unwrap().cpus[0].to_string();
    let command = place.command(&["bench", "null", "--time", "1s", "--threads", "2", "--json"]);
    let mut pinned = Command::new("taskset");
    pinned
        .args(["-c", &cpu])
        .arg(command.get_program())
        .args(command.get_args())
        .envs(command.get_envs().filter_map(|(key, value)| Some((key, value?))))
        .current_dir(place.path())
        .stdin(Stdio::null());
    let Ok(output) = pinned.output() else {
        eprintln!("NOT TESTED: no taskset; install util-linux");
        return;
    };
    let json = command_output(output).json();
    let warnings = json["warnings"].to_string();
    assert!(warnings.contains("2 threads share 1 CPU by the mask"), "{warnings}");
    let one = place.json(&["bench", "null", "--time", "1s", "--threads", "1", "--json"]);
    assert!(!one["warnings"].to_string().contains("threads share"));
}
