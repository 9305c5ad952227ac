//! Studies of microbenchmarks and simulations: planned, run, killed, resumed, answered and told
//! apart like studies of stores.

use serde_json::Value;

use crate::tool::Place;

const STUDY: &str = r#"
name = "data-movement"
question = "What does a receiver's stride cost?"
repeats = 3

# So many messages, however busy the machine is.
[micro.pingpong]
time = "30s"
messages = 200

[micro.flow]
size = "4KiB"
time = "30s"
messages = "5k"
warm_up = "10ms"

[factors.payload]
set = "micro.pingpong.size"
levels = ["64", "16KiB"]

[factors.stride]
set = "micro.flow.stride"
levels = ["64", "1KiB"]

[[checks]]
that = "latency_us.p50 <= latency_us.p99"
why = "percentiles rise"

[[questions]]
ask = "What does the stride do to the receiver's time for a byte?"
metric = "micro.cpu_per_byte"
factor = "stride"
where = { workload = "flow" }

[[questions]]
ask = "What does the payload do to a round trip?"
metric = "latency_us.p50"
factor = "payload"

[[figures]]
id = "stride"
title = "Time by stride"
kind = "lines"
x = "stride"
y = "micro.cpu_per_byte"
"#;

const SIMULATION: &str = r#"
name = "policies"
question = "Does direct cache access help?"
repeats = 2

[simulate.dca]
machine = "xeon-e5-2697-v2"
traffic = "flow"
rate = "1M"
packet = 512
warm-up = "10ms"
measure = "10ms"

[factors.policy]
set = "simulate.dca.policy"
levels = ["on", "off"]

[[questions]]
ask = "What does turning it off do to misses?"
metric = "simulated.llc.miss_ratio"
factor = "policy"

[[figures]]
id = "misses"
title = "Misses by policy"
kind = "bars"
x = "policy"
y = "simulated.llc.miss_ratio"
"#;

fn runs(place: &Place) -> Vec<Value> {
    let all = place.json(&["report", "out.sqlite", "--json"]);
    all.as_array().unwrap().clone()
}

fn reading<'a>(run: &'a Value, signal: &str) -> &'a Value {
    let readings = run["readings"].as_array().unwrap();
    let json = readings.iter().find(|reading| reading["signal"] == signal);
    json.unwrap_or_else(|| panic!("{signal}: {run:#}"))
}

#[test]
fn mistakes_are_refused_at_their_place_before_anything_starts() {
    let place = Place::new();
    let flow = |keys: &str| format!("name = \"s\"\n[micro.flow]\n{keys}\n");
    let cases: Vec<(String, Vec<&str>)> = vec![
        ("name = \"s\"\n[micro.flo]\nsize = 64\n".into(), vec!["s.toml:2:8", "`flo`", "`flow`?"]),
        (flow("sise = 64"), vec!["s.toml:3:1", "no setting `sise`", "`size`?"]),
        (flow("stride = 64"), vec!["s.toml:2:8", "`size` is missing", "micro.flow.size"]),
        (flow("size = \"big\""), vec!["s.toml:3:8", "size: ", "`big`"]),
        (flow("size = 0"), vec!["s.toml:3:8", "1 B to 1 GiB"]),
        (flow("size = 64\ntransport = \"tpc\""), vec!["s.toml:4:13", "`tcp`?"]),
        (flow("size = 64\nport = \"net_ring0\""), vec!["s.toml:4:1", "a setting of DPDK"]),
        (
            flow("size = 64\nstack = \"dpdk\"\ntransport = \"udp\""),
            vec!["s.toml:5:1", "kernel's stack"],
        ),
        (flow("size = 64\nconnections = 0"), vec!["s.toml:4:15", "connections"]),
        (
            format!("{}[factors.x]\nset = \"micro.flow.sise\"\nlevels = [1]\n", flow("size = 64")),
            vec!["no setting `sise`"],
        ),
        (
            format!("{}[factors.x]\nset = \"micro.pong.size\"\nlevels = [1]\n", flow("size = 64")),
            vec!["s.toml:5:7", "[micro.pong]"],
        ),
        (
            format!("sequence = [\"ycsb-c\"]\n{}", flow("size = 64")),
            vec!["s.toml:1:13", "no store runs this"],
        ),
        ("name = \"s\"\n[simulate.cache]\n".into(), vec!["s.toml:2:11", "`cache`", "dca"]),
        (
            "name = \"s\"\n[simulate.dca]\ntraffic = \"flo\"\n".into(),
            vec!["s.toml:3:11", "`flow`?"],
        ),
        ("name = \"s\"\n".into(), vec!["no store is given"]),
    ];
    for (text, words) in cases {
        place.write("s.toml", &text);
        place.refused(&["run", "s.toml", "--dry-run"], &words);
    }
    if cfg!(feature = "dpdk") {
        return;
    }
    // Asked for outright it is refused, as a level it is left out.
    place.write("s.toml", &flow("size = 64\nstack = \"dpdk\""));
    place.refused(&["run", "s.toml", "--dry-run"], &["s.toml:4:9", "--features dpdk"]);
    let factor = "[factors.stack]\nset = \"micro.flow.stack\"\nlevels = [\"kernel\", \"dpdk\"]\n";
    place.write("s.toml", &format!("{}{factor}", flow("size = 64")));
    let plan = place.ok(&["run", "s.toml", "--dry-run"]);
    assert!(plan.contains("left out: stack=dpdk") && plan.contains("1 runs"), "{plan}");
}

