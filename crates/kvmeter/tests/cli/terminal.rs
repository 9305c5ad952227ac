//! What a person and a pipe see.

use std::io::Read;
use std::process::Stdio;

use crate::tool::Place;

#[test]
fn a_pipe_gets_no_colour_unless_it_is_asked_for() {
    let place = Place::new();
    let args = ["bench", "null", "--records", "100", "--ops", "100", "--rate", "1G"];
    let plain = place.run(&args);
    assert!(!plain.out.contains('\x1b') && !plain.err.contains('\x1b'), "{plain:?}");
    let mut coloured = args.to_vec();
    coloured.extend(["--color", "always"]);
    assert!(place.run(&coloured).out.contains('\x1b'));
}

/// Texts that strangers wrote (here a name; elsewhere what a server says of itself) steer neither
/// the terminal nor a spreadsheet, wherever they are said.
#[test]
fn no_text_steers_the_terminal() {
    let place = Place::new();
    let nasty = "x\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}y";
    let steers = |text: &str| text.chars().any(|c| c != '\n' && model::text::is_control(c));
    let missing = place.run(&["report", nasty]);
    assert_eq!(missing.code, 2);
    assert!(missing.err.contains("x\u{fffd}]0;owned") && !steers(&missing.err), "{missing:?}");

    std::fs::create_dir(place.file("named")).unwrap();
    let out = format!("named/{nasty}.sqlite");
    let bench = ["bench", "null", "--ops", "1k", "--out", &out];
    let result = place.run(&bench);
    assert_eq!(result.code, 0, "{result:?}");
    assert!(!steers(&result.out) && !steers(&result.err), "{result:?}");
    let json = place.run(&["bench", "null", "--ops", "1k", "--json", "--out", &out]);
    assert!(!steers(&json.out) && !steers(&json.err), "{json:?}");
    let (a, b) = (out.as_str(), out.as_str());
    for args in [&["report", a][..], &["report", a, "--markdown"], &["compare", a, b]] {
        let result = place.run(args);
        assert!(!steers(&result.out) && !steers(&result.err), "{args:?}: {result:?}");
    }
}

#[test]
fn quiet_says_nothing_but_the_result() {
    let place = Place::new();
    let result = place.run(&["bench", "null", "--ops", "1k", "--quiet"]);
    assert_eq!((result.code, result.err.as_str()), (0, ""));
    assert!(result.out.contains("null ycsb-c"));
}

