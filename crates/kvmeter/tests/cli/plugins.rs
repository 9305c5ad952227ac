//! Plug-ins: measured like other stores, and what happens when one crashes, hangs or writes where it
//! must not.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::plugin_sources as sources;
use crate::tool::{Place, command_output};

/// The hash table of the examples; `None` without a compiler.
fn hash_table(place: &Place, flags: &[&str]) -> Option<PathBuf> {
    sources::build(&sources::example("hash_table"), flags, place.path())
        .map_err(|why| eprintln!("skipped: {why}"))
        .ok()
}

/// The hash table, whose `get` does something else at the 1,000th call.
fn with_get(place: &Place, name: &str, body: &str, flags: &[&str]) -> Option<PathBuf> {
    let text = std::fs::read_to_string(sources::example("hash_table")).unwrap();
    let own = format!(
        "#include <unistd.h>\nstatic kvmeter_status own(kvmeter_session *s, const void *k, size_t \
         n, kvmeter_on_value f, void *c, kvmeter_error *e)\n{{ static unsigned calls; if \
         (__atomic_add_fetch(&calls, 1, 0) == 1000) {{ {body} }} return get(s, k, n, f, c, e); }}\n\
         static const kvmeter_option options[]"
    );
    let text = text
        .replace("static const kvmeter_option options[]", &own)
        .replace(".get = get,", ".get = own,");
    let source = place.write(&format!("{name}.c"), &text);
    let flags = [flags, &["-D_DEFAULT_SOURCE"]].concat();
    sources::build(&source, &flags, place.path()).map_err(|why| eprintln!("skipped: {why}")).ok()
}

fn url(library: &Path) -> String {
    format!("plugin:{}", library.display())
}

const SHORT: [&str; 6] = ["--records", "10k", "--time", "300ms", "--workload", "ycsb-b"];

#[test]
fn a_plug_in_is_measured_like_a_store() {
    let place = Place::new();
    let Some(library) = hash_table(&place, &[]) else { return };
    let options = place.ok(&["doctor", "--options", &url(&library)]);
    assert!(options.contains("buckets") && options.contains("1048576"), "{options}");
    let store = format!("{}?buckets=20000", url(&library));
    let bench = [&["bench", &store, "--json", "--out", "r.sqlite"][..], &SHORT].concat();
    let result = place.run(&bench).json();
    assert_eq!(result["valid"], true, "{}", result["invalid_because"]);
    assert!(result["throughput_ops_s"].as_f64().unwrap() > 1000.0);
    let text = place.ok(&["export", "r.sqlite", "--table", "runs", "--format", "json"]);
    assert!(text.contains("hash_table.so"), "{text}");
    for trusted in ["yes", "no"] {
        let store = format!("{store}&trusted={trusted}");
        place.ok(&[&["bench", &store][..], &SHORT].concat());
    }
}

#[test]
fn a_study_compares_a_plug_in_with_a_store() {
    let place = Place::new();
    let Some(_) = hash_table(&place, &[]) else { return };
    place.write(
        "s.toml",
        "name = \"s\"\nsequence = [\"load\", \"ycsb-c\"]\n[store.plugin]\nbuckets = 5000\n\
         library = \"./hash_table.so\"\n[store.spill]\n[data]\nrecords = 5000\n[measure]\n\
         time = \"200ms\"\n",
    );
    place.ok(&["run", "s.toml", "--out", "r.sqlite"]);
    let report = place.ok(&["report", "r.sqlite"]);
    assert!(report.contains("plugin ycsb-c") && report.contains("spill ycsb-c"), "{report}");
    let wrong =
        place.run(&["run", "s.toml", "--out", "x.sqlite", "--set", "store.plugin.bukets=1"]);
    assert_eq!(wrong.code, 2, "{wrong:?}");
    assert!(wrong.err.contains("did you mean `buckets`?"), "{}", wrong.err);
}