#[test]
fn the_documented_example_is_planned_as_it_stands() {
    let page = include_str!("../../../../docs/studies.md");
    let mut blocks = page.split("```toml\n").skip(1).filter_map(|block| block.split("```").next());
    let place = Place::new();
    place.write("s.toml", blocks.find(|block| block.contains("[micro.pingpong]")).unwrap());
    let plan = place.ok(&["run", "s.toml", "--dry-run"]);
    for run in ["micro pingpong", "micro flow", "simulate dca"] {
        assert!(plan.contains(run), "{plan}");
    }
}

#[test]
fn a_study_of_microbenchmarks_is_run_and_answered() {
    let place = Place::new();
    place.write("s.toml", STUDY);
    let plan = place.ok(&["run", "s.toml", "--dry-run"]);
    assert!(plan.contains("4 cells") && plan.contains("12 runs"), "{plan}");
    let text = place.ok(&["run", "s.toml", "--out", "out.sqlite"]);
    // Each question has its numbers: medians, an interval, a confidence.
    assert_eq!(text.matches("Confidence:").count(), 2, "{text}");
    assert!(!text.contains("unavailable in all"), "{text}");
    let runs = runs(&place);
    assert_eq!(runs.len(), 12);
    for run in &runs {
        assert_eq!((&run["valid"], &run["phase"]), (&true.into(), &"measure".into()), "{run:#}");
        assert_eq!((&run["store"], &run["errors"]), (&"micro".into(), &0.into()));
        let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{run:#}"));
        let rate = number(&run["operations"]) / number(&run["seconds"]);
        assert!((number(&run["throughput_ops_s"]) / rate - 1.0).abs() < 1e-9);
        assert!(number(&run["seconds"]) > 0.0 && number(&run["verified"]) > 0.0, "{run:#}");
        let size = &run["settings"]["micro.size"];
        let ways = match run["workload"].as_str().unwrap() {
            "pingpong" => 2.0,
            _ => 1.0,
        };
        let bytes = match size.as_str().unwrap() {
            "64" => 64.0,
            "4KiB" => 4096.0,
            "16KiB" => 16384.0,
            other => panic!("{other}"),
        };
        let throughput = reading(run, "micro.throughput");
        assert_eq!(throughput["unit"], "bytes_per_second");
        assert_eq!(throughput["origin"], "measured");
        let bytes_s = number(&throughput["answer"]["value"]);
        assert!((bytes_s / (rate * bytes * ways) - 1.0).abs() < 1e-6, "{run:#}");
        // What cannot be counted here says why.
        let misses = &reading(run, "llc.miss_ratio")["answer"];
        assert!(misses["value"].is_number() || misses["unavailable"]["reason"].is_string());
        // Factors of the other bench are not in its cell.
        let (own, other) = match run["workload"].as_str().unwrap() {
            "pingpong" => ("factor.payload", "factor.stride"),
            _ => ("factor.stride", "factor.payload"),
        };
        assert!(run["settings"][own].is_string() && run["settings"][other].is_null(), "{run:#}");
    }
    // A flow's receiver that touches every sixteenth line has less to do.
    let per_byte = |stride: &str| {
        let of = runs.iter().filter(|run| run["settings"]["factor.stride"] == stride);
        let value = |run| reading(run, "micro.cpu_per_byte")["answer"]["value"].as_f64().unwrap();
        of.map(value).collect::<Vec<f64>>()
    };
    assert_eq!((per_byte("64").len(), per_byte("1KiB").len()), (3, 3));
    assert!(per_byte("64").iter().all(|ns| *ns > 0.0));
    // Figures, comparison and export take them like any other.
    let page = std::fs::read_to_string(place.file("out.html")).unwrap();
    assert!(page.contains("Time by stride") && page.contains("micro.cpu_per_byte"));
    place.ok(&["report", "out.sqlite?workload=flow"]);
    place.ok(&["compare", "out.sqlite?factor.stride=64", "out.sqlite?factor.stride=1KiB"]);
    let csv = place.ok(&["export", "out.sqlite", "--format", "csv", "--table", "readings"]);
    assert!(csv.contains("micro.sender.cpu_per_byte"), "{}", &csv[..2000.min(csv.len())]);
}

/// The window is another process's, which tells of it: neither its warm-up nor its start are in it.
#[test]
fn probes_stand_around_the_window_of_a_microbenchmark() {
    let place = Place::new();
    let study = "name = \"watched\"\n[micro.flow]\nsize = \"4KiB\"\ntime = \"500ms\"\nwarm_up = \"3s\"\n\
                 [micro.stream]\nsize = \"1MiB\"\nthreads = 1\ntime = \"500ms\"\n";
    place.write("s.toml", study);
    // On a busy machine a probe may begin late.
    let attempts = (0..5).map(|_| {
        let _ = std::fs::remove_file(place.file("out.sqlite"));
        place.ok(&["run", "s.toml", "--out", "out.sqlite"]);
        runs(&place)
    });
    let window_s = |run: &Value| reading(run, "machine.busy")["window_s"].as_f64().unwrap();
    let around = |runs: &Vec<Value>| runs.iter().all(|run| (0.4..3.0).contains(&window_s(run)));
    let runs = { attempts }.find(around).expect("a window of each");
    assert_eq!(runs.len(), 2);
    for run in &runs {
        let busy = reading(run, "machine.busy");
        let share = busy["answer"]["value"].as_f64().unwrap_or_else(|| panic!("{busy}"));
        assert!(share > 0.1 && share <= 1.0, "{busy}");
        // Without a source of energy the reason stands there.
        let per_joule = &reading(run, "ops_per_joule")["answer"];
        assert!(per_joule["value"].is_number() || per_joule["unavailable"]["reason"].is_string());
        // What is about this process alone, or leaves it out, says nothing of the other one.
        let signals: Vec<&str> = run["readings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|reading| reading["signal"].as_str().unwrap())
            .collect();
        for absent in ["cpu.user", "io.read", "machine.neighbours"] {
            assert!(!signals.contains(&absent), "{signals:?}");
        }
        let mut once = signals.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), signals.len(), "{signals:?}");
    }
}