#[test]
fn a_closed_stdout_is_no_error() {
    let place = Place::new();
    let mut child = place
        .command(&["completions", "bash"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!(err, "");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_closed_stderr_is_no_error() {
    let place = Place::new();
    let deaf = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let run = |args: &[&str]| place.command(args).stderr(deaf()).output().unwrap();
    let output = run(&["bench", "null", "--ops", "1k", "--repeat", "3", "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found.as_array().unwrap().len(), 3);
    assert_eq!(run(&["report", "nowhere.sqlite"]).status.code(), Some(2));
}

#[test]
fn help_has_examples_for_every_verb() {
    let place = Place::new();
    let verbs =
        ["doctor", "run", "bench", "search", "report", "compare", "export", "completions", "man"];
    for verb in verbs {
        let text = place.ok(&[verb, "--help"]);
        assert!(text.contains("Example"), "{verb}");
        assert!(text.contains(&format!("kvmeter {verb}")), "{verb}");
    }
}

#[test]
fn completions_and_manual_pages_are_generated() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(place.ok(&["completions", shell]).contains("kvmeter"), "{shell}");
    }
    place.ok(&["man", "man1"]);
    let page = std::fs::read_to_string(place.file("man1/kvmeter-bench.1")).unwrap();
    assert!(page.contains(".TH") && page.contains("workload"));
}

#[test]
fn the_doctor_lists_checks_with_reasons() {
    let place = Place::new();
    let found = place.json(&["doctor", "--json"]);
    let facts = found["machine"]["facts"].as_array().unwrap();
    assert!(facts.iter().any(|fact| fact["name"] == "cpu.model"));
    let checks = found["checks"].as_array().unwrap();
    for adapter in store::ADAPTERS {
        let check = checks.iter().find(|c| c["group"] == "stores" && c["name"] == adapter.scheme);
        assert_eq!(check.unwrap()["state"], "ok", "{adapter:?}");
    }
    for check in checks {
        let named = !check["found"].as_str().unwrap().is_empty();
        assert!(named, "{check}");
        assert_eq!(check["remedy"].is_null(), check["state"] == "ok", "{check}");
    }
    let text = place.ok(&["doctor", "--store", "."]);
    assert!(text.contains("cpu.model") && text.contains("store.filesystem"), "{text}");
}

#[test]
fn the_doctor_describes_store_options() {
    let place = Place::new();
    for asked in ["spill", "spill:db?memory=1MiB"] {
        let text = place.ok(&["doctor", "--options", asked]);
        // Wherever lines are broken.
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for words in
            ["bloom_bits", "32MiB", "size of the memtable", "shapes the data", "in seconds"]
        {
            assert!(text.contains(words), "no `{words}` in {text}");
        }
        assert!(!text.contains("cpu.model") && !text.contains("kv_separation"), "{text}");
    }
    let all = place.json(&["doctor", "--options", "--json"]);
    let all = all.as_array().unwrap();
    for store in ["null", "spill", "rocksdb", "memcached"] {
        let found = all.iter().find(|found| found["store"] == store).unwrap();
        let options = found["options"].as_array().unwrap();
        assert_eq!(options.is_empty(), store == "null");
        for option in options {
            assert!(!option["what"].as_str().unwrap().is_empty(), "{store}: {option}");
        }
    }
    assert!(place.ok(&["doctor", "--options", "null"]).contains("takes no options"));
    place.refused(&["doctor", "--options", "spil"], &["--options", "did you mean `spill`?"]);
    place.refused(&["doctor", "--options", "spill", "--store", "."], &["--options", "--store"]);
    for verb in ["bench", "search"] {
        assert!(place.ok(&[verb, "--help"]).contains("kvmeter doctor --options"), "{verb}");
    }
    assert!(place.ok(&["doctor"]).contains("doctor --options spill"));
}

#[test]
fn a_recorded_machine_is_the_same_elsewhere() {
    let place = Place::new();
    place.ok(&["doctor", "--record", "machine.tree"]);
    let text = std::fs::read_to_string(place.file("machine.tree")).unwrap();
    for identity in ["/etc/machine-id", "/proc/sys/kernel/hostname"] {
        let name = std::fs::read_to_string(identity).unwrap_or_default();
        assert!(name.trim().len() < 3 || !text.contains(name.trim()), "{identity}");
    }
    let here = place.json(&["doctor", "--json"]);
    let there = place.json(&["doctor", "--root", "machine.tree", "--json"]);
    for fact in ["cpu.model", "cpu.online", "memory.total", "kernel.version", "idle.states"] {
        let find = |of: &serde_json::Value| {
            let facts = of["machine"]["facts"].as_array().unwrap();
            facts.iter().find(|known| known["name"] == fact).map(|fact| fact["value"].clone())
        };
        assert_eq!(find(&there), find(&here), "{fact}");
    }
    place.write("bad.tree", "# fine\nnonsense\n");
    place.refused(&["doctor", "--root", "bad.tree"], &["bad.tree:2: `nonsense`"]);
}

#[test]
fn outputs_replace_and_follow_no_foreign_links() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};
    let place = Place::new();
    let shared = place.file("shared");
    std::fs::create_dir(&shared).unwrap();
    std::fs::set_permissions(&shared, std::fs::Permissions::from_mode(0o1777)).unwrap();
    let victim = place.write("victim", "precious");
    symlink(&victim, shared.join("machine.tree")).unwrap();
    if std::fs::metadata("/proc/self").unwrap().uid() == 0 {
        lchown(shared.join("machine.tree"), Some(12_345), None).unwrap();
        let words = ["shared/machine.tree is a symbolic link of user 12345"];
        place.refused(&["doctor", "--record", "shared/machine.tree"], &words);
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
        lchown(shared.join("machine.tree"), Some(0), None).unwrap();
    }
    // One's own leads on, and another name of the old file keeps what it has.
    std::fs::hard_link(&victim, place.file("other")).unwrap();
    place.ok(&["doctor", "--record", "shared/machine.tree"]);
    assert!(std::fs::read_to_string(&victim).unwrap().starts_with("# A machine as kvmeter"));
    assert_eq!(std::fs::read_to_string(place.file("other")).unwrap(), "precious");
}

#[test]
fn a_recorded_machine_cannot_write_elsewhere() {
    let place = Place::new();
    std::fs::create_dir(place.file("ssh")).unwrap();
    std::fs::write(place.file("secret"), "model name : a secret\n").unwrap();
    let here = place.file("").display().to_string();
    let here = here.trim_end_matches('/');
    place.write(
        "hostile.tree",
        &format!("/esc -> {here}/ssh\n/esc/keys = x\n/proc/cpuinfo -> {here}/secret\n"),
    );
    place.ok(&["doctor", "--root", "hostile.tree"]);
    assert_eq!(std::fs::read_dir(place.file("ssh")).unwrap().count(), 0);
    std::fs::create_dir_all(place.file("machine/proc")).unwrap();
    std::os::unix::fs::symlink(place.file("secret"), place.file("machine/proc/cpuinfo")).unwrap();
    assert!(!place.ok(&["doctor", "--root", "machine"]).contains("a secret"));
    place.write("climbs.tree", "# fine\n/sys/../../ssh/keys -> x\n");
    place.refused(&["doctor", "--root", "climbs.tree"], &["climbs.tree:2: "]);
    place.write("many.tree", "/sys/x{0-4000000000} = 1\n");
    place.refused(&["doctor", "--root", "many.tree"], &["many.tree:1: too many files"]);
    place.refused(&["doctor", "--root", "/dev/zero"], &["--root /dev/zero", "128 MiB"]);
}

#[test]
fn the_doctor_checks_networked_stores() {
    let place = Place::new();
    let found = place.json(&["doctor", "--json"]);
    let checks = found["checks"].as_array().unwrap();
    for name in ["protocols.memcached", "engine.epoll", "server.memcached", "server-latency.tap"] {
        let check = checks.iter().find(|c| c["group"] == "network" && c["name"] == name);
        assert_eq!(check.unwrap()["state"], "ok", "{name}");
    }
    for name in ["engine.io_uring", "receive-timestamps", "server-latency.ebpf", "server.valkey"] {
        assert!(checks.iter().any(|c| c["group"] == "network" && c["name"] == name), "{name}");
    }
    for check in checks.iter().filter(|check| check["group"] == "network") {
        assert!(!check["found"].as_str().unwrap().is_empty(), "{check}");
        assert_eq!(check["remedy"].is_null(), check["state"] == "ok", "{check}");
    }
}

#[test]
fn a_bench_whose_home_cannot_be_written_still_shows_its_result() {
    let place = Place::new();
    place.write("state", "a file where a directory should be");
    let result = place.run(&["bench", "null", "--ops", "1k"]);
    assert_eq!(result.code, 0, "{result:#?}");
    assert!(result.err.contains("not stored") && result.err.contains("--out"), "{}", result.err);
}

/// Whoever writes a password where none is to stand (or a name with one that a program of theirs
/// has) finds it neither on the screen nor in a file that they pass on.
#[test]
fn outputs_contain_no_secrets() {
    let place = Place::new();
    let url = "redis://user:sekret@127.0.0.1:1";
    let study = |more: &str| {
        format!(
            "name = \"s\"\nquestion = \"{url}?\"\n# as in {url}\nsequence = [\"load\", \"ycsb-c\"]\n\
             {more}\n[data]\nrecords = 100\n[measure]\noperations = 100\n"
        )
    };
    let refused =
        place.write("refused.toml", &study("[store.redis]\nservers = \"user:sekret@127.0.0.1:1\""));
    let told = place.write("told.toml", &study("[store.null]"));
    let (refused, told) = (refused.to_str().unwrap(), told.to_str().unwrap());
    let plan = format!("data.records={url}");
    let (out, page, copy) = ("out.sqlite", "page.html", "copy.sqlite");
    let calls: &[&[&str]] = &[
        &["bench", url],
        &["bench", url, "--json"],
        &["bench", "null", "--rate", url],
        &["bench", "null", "--color", url],
        &["bench", "null", url],
        &[url],
        &["search", url, "--slo", "p99<1ms"],
        &["search", "null", "--slo", url],
        &["run", refused, "--dry-run"],
        &["run", refused, "--dry-run", "--json"],
        &["run", url],
        &["run", told, "--set", &plan],
        &["run", told, "--dry-run", "--json"],
        &["run", told, "--out", out, "--html", page],
        &["report", out],
        &["report", out, "--json"],
        &["report", out, "--markdown"],
        &["export", out, "--format", "json", "--out", "out.json"],
        &["export", out, "--format", "csv", "--table", "runs", "--out", "out.csv"],
        &["merge", out, "--out", copy],
        &["compare", url, out],
        &["doctor", "--store", url],
        &["doctor", "--store", url, "--record", "machine.txt"],
        &["doctor", "--record", "machine.txt"],
        &["knob", "set", url],
        &["precondition", url],
    ];
    for args in calls {
        let result = place.run(args);
        assert!(
            !result.out.contains("sekret") && !result.err.contains("sekret"),
            "{args:?}: {result:?}"
        );
    }
    let mut folders = vec![place.path().to_owned()];
    let mut seen = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(path),
                false if path.extension().is_some_and(|kind| kind == "toml") => {}
                false => {
                    let bytes = std::fs::read(&path).unwrap();
                    assert!(!bytes.windows(6).any(|six| six == b"sekret"), "{path:?}");
                    seen.push(entry.file_name().into_string().unwrap());
                }
            }
        }
    }
    for file in [out, page, copy, "out.json", "machine.txt"] {
        assert!(seen.iter().any(|name| name == file), "{file} of {seen:?}");
    }
}

