//! The adapter of etcd against real servers and hostile ones.
#![cfg(feature = "etcd")]
// Clippy exempts only functions marked `#[test]`, not their helpers.
#![allow(clippy::unwrap_used)]

#[path = "../../model/tests/shared/ports.rs"]
mod ports;
#[path = "shared/etcd.rs"]
mod servers;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use servers::Etcd;
use store::{Session, Store, StoreError, StoreUrl, StoreVisitor, open};

/// What a test does with an open store.
trait Test {
    fn run<S: Store>(self, store: &S);
}

struct Run<T>(T);

impl<T: Test> StoreVisitor for Run<T> {
    type Output = ();
    fn visit<S: Store>(self, store: S) {
        self.0.run(&store);
    }
}

fn with(url: &str, test: impl Test) {
    open(&url.parse().unwrap(), Run(test)).unwrap_or_else(|error| panic!("{url}: {error}"));
}

/// Nothing but opening.
struct Nothing;
impl Test for Nothing {
    fn run<S: Store>(self, _: &S) {}
}

fn refused(url: &str) -> StoreError {
    match url.parse::<StoreUrl>() {
        Err(error) => error,
        Ok(url) => open(&url, Run(Nothing)).expect_err("a refusal"),
    }
}

/// Checks that the user is told all of these words.
fn request(url: &str, words: &[&str]) {
    match refused(url) {
        StoreError::Request(said) => {
            assert!(words.iter().all(|word| said.contains(word)), "{url}: {said}");
        }
        other => panic!("{url}: {other:?}"),
    }
}

fn get(session: &mut impl Session, key: &[u8]) -> Option<Vec<u8>> {
    let mut value = None;
    session.read(key, |bytes| value = Some(bytes.to_vec())).unwrap();
    value
}

#[test]
fn a_single_server_says_what_it_is() {
    let Some(etcd) = Etcd::start(1, &[]) else { return };
    struct Says;
    impl Test for Says {
        fn run<S: Store>(self, store: &S) {
            assert!(store.version().starts_with("etcd 3."), "{}", store.version());
            let options = store.options();
            let option = |name: &str| {
                options.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
            };
            assert_eq!((option("members"), option("reads")), (Some("1"), Some("linearizable")));
            assert!(option("cluster_id").is_some_and(|id| id.len() > 8), "{options:?}");
            let capabilities = store.capabilities();
            assert!(
                capabilities.survives == Some(store::Survives::PowerLoss)
                    && capabilities.scan
                    && capabilities.stores_values
            );
        }
    }
    with(&etcd.url(), Says);
}

