//! Every key of a study, as its own errors name them: a key that is not known is answered with
//! the names of those that are, table by table.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use host::Root;
use store::{Adapter, DataLocation};
use study::{Plan, StudyText};

use crate::process::run_all;
use crate::{LARGE, TEXTS, is_run, long};

/// A study of one small run.
pub const SMALL: &str = "name = \"x\"\nsequence = [\"load\", \"ycsb-c\"]\n[store.null]\n\
    [data]\nrecords = 100\n[measure]\ntime = \"20ms\"\n[probes]\nuse = \"off\"\n";

/// No key has this name.
const UNKNOWN: &str = "xyzzyxyzzy";

/// A plan is made or refused within this, on a busy machine too.
const LIMIT: Duration = Duration::from_secs(20);

/// A key of a study: what `--set` takes, with `@` for the value.
type Key = String;

/// What `--set KEY=VALUE` comes to; the error where it is refused.
fn plan(set: &[String]) -> Result<Plan, String> {
    let mut source = StudyText::new("study.toml", SMALL);
    source.set(set).map_err(|error| error.to_string())?;
    if let Some(table) = study::mbwu::of_study(&source).map_err(|error| error.to_string())? {
        drop(table);
    }
    Plan::of(&source, Path::new("/nowhere/data"), &Root::live()).map_err(|error| error.to_string())
}

/// The names that an error lists as known in place of [`UNKNOWN`].
fn named(error: &str) -> Option<Vec<String>> {
    let line = error.lines().find(|line| line.contains(UNKNOWN))?;
    let after = |sign: &str| line.split_once(sign).map(|(_, rest)| rest.to_owned());
    if let Some(list) = after("known: ").or_else(|| after("the knobs are ")) {
        return Some(list.split(", ").map(|name| name.trim().to_owned()).collect());
    }
    let unknown = format!("unknown field `{UNKNOWN}`, expected ");
    let list = after(&unknown)?;
    Some(list.split('`').skip(1).step_by(2).map(str::to_owned).collect())
}

/// What is needed beside a table so that its keys are looked at and can be accepted; several where
/// keys exclude each other.
fn contexts(table: &str) -> Vec<Vec<String>> {
    let mut parts = table.split('.');
    let one = |set: &[&str]| vec![set.iter().map(|set| (*set).to_owned()).collect()];
    match (parts.next().unwrap_or_default(), parts.next()) {
        ("store", Some(name)) => {
            let needs = match store::ADAPTERS.iter().find(|adapter| adapter.scheme == name) {
                Some(Adapter { location: DataLocation::Servers { .. }, .. }) => {
                    "servers = \"127.0.0.1:1\""
                }
                _ => "",
            };
            one(&[&format!("store={{ {name} = {{ {needs} }} }}")])
        }
        ("server", Some(name)) => {
            one(&[&format!("store={{ {name} = {{}} }}"), &format!("server={{ {name} = {{}} }}")])
        }
        ("micro", Some(name)) => one(&[
            "store={}",
            &format!("sequence=[\"{name}\"]"),
            &format!("micro={{ {name} = {{ size = 64 }} }}"),
        ]),
        ("simulate", Some(name)) => one(&["store={}", &format!("sequence=[\"{name}\"]")]),
        ("measure", Some(_)) => vec![
            Vec::new(),
            vec!["measure.rate=1000".to_owned()],
            vec!["store={ memcached = { servers = \"127.0.0.1:1\" } }".to_owned()],
        ],
        ("load", Some(_)) => vec![Vec::new(), vec!["load.rate=1000".to_owned()]],
        ("calibrate", Some(_)) => one(&["calibrate.slo=p99<1ms", "measure.rate=\"50%\""]),
        ("beside", Some(_)) => one(&["beside.hog.rate=1GB/s"]),
        ("agents", Some(_)) => one(&[
            "agents.hosts=[\"127.0.0.1:1\"]",
            "store={ redis = { servers = \"127.0.0.1:1\" } }",
        ]),
        ("workloads", Some(name)) => {
            vec![Vec::new(), vec![format!("sequence=[\"load\", \"{name}\"]")]]
        }
        ("design", Some(_)) => one(&["factors.w.set=measure.threads", "factors.w.levels=[1, 2]"]),
        ("probes", Some("command")) => one(&["probes.command.run=[\"true\"]", "probes.use=auto"]),
        ("probes", Some("meter")) => one(&["probes.meter.port=/dev/null", "probes.use=auto"]),
        ("probes", Some("plug")) => one(&["probes.plug.url=http://127.0.0.1:1/"]),
        ("probes", Some("snmp")) => {
            one(&["probes.snmp.address=127.0.0.1:1", "probes.snmp.oids=[\"1.3.6.1\"]"])
        }
        ("probes", Some("model")) => one(&["probes.model.idle_w=1", "probes.model.full_w=2"]),
        ("probes", Some("idle" | "every")) => vec![Vec::new(), vec!["probes.use=auto".to_owned()]],
        _ => vec![Vec::new()],
    }
}

