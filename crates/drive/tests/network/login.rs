//! Logins, and servers that cannot be reached.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Instant;

use drive::PhaseKind;
use store::StoreError;
use tempfile::TempDir;

use crate::ports::free_ports;
use crate::support::*;

/// Files in a folder of their own.
struct Files(TempDir);

impl Files {
    fn new() -> Files {
        Files(TempDir::new().unwrap())
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path: PathBuf = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

fn works(url: &str) {
    let network = network(url);
    let workload = workload("ycsb-a", 100);
    load(&network, &workload);
    let mut plan = plan(PhaseKind::Mix, 1, 2, 4);
    plan.shape.until = operations(500);
    let outcome = run_phase(&network, &workload, &plan).unwrap();
    assert_eq!(outcome.failures, [], "{url}");
    assert!(outcome.verified > 0);
}

/// It is a request error, and the message does not show the secret.
fn refused(url: &str, words: &str) {
    let error = connect(url).unwrap_err();
    assert!(matches!(error, StoreError::Request(_)), "{error:?}");
    let text = error.to_string();
    assert!(text.contains(words), "{url}: {text}");
    assert!(!text.contains("wrong-secret") && !text.contains("right-secret"), "{text}");
}

#[test]
fn redis_accepts_the_right_password_only() {
    let Some(server) = Real::redis(&["--requirepass", "right-secret"]) else { return };
    let files = Files::new();
    let right = files.write("right", "right-secret\n");
    let wrong = files.write("wrong", "wrong-secret\n");
    let url = format!("redis://{}", server.address());
    for protocol in ["resp2", "resp3"] {
        works(&format!("{url}?protocol={protocol}&password_file={right}"));
        refused(&format!("{url}?protocol={protocol}&password_file={wrong}"), "refused the login");
        refused(&format!("{url}?protocol={protocol}"), "requires a login");
    }
    refused(&format!("{url}?password_file={right}&db=99"), "database");
    works(&format!("{url}?password_file={right}&db=3"));
}

#[test]
fn a_user_with_read_and_write_permission_suffices() {
    let rules = "--user teller on >right-secret ~* -@all +get +set +mget +del --user default off";
    let Some(server) = Real::redis(&rules.split(' ').collect::<Vec<_>>()) else { return };
    let files = Files::new();
    let right = files.write("right", "right-secret");
    let url = format!("redis://{}?user=teller&password_file={right}", server.address());
    works(&url);
    let network = network(&url);
    assert!(drive::Target::statistics(&*network).is_empty(), "it may not ask for them");
    refused(&format!("redis://{}?password_file={right}", server.address()), "refused the login");
}

#[test]
fn memcached_accepts_the_right_password_only() {
    let files = Files::new();
    let users = files.write("users", "teller:right-secret\n");
    let right = files.write("right", "right-secret");
    let wrong = files.write("wrong", "wrong-secret");
    let Some(server) = Real::memcached(&["-Y", &users]) else { return };
    let url = format!("memcached://{}?user=teller", server.address());
    for protocol in ["meta", "text"] {
        works(&format!("{url}&protocol={protocol}&password_file={right}"));
        refused(&format!("{url}&protocol={protocol}&password_file={wrong}"), "refused the login");
    }
    refused(&format!("memcached://{}", server.address()), "requires a login");
}

#[test]
fn a_superfluous_password_is_refused() {
    let files = Files::new();
    let right = files.write("right", "right-secret");
    if let Some(server) = Real::redis(&[]) {
        let url = format!("redis://{}?password_file={right}", server.address());
        refused(&url, "requires none");
    }
    if let Some(server) = Real::memcached(&[]) {
        for protocol in ["binary", "meta"] {
            let url = format!(
                "memcached://{}?user=teller&password_file={right}&protocol={protocol}",
                server.address()
            );
            refused(&url, "leave it out");
        }
    }
}

#[test]
fn an_unreachable_server_is_reported_at_once() {
    let free = free_ports(1)[0];
    let begun = Instant::now();
    for scheme in ["memcached", "redis"] {
        let error = connect(&format!("{scheme}://127.0.0.1:{free}")).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(&free.to_string()) && text.contains("nothing listens"), "{text}");
        let error = connect(&format!("{scheme}:///nowhere/socket")).unwrap_err();
        assert!(error.to_string().contains("there is no such socket"), "{error}");
    }
    assert!(begun.elapsed() < LONG / 4);
}

#[test]
fn another_kind_of_server_is_named() {
    let Some(redis) = Real::redis(&[]) else { return };
    let Some(memcached) = Real::memcached(&[]) else { return };
    refused(&format!("memcached://{}?protocol=text&timeout=1s", redis.address()), "redis://");
    refused(&format!("redis://{}?timeout=1s", memcached.address()), "memcached://");
}