/// kvmeter deletes what is its own and nothing else.
#[test]
fn clearing_leaves_the_keys_of_others() {
    let Some(etcd) = Etcd::start(1, &[]) else { return };
    struct Clears;
    impl Test for Clears {
        fn run<S: Store>(self, store: &S) {
            let data = store.served().unwrap();
            let mut session = store.session().unwrap();
            // More than one request deletes.
            for number in 0..10_050_u32 {
                session.insert(&number.to_be_bytes(), b"value").unwrap();
            }
            data.mark("a name").unwrap();
            assert_eq!(data.marker().unwrap().as_deref(), Some("a name"));
            assert!(data.contains(&7_u32.to_be_bytes()).unwrap());
            // The marker is no record.
            assert_eq!(session.scan(b"", 20_000, |_, _| {}).unwrap(), 10_050);
            data.clear().unwrap();
            assert_eq!(data.marker().unwrap(), None);
            assert_eq!(session.scan(b"", 20_000, |_, _| {}).unwrap(), 0);
        }
    }
    struct Reads(&'static [u8]);
    impl Test for Reads {
        fn run<S: Store>(self, store: &S) {
            let mut session = store.session().unwrap();
            assert_eq!(get(&mut session, b"key").as_deref(), Some(self.0));
        }
    }
    struct Writes(&'static [u8]);
    impl Test for Writes {
        fn run<S: Store>(self, store: &S) {
            store.session().unwrap().insert(b"key", self.0).unwrap();
        }
    }
    let neighbours = ["kvmeter/data", "kvmeter/data0", "other/"];
    for prefix in neighbours {
        with(&format!("{}?prefix={prefix}", etcd.url()), Writes(prefix.as_bytes()));
    }
    with(&etcd.url(), Clears);
    for prefix in neighbours {
        with(&format!("{}?prefix={prefix}", etcd.url()), Reads(prefix.as_bytes()));
    }
}

#[test]
fn three_members_serve_while_one_is_killed() {
    let Some(mut etcd) = Etcd::start(3, &[]) else { return };
    let url = etcd.url();
    struct Survives<'a>(&'a mut Etcd);
    impl Test for Survives<'_> {
        fn run<S: Store>(self, store: &S) {
            let Survives(etcd) = self;
            let mut sessions: Vec<_> = (0..3).map(|_| store.session().unwrap()).collect();
            sessions[0].insert(b"key", b"value").unwrap();
            for session in &mut sessions {
                assert_eq!(get(session, b"key").as_deref(), Some(&b"value"[..]));
            }
            let data = store.served().unwrap();
            assert_eq!(data.warnings(), [""; 0]);
            etcd.kill(1);
            for session in &mut sessions {
                session.update(b"key", b"after").unwrap();
                assert_eq!(get(session, b"key").as_deref(), Some(&b"after"[..]));
            }
            let told = data.warnings().join("\n");
            let killed = format!("127.0.0.1:{} did not serve", etcd.ports[1]);
            assert!(told.contains(&killed) && told.contains("served late"), "{told}");
            assert_eq!(data.warnings(), [""; 0], "told once");
            store.settle(Duration::from_secs(10)).unwrap();
        }
    }
    with(&format!("{url}?timeout=9s"), Survives(&mut etcd));
    // A member that is down when the store is opened is told.
    struct Told(u16);
    impl Test for Told {
        fn run<S: Store>(self, store: &S) {
            let told = store.served().unwrap().warnings();
            let down = format!("127.0.0.1:{}: nothing listens there", self.0);
            assert!(told.len() == 1 && told[0].starts_with(&down), "{told:?}");
            store.session().unwrap().update(b"key", b"value").unwrap();
        }
    }
    with(&url, Told(etcd.ports[1]));
    // Without a majority nothing is written; each member alone still reads.
    etcd.kill(2);
    let alone = format!("etcd://127.0.0.1:{}?timeout=1s", etcd.ports[0]);
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        // Until the member has noticed, it does not answer in time.
        let StoreError::Failed(words) = refused(&alone) else { panic!("a failure") };
        if words.contains("leader") {
            break;
        }
        assert!(Instant::now() < until && words.contains("no answer within"), "{words}");
    }
}

#[test]
fn lost_servers_are_told_in_time() {
    let Some(mut etcd) = Etcd::start(1, &[]) else { return };
    let url = format!("{}?timeout=2s", etcd.url());
    struct Lost<'a>(&'a mut Etcd);
    impl Test for Lost<'_> {
        fn run<S: Store>(self, store: &S) {
            let mut session = store.session().unwrap();
            session.insert(b"key", b"value").unwrap();
            self.0.kill(0);
            let begun = Instant::now();
            let error = session.update(b"key", b"value").unwrap_err();
            assert!(matches!(&error, StoreError::Lost(words) if words.contains("2s")), "{error:?}");
            assert!(begun.elapsed() < Duration::from_secs(4));
            assert!(matches!(store.session().err(), Some(StoreError::Lost(_))));
            assert_eq!(store.statistics(), []);
        }
    }
    with(&url, Lost(&mut etcd));
    assert!(
        matches!(refused(&url), StoreError::Failed(words) if words.contains("nothing listens"))
    );
}

