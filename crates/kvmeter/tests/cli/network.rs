//! Benches on real memcached and Redis, and on servers that are not there.

use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::ports::free_ports;
use crate::tool::{Place, command_output, until};

/// A server on a free port that runs until this goes out of scope.
pub struct Server {
    child: Child,
    pub address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    pub fn start(program: &str, place: &Place, args: &[&str]) -> Option<Server> {
        let port = free_ports(1)[0];
        let address = format!("127.0.0.1:{port}");
        let port = port.to_string();
        let own: Vec<&str> = match program {
            "memcached" => vec!["-u", "root", "-l", "127.0.0.1", "-p", &port],
            _ => vec!["--bind", "127.0.0.1", "--port", &port, "--save", "", "--appendonly", "no"],
        };
        let mut command = Command::new(program);
        command.args(own).args(args).current_dir(place.path()).stdin(Stdio::null());
        command.env("SASL_CONF_PATH", place.path());
        let Ok(child) = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn() else {
            eprintln!("NOT TESTED: no {program}; install Debian's package of it");
            return None;
        };
        let server = Server { child, address };
        until("the server", || TcpStream::connect(&server.address).is_ok());
        Some(server)
    }
}

fn bench<'a>(store: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["bench", store, "--records", "2k", "--json", "--quiet"];
    args.extend(more);
    args
}

fn number(json: &Value, key: &str) -> f64 {
    let mut value = json;
    for part in key.split('.') {
        value = &value[part];
    }
    value.as_f64().unwrap_or_else(|| panic!("`{key}` is {value}"))
}

#[test]
fn an_open_loop_on_memcached_reports_everything() {
    let place = Place::new();
    let Some(server) = Server::start("memcached", &place, &["-m", "64"]) else { return };
    let store = format!("memcached://{}", server.address);
    let more = ["--workload", "etc", "--rate", "2k", "--time", "1s", "--connections", "4"];
    let result = place.run(&bench(&store, &more));
    let json = result.json();
    for key in ["latency_us.read", "service_us.read", "arrival_latency_us.read"] {
        for figure in ["mean", "p50", "p99", "p99_9", "max"] {
            assert!(number(&json, &format!("{key}.{figure}")) > 0.0);
        }
    }
    assert!(number(&json, "hit_ratio") > 0.99);
    assert!((number(&json, "target_rate_ops_s") - 2000.0).abs() < 1e-6);
    assert!(number(&json, "achieved_rate_ops_s") > 0.0);
    assert!(number(&json, "operations") > 1000.0);
    assert_eq!((&json["errors"], &json["loop"]), (&Value::from(0), &Value::from("open")));
    assert!(json["store_version"].as_str().unwrap().starts_with("memcached 1."));
    assert_eq!(json["valid"], result.code == 0, "the exit code says it too");
}

#[test]
fn a_closed_loop_on_redis_counts_exactly() {
    let place = Place::new();
    let Some(server) = Server::start("redis-server", &place, &[]) else { return };
    for protocol in ["resp2", "resp3"] {
        let store = format!("redis://{}?protocol={protocol}&clear=flush", server.address);
        let more = ["--workload", "ycsb-a", "--ops", "5k", "--connections", "2", "--depth", "8"];
        let json = place.json(&bench(&store, &more));
        assert_eq!((&json["operations"], &json["errors"]), (&Value::from(5000), &Value::from(0)));
        assert_eq!((&json["valid"], &json["loop"]), (&Value::from(true), &Value::from("closed")));
        let reads = number(&json, "latency_us.read.count");
        assert_eq!(number(&json, "verified"), reads);
        assert!(json["store_version"].as_str().unwrap().starts_with("Redis "));
    }
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let place = Place::new();
    let address = format!("127.0.0.1:{}", free_ports(1)[0]);
    for scheme in ["memcached", "redis"] {
        let result = place.run(&bench(&format!("{scheme}://{address}"), &["--time", "1s"]));
        assert_eq!(result.code, 1, "{result:?}");
        assert!(
            result.err.contains(&address) && result.err.contains("nothing listens"),
            "{result:?}"
        );
        assert_eq!(result.out, "");
    }
}