#[test]
fn a_study_of_microbenchmarks_resumes_after_kill_9() {
    let place = Place::new();
    place.write("s.toml", STUDY);
    let args = ["run", "s.toml", "--out", "out.sqlite", "--set", "repeats=6"];
    place.through_kills(&args, 2, || place.file("out.sqlite").exists(), |_| ());
    let runs = runs(&place);
    assert_eq!(runs.len(), 24);
    let mut cells: Vec<String> = runs
        .iter()
        .map(|run| {
            let of = |key: &str| run["settings"][key].as_str().unwrap_or("-").to_owned();
            format!("{} {} {}", of("factor.payload"), of("factor.stride"), of("repeat"))
        })
        .collect();
    cells.sort();
    cells.dedup();
    assert_eq!(cells.len(), 24, "a run was repeated, another is missing: {cells:?}");
}

#[test]
fn simulations_are_marked_everywhere() {
    let place = Place::new();
    place.write("s.toml", SIMULATION);
    let answers = place.ok(&["run", "s.toml", "--out", "out.sqlite"]);
    assert!(answers.contains("(simulated)"), "{answers}");
    let text = place.ok(&["report", "out.sqlite"]);
    assert!(text.contains("Simulated, not measured"), "{text}");
    assert!(!text.contains("kops/s"), "nothing of it was a throughput: {text}");
    let runs = runs(&place);
    assert_eq!(runs.len(), 4);
    for run in &runs {
        assert_eq!((&run["phase"], &run["store"]), (&"simulate".into(), &"simulate".into()));
        assert_eq!(run["valid"], true, "{run:#}");
        for measured in ["operations", "seconds", "throughput_ops_s", "verified"] {
            assert!(run[measured].is_null(), "{measured}: {run:#}");
        }
        let readings = run["readings"].as_array().unwrap();
        assert!(!readings.is_empty());
        // Energy is a model of what was simulated.
        let origin = |reading: &Value| match reading["signal"].as_str() {
            Some(signal) if signal.starts_with("modelled.") => "modelled",
            _ => "simulated",
        };
        let marked = |reading: &Value| reading["origin"] == origin(reading);
        assert!(readings.iter().all(marked), "{run:#}");
    }
    // Without it the card writes to memory, and what is read first of a packet is missed.
    let misses = |policy: &str| {
        let of = runs.iter().filter(|run| run["settings"]["factor.policy"] == policy);
        let value =
            |run| reading(run, "simulated.llc.miss_ratio")["answer"]["value"].as_f64().unwrap();
        of.map(value).fold(0.0, f64::max)
    };
    assert!(misses("on") < 0.1 && misses("off") > 0.4, "{} {}", misses("on"), misses("off"));
    let page = std::fs::read_to_string(place.file("out.html")).unwrap();
    for words in ["Simulated, not measured", "All of this is simulated, not measured"] {
        assert!(page.contains(words), "{words}");
    }
    let csv = place.ok(&["export", "out.sqlite", "--format", "csv", "--table", "readings"]);
    let rows: Vec<&str> = csv.lines().skip(1).collect();
    let marked = |row: &&str| match row.contains(",modelled.") {
        true => row.contains(",modelled,") || row.ends_with(",modelled"),
        false => row.contains(",simulated"),
    };
    assert!(!rows.is_empty() && rows.iter().all(marked), "{csv}");
}