#[test]
fn serializable_reads_are_served_by_the_member_alone() {
    let Some(etcd) = Etcd::start(3, &[]) else { return };
    struct Reads;
    impl Test for Reads {
        fn run<S: Store>(self, store: &S) {
            let reads = ("reads".to_owned(), "serializable".to_owned());
            assert!(store.options().contains(&reads));
            let mut sessions: Vec<_> = (0..3).map(|_| store.session().unwrap()).collect();
            sessions[0].insert(b"key", b"value").unwrap();
            store.settle(Duration::from_secs(10)).unwrap();
            for session in &mut sessions {
                assert_eq!(get(session, b"key").as_deref(), Some(&b"value"[..]));
                assert_eq!(session.scan(b"", 5, |_, _| {}).unwrap(), 1);
            }
        }
    }
    with(&format!("{}?reads=serializable", etcd.url()), Reads);
    request(&format!("{}?reads=serialisable", etcd.url()), &["did you mean `serializable`?"]);
}

#[test]
fn logs_in_and_explains_what_is_refused() {
    let Some(etcd) = Etcd::start(1, &["--bcrypt-cost", "4"]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let password = |text: &str| {
        let path = folder.path().join(text);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        path.display().to_string()
    };
    let login = |user: &str, text: &str| {
        format!("{}?user={user}&password_file={}", etcd.url(), password(text))
    };
    request(&login("user", "secret"), &["authentication is not enabled", "leave out `user`"]);
    if !etcd.require_login() {
        return;
    }
    struct Writes;
    impl Test for Writes {
        fn run<S: Store>(self, store: &S) {
            let mut session = store.session().unwrap();
            session.insert(b"key", b"value").unwrap();
            assert_eq!(session.scan(b"", 5, |_, _| {}).unwrap(), 1);
            assert!(!format!("{:?}", store.options()).contains("secret"));
        }
    }
    with(&login("user", "secret"), Writes);
    request(&etcd.url(), &["a login is required", "password_file"]);
    request(&login("user", "wrong"), &["the password is not theirs"]);
    request(&login("nobody", "secret"), &["the password is not theirs"]);
    let elsewhere = format!("{}&prefix=elsewhere/", login("user", "secret"));
    request(&elsewhere, &["lacks a permission", "grant-permission"]);
    let nameless = format!("{}?password_file={}", etcd.url(), password("secret"));
    request(&nameless, &["add `user`"]);
    request("etcd://user:secret@h?user=user", &["other users see command lines"]);
}

/// The members forget a token, and the session logs in again.
#[test]
fn a_forgotten_login_is_renewed() {
    let Some(etcd) = Etcd::start(1, &["--bcrypt-cost", "4", "--auth-token-ttl", "1"]) else {
        return;
    };
    if !etcd.require_login() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("password");
    std::fs::write(&path, "secret").unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    struct Renews;
    impl Test for Renews {
        fn run<S: Store>(self, store: &S) {
            let mut sessions: Vec<_> = (0..2).map(|_| store.session().unwrap()).collect();
            sessions[0].insert(b"key", b"value").unwrap();
            std::thread::sleep(Duration::from_millis(3500));
            for session in &mut sessions {
                assert_eq!(get(session, b"key").as_deref(), Some(&b"value"[..]));
            }
        }
    }
    with(&format!("{}?user=user&password_file={}", etcd.url(), path.display()), Renews);
}

/// A certificate authority, a server's pair and a client's, as files.
fn certificates(folder: &Path) {
    let write = |name: &str, text: String| {
        std::fs::write(folder.join(name), text).unwrap();
        std::fs::set_permissions(folder.join(name), PermissionsExt::from_mode(0o600)).unwrap();
    };
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    write("ca.pem", ca.pem());
    for (name, host) in [("server", "127.0.0.1"), ("client", "client")] {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        write(&format!("{name}.pem"), params.signed_by(&key, &ca).unwrap().pem());
        write(&format!("{name}.key"), key.serialize_pem());
    }
}

#[test]
fn speaks_tls_with_and_without_a_certificate_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path());
    let file = |name: &str| folder.path().join(name).display().to_string();
    let (ca, cert, key) = (file("ca.pem"), file("server.pem"), file("server.key"));
    let own = ["--cert-file", &cert, "--key-file", &key];
    let mutual = [&own[..], &["--client-cert-auth", "--trusted-ca-file", &ca]].concat();
    struct Writes;
    impl Test for Writes {
        fn run<S: Store>(self, store: &S) {
            let mut session = store.session().unwrap();
            session.insert(b"key", &[7; 100_000]).unwrap();
            assert_eq!(get(&mut session, b"key").unwrap(), [7; 100_000]);
        }
    }
    let client = format!("cert={}&key={}", file("client.pem"), file("client.key"));
    {
        let Some(etcd) = Etcd::start(1, &own) else { return };
        with(&format!("{}?tls=on&ca={ca}", etcd.url()), Writes);
        with(&format!("{}?tls=on&any_certificate=on", etcd.url()), Writes);
        request(&format!("{}?tls=on&ca={ca}&server_name=other", etcd.url()), &["server_name"]);
        let plain = refused(&etcd.url());
        assert!(
            matches!(&plain, StoreError::Failed(words) if words.contains("`tls=on`")),
            "{plain:?}"
        );
    }
    {
        let Some(etcd) = Etcd::start(1, &mutual) else { return };
        with(&format!("{}?tls=on&ca={ca}&{client}", etcd.url()), Writes);
        // Its alert may come after the end of the connection.
        let error = refused(&format!("{}?tls=on&ca={ca}", etcd.url())).to_string();
        assert!(error.contains("client certificate") && error.contains("`key`"), "{error}");
    }
    let Some(etcd) = Etcd::start(1, &[]) else { return };
    request(&format!("{}?tls=on&ca={ca}", etcd.url()), &["does not speak TLS"]);
}