#[test]
fn mistakes_in_a_servers_url_and_flags_are_named() {
    let place = Place::new();
    let cases: &[(&[&str], &[&str])] = &[
        (&["memcached:127.0.0.1:1"], &["memcached://"]),
        (&["memcached://"], &["memcached"]),
        (&["memcached://localhost:99999"], &["99999"]),
        (&["memcached://h:1?protocol=txt"], &["`protocol`", "`txt`", "text"]),
        (&["redis://h:1?protcol=resp2"], &["`protcol`", "did you mean `protocol`?"]),
        (&["redis://h:1?password=secret"], &["`password`", "password_env"]),
        (&["redis://h:1?user=me"], &["password"]),
        (&["redis://h:1?password_env=SURELY_NOT_SET"], &["SURELY_NOT_SET"]),
        (&["redis://h:1?password_file=/nowhere/at/all"], &["/nowhere/at/all"]),
        (&["redis://h:1?ca=ca.pem"], &["tls=on"]),
        (&["redis://h:1?timeout=soon"], &["`timeout`", "soon"]),
        (&["null", "--connections", "4"], &["`connections`", "`null`"]),
        (&["null", "--depth", "4"], &["`depth`", "`null`"]),
        (&["memcached://h:1", "--connections", "0"], &["--connections"]),
        (&["memcached://h:1", "--depth", "0"], &["--depth"]),
        (&["memcached://h:1", "--engine", "epol"], &["--engine", "epoll"]),
        (&["memcached://h:1", "--workload", "ycsb-e"], &["scan"]),
        (&["memcached://h:1", "--key-size", "251"], &["250"]),
    ];
    for (args, words) in cases {
        let args = [&["bench"], *args, &["--time", "1s", "--records", "1k"]].concat();
        place.refused(&args, words);
    }
}

#[test]
fn a_password_is_in_no_output_and_in_no_file() {
    const SECRET: &str = "a-secret-that-nobody-sees-47";
    let place = Place::new();
    let Some(server) = Server::start("redis-server", &place, &["--requirepass", SECRET]) else {
        return;
    };
    let file = place.write("password", &format!("{SECRET}\n"));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let ways = [
        (format!("redis://{}?password_file={}", server.address, file.display()), 0),
        (format!("redis://{}?password_env=THE_SECRET", server.address), 0),
        (format!("redis://{}?password_env=THE_SECRET&db=99", server.address), 2),
    ];
    for (store, code) in ways {
        for more in [&["--json"][..], &[]] {
            let mut args = vec!["bench", &store, "--records", "500", "--ops", "2k"];
            args.extend(["--out", "runs.sqlite"]);
            args.extend(more);
            let result =
                command_output(place.command(&args).env("THE_SECRET", SECRET).output().unwrap());
            assert_eq!(result.code, code, "{result:?}");
            assert!(!result.out.contains(SECRET) && !result.err.contains(SECRET), "{result:?}");
        }
    }
    let kept = std::fs::read(place.file("runs.sqlite")).unwrap();
    let holds = |text: &str| kept.windows(text.len()).any(|bytes| bytes == text.as_bytes());
    assert!(holds(&server.address), "the runs are in it");
    assert!(!holds(SECRET), "and the password is not");
    // A wrong password is the request's fault, and is not told either.
    let store = format!("redis://{}?password_env=THE_SECRET", server.address);
    let args = ["bench", &store, "--records", "500", "--ops", "2k"];
    let result =
        command_output(place.command(&args).env("THE_SECRET", "not-it-at-all").output().unwrap());
    assert_eq!(result.code, 2, "{result:?}");
    assert!(result.err.contains("refused the login") && !result.err.contains("not-it-at-all"));
}

/// A login that may do no more than what a load needs, on RESP2 and RESP3.
#[test]
fn a_redis_user_with_few_rights_is_enough() {
    let place = Place::new();
    let rules = "user teller on >right-secret ~user* ~kvmeter:* -@all +get +set +mget +del\nuser default off\n";
    let users = place.secret("users.acl", rules);
    let args = ["--aclfile", users.to_str().unwrap()];
    let Some(server) = Server::start("redis-server", &place, &args) else { return };
    let password = place.secret("password", "right-secret").display().to_string();
    for protocol in ["resp2", "resp3"] {
        let url = format!("redis://{}?protocol={protocol}&user=teller", server.address);
        let right = format!("{url}&password_file={password}");
        let more = ["--workload", "ycsb-a", "--ops", "2k"];
        let result = place.json(&bench(&right, &more));
        assert_eq!((&result["valid"], &result["operations"]), (&true.into(), &2000.into()));
        // It lacks the permission for the server's statistics.
        assert_eq!(result["settings"]["survives"], Value::Null);
        place.refused(&bench(&url, &more), &["user", "password"]);
        let other = format!("{}&password_file={password}", url.replace("teller", "nobody"));
        place.refused(&bench(&other, &more), &["refused the login"]);
    }
}