/// On processors that this machine is not: the oldest that is served, and one before it.
#[test]
fn an_older_processor_works_or_is_refused_by_name() {
    if !cfg!(target_arch = "x86_64") || cfg!(target_feature = "avx") {
        return;
    }
    let emulated = |processor: &str, args: &[&str]| {
        let mut command = std::process::Command::new("qemu-x86_64");
        command.args(["-cpu", processor, env!("CARGO_BIN_EXE_kvmeter")]).args(args).output()
    };
    let args = ["bench", "null", "--records", "100", "--ops", "100", "--probes", "off"];
    let old = match emulated("Nehalem", &args) {
        Ok(output) => crate::tool::command_output(output),
        Err(why) => return eprintln!("SKIPPED: qemu-x86_64: {why} (apt-get install qemu-user)"),
    };
    assert_eq!(old.code, 0, "{old:?}");
    // The emulator knows no openat2(2), as kernels before 5.6: a recorded machine is read all the same.
    let recording = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(recording.path(), "/sys/link -> /proc\n/proc/cpuinfo = model name: Old 486\n")
        .unwrap();
    let path = recording.path().to_str().unwrap();
    let doctor =
        crate::tool::command_output(emulated("Nehalem", &["doctor", "--root", path]).unwrap());
    assert!(doctor.code == 0 && doctor.out.contains("Old 486"), "{doctor:?}");
    let older = crate::tool::command_output(emulated("core2duo", &args).unwrap());
    assert_eq!(older.code, 2, "{older:?}");
    assert!(older.err.contains("this processor lacks SSE4.1"), "{older:?}");
}