#[test]
fn limits_of_the_server_have_a_way_out() {
    // A quota of 10 pages and some.
    let Some(etcd) = Etcd::start(1, &["--quota-backend-bytes", "4000000"]) else { return };
    struct Fills;
    impl Test for Fills {
        fn run<S: Store>(self, store: &S) {
            let mut session = store.session().unwrap();
            for length in [1_600_000, 3_000_000] {
                let error = session.insert(b"large", &vec![1; length]).unwrap_err();
                let words = error.to_string();
                assert!(matches!(error, StoreError::Failed(_)), "{words}");
                assert!(words.contains("--max-request-bytes"), "{words}");
            }
            let full = (0..100_u32)
                .find_map(|number| session.insert(&number.to_be_bytes(), &[1; 500_000]).err());
            let words = full.as_ref().map(ToString::to_string).unwrap_or_default();
            assert!(matches!(full, Some(StoreError::Full(_))), "{words}");
            assert!(words.contains("--quota-backend-bytes"), "{words}");
        }
    }
    with(&etcd.url(), Fills);
}

#[test]
fn members_of_two_clusters_are_refused() {
    let (Some(one), Some(other)) = (Etcd::start(1, &[]), Etcd::start(1, &[])) else { return };
    let both = format!("{},127.0.0.1:{}", one.url(), other.ports[0]);
    request(&both, &["answers for cluster", "name one cluster"]);
}

/// A peer that sends this to every connection and then waits.
fn peer(bytes: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let _ = stream.write_all(bytes);
                let mut sink = [0; 1024];
                while stream.read(&mut sink).is_ok_and(|read| read > 0) {}
            });
        }
    });
    port
}

#[test]
fn strangers_are_refused_in_time() {
    for bytes in [&b""[..], b"ERROR\r\n", &[0xff; 64], b"HTTP/1.1 400 Bad Request\r\n\r\n"] {
        let begun = Instant::now();
        let error = refused(&format!("etcd://127.0.0.1:{}?timeout=300ms", peer(bytes)));
        assert!(matches!(error, StoreError::Failed(_)), "{error:?}");
        assert!(begun.elapsed() < Duration::from_secs(5), "{error}");
    }
    request("etcd:///run/etcd.sock", &["etcd://HOST:PORT"]);
    request("etcd://no-such-host.invalid:1", &["check the spelling"]);
}