/// Debian's memcached has SASL; `saslpasswd2` is of its package `sasl2-bin`.
#[test]
fn a_memcached_with_sasl_is_logged_in_to() {
    let place = Place::new();
    let users = place.file("users");
    let text = format!(
        "mech_list: plain\npwcheck_method: auxprop\nauxprop_plugin: sasldb\nsasldb_path: {}\n",
        users.display()
    );
    place.write("memcached.conf", &text);
    let mut add = Command::new("saslpasswd2");
    add.args(["-p", "-c", "-a", "memcached", "-u", "kvmeter", "-f"]).arg(&users).arg("bob");
    let Ok(mut add) = add.stdin(Stdio::piped()).spawn() else {
        eprintln!("NOT TESTED: no saslpasswd2; install the Debian package `sasl2-bin`");
        return;
    };
    std::io::Write::write_all(&mut add.stdin.take().unwrap(), b"right-secret").unwrap();
    assert!(add.wait().unwrap().success());
    let Some(server) = Server::start("memcached", &place, &["-S"]) else { return };
    let right = place.secret("password", "right-secret").display().to_string();
    let wrong = place.secret("other", "wrong-secret").display().to_string();
    let url = format!("memcached://{}?user=bob@kvmeter", server.address);
    let more = ["--workload", "ycsb-a", "--ops", "2k"];
    let binary = format!("{url}&protocol=binary");
    let result = place.json(&bench(&format!("{binary}&password_file={right}"), &more));
    assert_eq!((&result["valid"], &result["operations"]), (&true.into(), &2000.into()));
    for (url, words) in [
        (format!("{binary}&password_file={wrong}"), "refused the login"),
        (format!("memcached://{}?protocol=binary", server.address), "requires a login"),
    ] {
        place.refused(&bench(&url, &more), &[words]);
    }
    // It is silent on the other protocols.
    let silent = place.run(&bench(&format!("{url}&password_file={right}&timeout=1s"), &more));
    assert_ne!(silent.code, 0);
    assert!(silent.err.contains("with SASL (-S) speaks only the binary protocol"), "{silent:?}");
}

#[test]
fn a_rate_that_no_client_could_send_is_invalid() {
    let place = Place::new();
    let Some(server) = Server::start("memcached", &place, &["-m", "64"]) else { return };
    let store = format!("memcached://{}", server.address);
    let result =
        place.run(&bench(&store, &["--workload", "ycsb-c", "--rate", "50M", "--time", "1s"]));
    assert_eq!(result.code, 1, "{}", result.err);
    let json = result.json();
    assert_eq!(json["valid"], false);
    let why = json["invalid_because"].to_string();
    assert!(why.contains("the rate was not achieved"), "{why}");
    assert!(!why.contains("timeout"), "the server did nothing wrong: {why}");
}

#[test]
fn a_server_that_dies_in_mid_run_leaves_an_invalid_run() {
    let place = Place::new();
    let Some(mut server) = Server::start("memcached", &place, &["-m", "64"]) else { return };
    let store = format!("memcached://{}?timeout=500ms", server.address);
    let args = bench(&store, &["--workload", "ycsb-c", "--time", "60s", "--out", "runs.sqlite"]);
    let child = place.start(&args);
    // Loaded, and then read for a while.
    until("the window", || TcpStream::connect(&server.address).is_ok_and(|s| gets(s) > 2000));
    std::thread::sleep(Duration::from_millis(300));
    server.child.kill().unwrap();
    let result = command_output(child.wait_with_output().unwrap());
    assert_eq!(result.code, 1, "{result:?}");
    let json = result.json();
    assert_eq!(json["valid"], false);
    let why = json["invalid_because"].to_string();
    assert!(why.contains("ended early") && why.contains(&server.address), "{why}");
    assert!(number(&json, "operations") > 0.0);
    let exported = place.ok(&["export", "runs.sqlite", "--format", "json"]);
    assert!(exported.contains("ended early"), "it is kept: {exported}");
}