#[test]
fn several_server_processes_are_loaded_together() {
    if server::launch::installed(server::launch::program("memcached").unwrap()).is_err() {
        eprintln!("skipped: memcached is not installed");
        return;
    }
    let place = Place::new();
    let study = r#"
name = "pairs"
sequence = ["load", "etc"]
[store.memcached]
[server.memcached]
memory = "64MiB"
threads = 1
[data]
records = "2k"
[measure]
time = "300ms"
server_latency = "tap"
[factors.pairs]
set = "server.memcached.processes"
levels = [1, 2]
"#;
    place.write("s.toml", study);
    place.ok(&["run", "s.toml", "--out", "out.sqlite"]);
    let runs = runs(&place);
    assert_eq!(runs.len(), 4);
    for run in runs.iter().filter(|run| run["phase"] == "measure") {
        assert_eq!((&run["valid"], &run["errors"]), (&true.into(), &0.into()), "{run:#}");
        let processes = run["settings"]["server.processes"].as_str().unwrap_or("1");
        assert_eq!(run["settings"]["factor.pairs"], processes);
        // Every request is seen inside one of them.
        assert!(run["server_latency_us"]["count"].as_u64().unwrap() > 0, "{run:#}");
    }
    for (keys, words) in
        [("processes = 0", "processes"), ("processes = 2\nport = 11999", "exclude each other")]
    {
        let table = format!("[server.memcached]\n{keys}");
        let (fixed, _) = study.split_once("[factors.pairs]").unwrap();
        place.write("s.toml", &fixed.replace("[server.memcached]", &table));
        place.refused(&["run", "s.toml", "--dry-run"], &[words]);
    }
}
