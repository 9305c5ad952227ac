//! Each mistake is refused with exit code 2 and a message that names the place and the way out.

use crate::tool::Place;

#[test]
fn mistakes_on_the_command_line() {
    let place = Place::new();
    let cases: &[(&[&str], &[&str])] = &[
        (&["bench", "rocksb:x"], &["`rocksb`", "did you mean `rocksdb`?"]),
        (&["bench", "rocksdb"], &["path is missing", "rocksdb:PATH"]),
        (&["bench", "rocksdb:x?cahce=1GiB"], &["`cahce`", "did you mean `cache`?"]),
        (&["bench", "rocksdb:x?cache=much"], &["`cache`", "`much`"]),
        (
            &["bench", "spill:x?durability=foo"],
            &["`durability`", "`none`, `sync` or a time such as `500ms`", "`foo`"],
        ),
        (&["bench", "spill:x?frozen=0"], &["`frozen`", "from 1 to 1000", "`0`"]),
        (&["bench", "spill:x?throttle=5s"], &["throttle", "more than 100ms"]),
        (&["bench", "spill:x?throttle=0s"], &["`throttle`", "`off` or a time", "`0s`"]),
        (&["bench", "null:x"], &["takes no path"]),
        (&["bench", "null", "--workload", "ycsb-x"], &["'ycsb-x'", "--workload", "similar"]),
        (&["bench", "null", "--mix", "read=0,update=0"], &["--mix", "every weight is zero"]),
        (&["bench", "null", "--mix", "raed=1"], &["--mix", "raed"]),
        (&["bench", "null", "--mix", "read=-1"], &["--mix", "-1"]),
        (&["bench", "null", "--rate", "0"], &["--rate", "more than zero"]),
        (&["bench", "null", "--rate", "-5"], &["--rate", "-5"]),
        (&["bench", "null", "--rate", "fast"], &["--rate", "`fast`", "20k"]),
        (&["bench", "null", "--rate", "1k", "--arrivals", "poison"], &["--arrivals", "`poisson`"]),
        (&["bench", "null", "--arrivals", "poisson"], &["--arrivals", "needs a rate"]),
        (&["bench", "null", "--rate", "1e30"], &["--rate", "at most 1G"]),
        (&["bench", "null", "--rate", "1k", "--think", "1ms"], &["--think", "closed loop"]),
        (&["bench", "null", "--rate", "1k", "--steady"], &["--steady", "warm up"]),
        (&["bench", "null", "--steady=0s"], &["--steady"]),
        (&["bench", "null", "--threads", "0"], &["--threads", "more than zero"]),
        (&["bench", "null", "--records", "5", "--threads", "10"], &["10 threads for 5 records"]),
        (&["bench", "null", "--records", "0"], &["`records`"]),
        (&["bench", "null", "--records", "1.5"], &["--records", "1.5"]),
        (&["bench", "null", "--ops", "0"], &["--ops"]),
        (&["bench", "null", "--time", "0s"], &["--time"]),
        (&["bench", "null", "--time", "-1s"], &["--time", "-1s", "span of time"]),
        (&["bench", "null", "--repeat", "0"], &["--repeat"]),
        (&["bench", "null", "--value-size", "4x"], &["--value-size", "4x"]),
        (&["bench", "null", "--key-size", "2"], &["key.size", "smallest that works"]),
        (&["bench", "lmdb:x", "--key-size", "600"], &["`lmdb` takes keys of at most 511 bytes"]),
        (
            &["bench", "spill:x?segment=64KiB", "--value-size", "64343"],
            &["values of at most 64342 bytes", "up to 64343", "raise `segment`"],
        ),
        (
            &["search", "spill:x?segment=64KiB", "--slo", "p99<1ms", "--value-size", "100KB"],
            &["values of at most 64342 bytes", "raise `segment`"],
        ),
        (&["bench", "null", "--compressibility", "1.5"], &["compressibility"]),
        (&["bench", "null", "--popularity", "zipf"], &["--popularity", "did you mean `zipfian`?"]),
        (&["bench", "null", "--workload", "ycsb-load", "--warm-up", "1s"], &["--warm-up"]),
        (&["run", "quikstart"], &["did you mean `quickstart`?"]),
        (
            &["run", "quickstart", "--set", "data.record=1"],
            &["`record`", "did you mean `records`?"],
        ),
        (&["run", "quickstart", "--set", "data"], &["table.key=value"]),
        (&["run", "quickstart", "--resume"], &["--out"]),
        (&["report", "nowhere.sqlite"], &["nowhere.sqlite"]),
        (&["bogus"], &["bogus"]),
    ];
    for (args, words) in cases {
        place.refused(args, words);
    }
    // Nothing was made for any of them.
    let left: Vec<_> = std::fs::read_dir(place.path()).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn mistakes_in_a_study_are_shown_in_their_place() {
    let place = Place::new();
    let good = "name = \"x\"\nsequence = [\"load\", \"ycsb-a\"]\n\n[store.null]\n\n[data]\nrecords = 100\n";
    let cases: &[(&str, &str, &[&str])] = &[
        ("sequence", "sequense", &["sequense", "did you mean `sequence`?", "study.toml:2:1"]),
        ("\"ycsb-a\"", "\"ycsb-q\"", &["`ycsb-q`", "did you mean", "study.toml:2:21"]),
        ("[store.null]", "[store.nul]", &["`nul`", "did you mean `null`?", "study.toml:4:8"]),
        ("records = 100", "records = \"100 apples\"", &["100 apples", "study.toml:7:11"]),
        ("records = 100", "record = 100", &["did you mean `records`?", "study.toml:7:1"]),
        (
            "records = 100",
            "records = 100\n[measure]\nrate = 0",
            &["more than zero", "study.toml:9:8"],
        ),
        (
            "records = 100",
            "records = 100\n[measure]\nthreads = 101",
            &["101 threads for 100", "study.toml:9:11"],
        ),
        (
            "records = 100",
            "records = 100\n[workloads.w]\nfrom = \"ycsb-z\"",
            &["`ycsb-z`", "study.toml:9:8"],
        ),
        ("\"ycsb-a\"]", "\"w\"]\n[workloads.w]\nmix = { read = 0 }", &["zero", "study.toml:4:7"]),
        (
            "records = 100",
            "records = 100\n[workloads.w]\nmix = { read = -1 }",
            &["-1", "study.toml:9:7"],
        ),
        (
            "records = 100",
            "records = 100\nvalue = { size = \"100KB\" }\n[store.spill]\nsegment = \"64KiB\"",
            &["`spill`", "at most 64342 bytes", "up to 100000", "study.toml:8:9"],
        ),
        ("records = 100", "records = 0", &["`records`", "study.toml:7:11"]),
        (
            "records = 100",
            "records = 100\n[workloads.load]",
            &["kvmeter uses the name", "study.toml:8:12"],
        ),
        ("[\"load\", \"ycsb-a\"]", "[\"clear\"]", &["measures nothing"]),
        (
            "\"x\"",
            "\"x\"\nplatform = \"s9\"",
            &["no platform file `s9`", "did you mean `s1`", "study.toml:2:12"],
        ),
        ("\"x\"", "\"../x\"", &["letter or digit", "study.toml:1:8"]),
        (
            "[store.null]",
            "[store.lmdb]\npath = \"db\"\n[store.fjall]\npath = \"db\"",
            &["already", "each its own"],
        ),
        (
            "\"ycsb-a\"]",
            "\"w\"]\n[workloads.w]\nfrom = \"ycsb-z\"",
            &["`ycsb-z`", "study.toml:4:8"],
        ),
        ("\"ycsb-a\"]", "\"ycsb-a\"", &["study.toml"]),
        ("[\"load\", \"ycsb-a\"]", "[]", &["`sequence` is empty"]),
        (
            "\"ycsb-a\"",
            "\"ycsb-d\", \"ycsb-e\"",
            &["`ycsb-d` adds or deletes", "clear", "study.toml:2:31"],
        ),
        (
            "\"ycsb-a\"]",
            "\"w\", \"ycsb-c\"]\n[workloads.w]\nmix = { delete = 1 }",
            &["`w` adds or deletes"],
        ),
        (
            "records = 100",
            "records = 100\n[load]\nwarm_up = \"1s\"",
            &["warm_up", "a load", "study.toml:9:11"],
        ),
        ("records = 100", "records = 100\n[load]\noperations = 10", &["operations", "a load"]),
        (
            "records = 100",
            "records = 100\n[measure]\nrate = 10\nsteady = {}",
            &["steady", "study.toml:10:10"],
        ),
        ("\"ycsb-a\"", "\"mbwu\", \"ycsb-a\"", &["different data"]),
        (
            "[store.null]",
            "[store.lmdb]\nmap_sise = \"1GiB\"",
            &["map_sise", "did you mean `map_size`?", "study.toml:5:1"],
        ),
    ];
    for (from, to, words) in cases {
        let study = place.write("study.toml", &good.replacen(from, to, 1));
        place.refused(&["run", study.to_str().unwrap()], words);
    }
    assert!(!place.file("results").exists(), "a refused study leaves nothing behind");
}

#[test]
fn outputs_never_overwrite_inputs() {
    let place = Place::new();
    place.ok(&["bench", "null", "--ops", "10", "--out", "r.sqlite"]);
    place.refused(&["export", "r.sqlite", "--format", "csv", "--out", "r.sqlite"], &["--out"]);
    place.refused(&["report", "r.sqlite", "--html", "./r.sqlite"], &["--html"]);
    let text = "name = \"x\"\nsequence = [\"ycsb-a\"]\n[store.null]\n[measure]\ntime = \"50ms\"\n";
    place.write("x.toml", text);
    place.refused(&["run", "x.toml", "--out", "x.sqlite", "--html", "x.toml"], &["--html"]);
    place.refused(&["run", "x.toml", "--out", "x.sqlite", "--html", "."], &["is a directory"]);
    place.refused(&["run", "x.toml", "--out", "x.sqlite", "--html", "r.sqlite"], &["a database"]);
    assert!(!place.file("x.sqlite").exists(), "nothing was begun");
    assert_eq!(std::fs::read_to_string(place.file("x.toml")).unwrap(), text);
    place.json(&["report", "r.sqlite", "--json"]);
    place.refused(&["bench", "lmdb:db", "--out", "db/r.sqlite"], &["store's own directory"]);
}

#[test]
fn foreign_directories_are_left_alone() {
    let place = Place::new();
    std::fs::create_dir(place.file("mine")).unwrap();
    place.write("mine/thesis.tex", "years of work");
    place.refused(&["bench", "rocksdb:mine"], &["mine", "thesis.tex"]);
    assert_eq!(std::fs::read_to_string(place.file("mine/thesis.tex")).unwrap(), "years of work");
    assert_eq!(std::fs::read_dir(place.file("mine")).unwrap().count(), 1);
    place.refused(&["bench", "rocksdb:mine/thesis.tex"], &["is not a directory"]);
    place.ok(&["bench", "lmdb:db2", "--records", "100", "--ops", "10"]);
    place.refused(&["bench", "fjall:db2", "--records", "100"], &["holds data of `lmdb`"]);
    place.ok(&["bench", "lmdb:db2", "--records", "100", "--ops", "10"]);
    place.refused(&["bench", "rocksdb:db", "--records", "100G"], &["needed", "free some space"]);
}

#[test]
fn input_of_other_tools_is_understood_or_explained() {
    let place = Place::new();
    let name = format!("name = \"{}\"\nsequence = [\"load\"]\n[store.null]\n", "x".repeat(300));
    place.write("long.toml", &name);
    let study = "name = \"x\"\nsequence = [\"load\"]\n[store.redis]\nservers = \"u:s3cret@host\"\n";
    place.write("secret.toml", study);
    place.write(
        "tilde.toml",
        "name = \"x\"\nsequence = [\"load\"]\n[store.lmdb]\npath = \"~/db\"\n",
    );
    let socket = format!("memcached:///{}", "s".repeat(107));
    let cases: &[(&[&str], &[&str])] = &[
        (&["bench", "redis://user:s3cret@host"], &["password_env=VARIABLE"]),
        (&["bench", "redis://user:s3cret@host", "--server", "default"], &["password_env=VARIABLE"]),
        (&["search", "rediss://s3cret@host/2", "--slo", "p99<1ms"], &["password_env=VARIABLE"]),
        (&["doctor", "--store", "redis://user:s3cret@host"], &["password_env=VARIABLE"]),
        (&["run", "secret.toml", "--dry-run"], &["secret.toml:4", "no user and no password"]),
        (&["bench", "memcached://h", "--agents", "u:s3cret@h"], &["--agents", "no password"]),
        (
            &["bench", "redis", "--server", "arguments=[\"--requirepass\",\"s3cret\"]"],
            &["--include"],
        ),
        (&["bench", &socket], &["at most 107 bytes, and this one 108"]),
        (&["run", "long.toml", "--dry-run"], &["long.toml:1:8", "at most 150 bytes"]),
        (&["run", "tilde.toml", "--dry-run"], &["tilde.toml:4:8", "$HOME/db"]),
        (&["bench", "spill:~/db", "--records", "10"], &["$HOME/db"]),
        (&["bench", "null", "--out=~/x.sqlite"], &["--out", "$HOME/x.sqlite"]),
        (&["bench", "null", "--rate", "1/2"], &["--rate", "one in two seconds"]),
        (&["bench", "null", "--time", "1e19s"], &["--time", "at most 366d"]),
        (&["bench", "redis://h?timeout=200000000000000d"], &["`timeout`"]),
    ];
    for (args, words) in cases {
        place.refused(args, words);
        assert!(!place.run(args).err.contains("s3cret"), "{args:?}");
    }
    assert!(!place.file("~").exists());
    place.ok(&["bench", "null", "--rate", "1/m", "--dry-run"]);
    place.ok(&["bench", "null", "--rate", "1/m..2/m/2", "--dry-run"]);
    place.ok(&["bench", "rediss://host/2", "--dry-run"]);
}