#[test]
fn a_server_killed_during_the_load_is_reported() {
    let place = Place::new();
    let Some(mut server) = Server::start("memcached", &place, &["-m", "64"]) else { return };
    let store = format!("memcached://{}?timeout=500ms", server.address);
    let child = place.start(&["bench", &store, "--records", "100M", "--time", "1s"]);
    let loading = |address: &str| TcpStream::connect(address).is_ok_and(|s| sets(s) > 2000);
    until("the load", || loading(&server.address));
    server.child.kill().unwrap();
    let ended = command_output(child.wait_with_output().unwrap());
    assert_eq!(ended.code, 1, "{ended:?}");
    let lost = format!("into the load: {} was lost and did not come back", server.address);
    for words in ["the load failed", &lost, "the first failure: insert"] {
        assert!(ended.err.contains(words), "{words}: {}", ended.err);
    }

    // One that kvmeter has started: how it ended, too.
    let address = format!("127.0.0.1:{}", free_ports(1)[0]);
    let (_, port) = address.split_once(':').unwrap();
    let server = format!("port={port}");
    let child = place.start(&[
        "bench",
        "memcached?timeout=500ms",
        "--server",
        &server,
        "--records",
        "100M",
        "--time",
        "1s",
    ]);
    until("the load", || loading(&address));
    kill_listener(port);
    let ended = command_output(child.wait_with_output().unwrap());
    assert_eq!(ended.code, 1, "{ended:?}");
    for words in ["was lost and did not come back", "memcached (pid ", "signal: 9"] {
        assert!(ended.err.contains(words), "{words}: {}", ended.err);
    }
}

/// Kills the memcached that was started for a port.
fn kill_listener(port: &str) {
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        if words[0].ends_with(b"memcached") && words.contains(&port.as_bytes()) {
            let pid = process.file_name().into_string().unwrap();
            Command::new("kill").args(["-9", &pid]).status().unwrap();
        }
    }
}

/// What memcached says of the reads that it was asked, and of the writes.
fn gets(stream: TcpStream) -> u64 {
    statistic(stream, "STAT cmd_get ")
}

fn sets(stream: TcpStream) -> u64 {
    statistic(stream, "STAT cmd_set ")
}

fn statistic(mut stream: TcpStream, name: &str) -> u64 {
    use std::io::{Read, Write};
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    stream.write_all(b"stats\r\nquit\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.map_or(0, |count| count.trim().parse().unwrap())
}

/// The answer of a reading; null where there is none.
fn answer<'a>(run: &'a Value, signal: &str) -> &'a Value {
    let readings = run["readings"].as_array().unwrap();
    let json = readings.iter().find(|reading| reading["signal"] == signal);
    json.map_or(&Value::Null, |reading| &reading["answer"])
}