#[test]
fn a_plug_in_that_crashes_loses_no_finished_run() {
    let place = Place::new();
    let Some(_) = with_get(&place, "bad", "*(volatile int *)8 = 1;", &[]) else { return };
    place.write(
        "s.toml",
        "name = \"s\"\nsequence = [\"load\", \"ycsb-c\"]\n[store.spill]\n[store.plugin]\n\
         library = \"./bad.so\"\n[data]\nrecords = 2000\n[measure]\ntime = \"200ms\"\n",
    );
    let result = place.run(&["run", "s.toml", "--out", "r.sqlite"]);
    assert_eq!(result.code, 1, "{result:?}");
    assert!(result.err.contains("ended by SIGSEGV (11)"), "{}", result.err);
    assert!(result.err.contains("plugin:./bad.so"), "{}", result.err);
    let kept = place.ok(&["export", "r.sqlite", "--table", "runs", "--format", "json"]);
    assert!(kept.contains("load"), "{kept}");
}

#[test]
fn a_call_that_does_not_return_ends_the_run() {
    let place = Place::new();
    let Some(library) = with_get(&place, "slow", "sleep(1000);", &[]) else { return };
    let store = format!("{}?limit=1s", url(&library));
    let begin = Instant::now();
    let result = place.run(&[&["bench", &store][..], &SHORT].concat());
    assert_eq!(result.code, 1, "{result:?}");
    assert!(result.err.contains("its function `get` has not returned for 1 s"), "{}", result.err);
    assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
}

#[test]
fn a_write_beyond_a_buffer_is_found_by_the_sanitizer() {
    let place = Place::new();
    let beyond = "volatile char *p = malloc(8); p[8] = 1; free((void *)p);";
    let flags = ["-g", "-fsanitize=address"];
    let Some(library) = with_get(&place, "beyond", beyond, &flags) else { return };
    let asked = std::process::Command::new("cc").arg("-print-file-name=libasan.so").output();
    let runtime = String::from_utf8(asked.unwrap().stdout).unwrap();
    let store = url(&library);
    let mut command = place.command(&[&["bench", &store][..], &SHORT].concat());
    command.env("LD_PRELOAD", runtime.trim()).env("ASAN_OPTIONS", "detect_leaks=0");
    let result = command_output(command.output().unwrap());
    assert_eq!(result.code, 1, "{result:?}");
    assert!(result.err.contains("heap-buffer-overflow"), "{}", result.err);
    assert!(result.err.contains("beyond.c"), "{}", result.err);
}

#[test]
fn a_plug_in_ends_with_the_command() {
    let place = Place::new();
    let Some(library) = hash_table(&place, &[]) else { return };
    let store = url(&library);
    let args = ["bench", &store, "--records", "10k", "--time", "60s", "--workload", "ycsb-c"];
    for signal in ["KILL", "TERM"] {
        let mut command = place.command(&args).stderr(Stdio::piped()).spawn().unwrap();
        let own = own_process(command.id());
        let kill = std::process::Command::new("kill")
            .args([&format!("-{signal}"), &command.id().to_string()])
            .status();
        assert!(kill.unwrap().success());
        let code = command.wait().unwrap();
        assert!(!code.success(), "{code}");
        let limit = Instant::now() + Duration::from_secs(20);
        while Path::new(&format!("/proc/{own}/exe")).exists() {
            assert!(Instant::now() < limit, "{signal}: {own} is left");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The process that measures, child of the command.
fn own_process(of: u32) -> u32 {
    let limit = Instant::now() + Duration::from_secs(20);
    loop {
        let children = std::fs::read_to_string(format!("/proc/{of}/task/{of}/children"));
        if let Some(Ok(child)) =
            children.unwrap_or_default().split_whitespace().next().map(str::parse)
        {
            // It has begun once it has loaded the library.
            let maps = std::fs::read_to_string(format!("/proc/{child}/maps")).unwrap_or_default();
            if maps.contains("hash_table.so") {
                return child;
            }
        }
        assert!(Instant::now() < limit, "no process of its own");
        std::thread::sleep(Duration::from_millis(10));
    }
}