/// The keys in and below a table, into `found`.
fn discover(table: &Key, depth: usize, found: &mut Vec<Key>) {
    let below = |name: &str| match (table.as_str(), table.ends_with("@")) {
        ("", _) => format!("{name}=@"),
        (_, true) => match table.strip_suffix("=@") {
            Some(path) => format!("{path}.{name}=@"),
            None => table.replace('@', &format!("{{ {name} = @ }}")),
        },
        _ => table.replace('@', &format!("{{ {name} = @ }}")),
    };
    let ask = |key: Key| {
        let path = table.split('=').next().unwrap_or_default();
        let mut set = contexts(path).remove(0);
        ["1", "{}"].into_iter().find_map(|value| {
            set.push(key.replace('@', value));
            let result = plan(&set).err();
            set.pop();
            result.and_then(|error| named(&error))
        })
    };
    // The levels of a factor are keys of the study again.
    let again = table.starts_with("factors.w.levels.");
    if table == "server=@" {
        for program in server::launch::PROGRAMS {
            discover(&below(program.name()), depth + 1, found);
        }
        return;
    }
    match ask(below(UNKNOWN)) {
        Some(names) if depth < 6 && !again => {
            for name in names {
                discover(&below(&name), depth + 1, found);
            }
        }
        _ if table.is_empty() => panic!("a study names no keys"),
        _ => {
            // A list of tables, and a table whose keys are names that the user chooses.
            let list = table.replace('@', "[@]");
            let item = list.replace('@', &format!("{{ {UNKNOWN} = @ }}"));
            if let Some(names) = ask(item).filter(|_| depth < 6 && !again) {
                for name in names {
                    discover(&list.replace('@', &format!("{{ {name} = @ }}")), depth + 1, found);
                }
                return;
            }
            let inner = below("w");
            let chosen = match inner.strip_suffix("=@") {
                Some(path) => format!("{path}.{UNKNOWN}=@"),
                None => inner.replace('@', &format!("{{ {UNKNOWN} = @ }}")),
            };
            if depth < 4 && !again && table != "factors.w.levels=@" && ask(chosen).is_some() {
                discover(&inner, depth + 1, found);
                return;
            }
            found.push(table.clone());
        }
    }
}

fn keys() -> Vec<Key> {
    let mut found = Vec::new();
    discover(&String::new(), 0, &mut found);
    found
}

/// Values as TOML has them.
fn values() -> Vec<String> {
    let quoted = |text: &str| serde_json::to_string(text).unwrap();
    let bare =
        ["-1", "0", "9223372036854775807", "1e308", "nan", "true", "[]", "[4294967295]", "{}"];
    let texts = TEXTS.iter().map(|text| quoted(text)).chain([quoted(&long())]);
    let bare =
        bare.into_iter().chain(LARGE.iter().copied().filter(|text| text.parse::<f64>().is_ok()));
    bare.map(str::to_owned).chain(texts).collect()
}

/// The plan with this value, made beside; what is wrong where it panics or does not end.
fn planned(set: Vec<String>) -> Result<bool, String> {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let made = catch_unwind(AssertUnwindSafe(|| plan(&set).is_ok()));
        let _ = tell.send(made.map_err(|_| "panics".to_owned()));
    });
    told.recv_timeout(LIMIT).unwrap_or_else(|_| Err("does not end".to_owned()))
}

/// The most memory that this process has used, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[test]
fn every_key_takes_or_refuses_extreme_values() {
    let keys = keys();
    // What must be among them, table by table: a kind that is no longer found is not looked at.
    for known in [
        "seed=@",
        "measure.time=@",
        "load.threads=@",
        "workloads.w.mix.read=@",
        "store.spill.memory=@",
        "store.redis.timeout=@",
        "server.redis.memory=@",
        "micro.stream.time=@",
        "simulate.dca.warm-up=@",
        "knobs.idle=@",
        "probes.idle=@",
        "checks=[{ that = @ }]",
        "scale.w.note=@",
        "factors.w.levels=@",
        "mbwu.rounds=@",
        "agents.measure_rate=@",
    ] {
        assert!(keys.iter().any(|key| key == known), "{known} was not found");
    }
    let faults = Mutex::new(Vec::new());
    let runs = Mutex::new(Vec::new());
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(key) = keys.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (wrong, accepted) = tried(key);
                    faults.lock().unwrap().extend(wrong);
                    runs.lock().unwrap().extend(accepted);
                }
            });
        }
    });
    let (mut faults, runs) = (faults.into_inner().unwrap(), runs.into_inner().unwrap());
    println!("{} keys, {} runs", keys.len(), runs.len());
    faults.extend(run_all(&runs));
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// A key with every value: what is wrong, and the commands that run what was accepted.
fn tried(key: &Key) -> (Vec<String>, Vec<Vec<String>>) {
    let (mut faults, mut runs) = (Vec::new(), Vec::new());
    for context in contexts(key.split('=').next().unwrap_or_default()) {
        for value in values() {
            let mut set = context.clone();
            set.push(key.replace('@', &value));
            let shown: String = set.join(" ").chars().take(120).collect();
            match planned(set.clone()) {
                Ok(true) if is_run(value.trim_matches('"')) => {
                    let set = set.into_iter().map(|set| format!("--set={set}"));
                    let line = ["run", "study.toml"].map(str::to_owned).into_iter();
                    runs.push(line.chain(set).collect());
                }
                Ok(_) => {}
                Err(how) => faults.push(format!("{shown}: {how}")),
            }
            let most = peak();
            assert!(most < 1 << 30, "{shown}: takes {most} bytes");
        }
    }
    (faults, runs)
}