#[test]
fn unmeasured_server_latency_is_not_zero() {
    let known = server::launch::program("memcached").unwrap();
    let Ok((memcached, _)) = server::launch::installed(known) else {
        eprintln!("NOT TESTED: no memcached; install Debian's package of it");
        return;
    };
    let place = Place::new();
    let wrapper = place.file("wrapper.sh");
    let script = format!("#!/bin/sh\nunset LD_PRELOAD\nexec {} \"$@\"\n", memcached.display());
    std::fs::write(&wrapper, script).unwrap();
    std::fs::set_permissions(&wrapper, std::fs::Permissions::from_mode(0o755)).unwrap();
    let tapped = ["--server-latency", "tap", "--time", "0.3s"];
    let with = |server: &str, more: &[&str]| {
        let settings = ["--server", server];
        let args = bench("memcached", &[&settings[..], &tapped[..], more].concat())
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>();
        place.run(&args.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let required = ["--require", "server.latency"];

    let seen = with("threads=1", &required).json();
    assert!(answer(&seen, "server.latency")["value"].as_f64().unwrap() > 0.0, "{seen:#}");
    assert!(answer(&seen, "server.syscalls")["value"].as_f64().unwrap() > 0.0, "{seen:#}");

    let dropped = format!("threads=1,binary={}", wrapper.display());
    let unseen = with(&dropped, &[]).json();
    for signal in ["server.latency", "server.syscalls", "server.syscalls_per_mop"] {
        let reason = answer(&unseen, signal).to_string();
        assert!(reason.contains("drops LD_PRELOAD"), "{signal}: {reason}");
    }
    assert!(answer(&unseen, "server.latency.timed").is_null());
    assert!(answer(&unseen, "server.cpu")["value"].as_f64().unwrap() > 0.0, "the process is seen");
    assert!(unseen.get("server_latency_us").is_none(), "{unseen:#}");

    let refused = with(&dropped, &required);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.err.contains("`server.latency` is required"), "{}", refused.err);
    assert!(refused.err.contains("drops LD_PRELOAD"), "{}", refused.err);
}

#[test]
fn a_signal_of_a_server_is_required_by_its_name() {
    let place = Place::new();
    let args = ["bench", "null", "--time", "0.1s", "--require", "server.latncy"];
    place.refused(&args, &["--require", "did you mean `server.latency`"]);
}

const MARKDOWN: [&str; 4] = ["export", "small.sqlite", "--format", "markdown"];

#[test]
fn a_cache_that_evicted_most_of_its_data_is_noticed() {
    let place = Place::new();
    let Some(small) = Server::start("memcached", &place, &["-m", "8"]) else { return };
    let Some(large) = Server::start("memcached", &place, &["-m", "256"]) else { return };
    let measured = |server: &Server, file: &str, more: &[&str]| {
        let store = format!("memcached://{}", server.address);
        let mut args = vec!["bench", &store, "--records", "50k", "--value-size", "1000"];
        args.extend(["--popularity", "uniform", "--time", "1s", "--quiet", "--out", file]);
        args.extend(more);
        place.run(&args)
    };
    let result = measured(&small, "small.sqlite", &[]);
    assert!(
        result.out.contains("hit ratio") && result.out.contains("--expect-hit-ratio"),
        "{result:?}"
    );
    let result = measured(&large, "large.sqlite", &["--expect-hit-ratio", "0.99..1"]);
    assert!(result.out.contains("hit ratio"), "{result:?}");
    for shown in [&["report", "small.sqlite", "--markdown"][..], &MARKDOWN] {
        let shown = place.run(shown);
        assert!(shown.out.contains("| hit ratio |"), "{shown:?}");
    }
    let page = place.run(&["report", "small.sqlite", "--html", "page.html"]);
    let page = std::fs::read_to_string(place.file("page.html")).expect(&page.err);
    assert!(page.contains("hit ratio"));
    let compared = place.run(&["compare", "small.sqlite", "large.sqlite"]);
    assert!(compared.out.contains("did different work: hit ratio 0."), "{compared:?}");
    assert!(!compared.out.contains("no difference"), "{compared:?}");
    // What is expected is required.
    let result = measured(&small, "required.sqlite", &["--expect-hit-ratio", "90%"]);
    assert_eq!(result.code, 1, "{result:?}");
    assert!(result.out.contains("but 0.9..1 was expected"), "{result:?}");
    let result = place.run(&["bench", "null", "--expect-hit-ratio", "90"]);
    assert_eq!(result.code, 2, "{result:?}");
    assert!(
        result.err.contains("--expect-hit-ratio") && result.err.contains("`0.9..1`"),
        "{result:?}"
    );
}

#[test]
fn inserts_of_existing_keys_are_reported() {
    let place = Place::new();
    for program in ["redis-server", "memcached"] {
        let Some(server) = Server::start(program, &place, &[]) else { return };
        let scheme = program.trim_end_matches("-server");
        let warned = |clear: &str| -> Vec<bool> {
            let store = format!("{scheme}://{}{clear}", server.address);
            let json =
                place.json(&bench(&store, &["--mix", "insert=1", "--ops", "1k", "--repeat", "3"]));
            let runs = json.as_array().unwrap();
            let told = |run: &Value| run["warnings"].to_string().contains("16 keys to insert");
            runs.iter().map(told).collect()
        };
        assert_eq!(warned(""), [false, true, true], "{program}");
        assert_eq!(warned("?clear=flush"), [false, false, false], "{program}");
    }
}
