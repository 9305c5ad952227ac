//! Redfish by HTTPS, against services with certificates that the tests make.

#![allow(clippy::unwrap_used)]

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::Recorded;
use host::probe::energy::RedfishSettings;
use host::{Context, EnergySettings, PROBES, RunWatch};
use model::{ReadingValue, Scope};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

type Stream = StreamOwned<ServerConnection, TcpStream>;

/// What a service does with a request: its path, and the header `Authorization`.
type Answer = fn(&str, Option<&str>, &mut Stream, &AtomicBool);

/// A service with a certificate for 127.0.0.1, and the folder with that of its signer.
struct Redfish {
    address: String,
    folder: tempfile::TempDir,
    ended: Arc<AtomicBool>,
}

impl Drop for Redfish {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

impl Redfish {
    fn serving(answer: Answer) -> Redfish {
        Redfish::named("127.0.0.1", answer)
    }

    fn named(name: &str, answer: Answer) -> Redfish {
        let mut params = CertificateParams::new([]).unwrap();
        params.distinguished_name.push(DnType::CommonName, "signer");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("ca.pem"), issuer.pem()).unwrap();
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            )
            .unwrap();
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let ended = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&ended);
        thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let (config, until) = (Arc::clone(&config), Arc::clone(&until));
                thread::spawn(move || serve(config, socket, answer, &until));
            }
        });
        Redfish { address, folder, ended }
    }

    fn ca(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    fn settings(&self) -> RedfishSettings {
        RedfishSettings {
            url: format!("https://{}", self.address),
            ca: Some(self.ca()),
            ..RedfishSettings::default()
        }
    }

    /// Settings with the login of [`power`].
    fn with_login(&self, password: &str) -> RedfishSettings {
        let file = self.folder.path().join("password");
        fs::write(&file, format!("{password}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        RedfishSettings {
            user: Some("monitor".to_owned()),
            password_file: Some(file),
            ..self.settings()
        }
    }
}

fn serve(config: Arc<ServerConfig>, socket: TcpStream, answer: Answer, ended: &AtomicBool) {
    let connection = ServerConnection::new(config).unwrap();
    let mut reader = BufReader::new(StreamOwned::new(connection, socket));
    loop {
        let (mut first, mut login) = (String::new(), None);
        // A client that refuses the certificate goes.
        if reader.read_line(&mut first).unwrap_or(0) == 0 {
            return;
        }
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("authorization")
            {
                login = Some(value.trim().to_owned());
            }
        }
        let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
        answer(&path, login.as_deref(), reader.get_mut(), ended);
    }
}

fn send(stream: &mut Stream, status: &str, body: &str) {
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", body.len());
    let _ = stream.write_all(format!("{head}{body}").as_bytes());
    let _ = stream.flush();
}

const CHASSIS: &str = r#"{"Members": [{"@odata.id": "/redfish/v1/Chassis/1U"}]}"#;

/// A controller that has the older resource alone and wants the login `monitor:s3cret`.
fn power(path: &str, login: Option<&str>, stream: &mut Stream, _: &AtomicBool) {
    // printf 'monitor:s3cret' | base64
    if login != Some("Basic bW9uaXRvcjpzM2NyZXQ=") {
        return send(stream, "401 Unauthorized", "{}");
    }
    match path {
        "/redfish/v1/Chassis" => send(stream, "200 OK", CHASSIS),
        "/redfish/v1/Chassis/1U/Power" => {
            send(stream, "200 OK", r#"{"PowerControl": [{"PowerConsumedWatts": 344}]}"#);
        }
        _ => send(stream, "404 Not Found", "{}"),
    }
}

/// A controller with the newer resource, and with the older one for another number.
fn environment(path: &str, _: Option<&str>, stream: &mut Stream, _: &AtomicBool) {
    match path {
        "/redfish/v1/Chassis" => send(
            stream,
            "200 OK",
            r#"{"Members": [{"@odata.id": "/redfish/v1/Chassis/A"},
                            {"@odata.id": "/redfish/v1/Chassis/B"}]}"#,
        ),
        "/redfish/v1/Chassis/B/EnvironmentMetrics" => send(
            stream,
            "200 OK",
            r#"{"PowerWatts": {"Reading": 207.5}, "EnergykWh": {"Reading": 1200.25}}"#,
        ),
        "/redfish/v1/Chassis/B/Power" => {
            send(stream, "200 OK", r#"{"PowerControl": [{"PowerConsumedWatts": 1}]}"#);
        }
        _ => send(stream, "404 Not Found", "{}"),
    }
}

/// The answer never ends.
fn endless(_: &str, _: Option<&str>, stream: &mut Stream, ended: &AtomicBool) {
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n[");
    let many = [b' '; 1 << 14];
    while !ended.load(Ordering::Relaxed) && stream.write_all(&many).is_ok() {}
}

/// The answer comes too slowly to end within any limit.
fn slow(_: &str, _: Option<&str>, stream: &mut Stream, ended: &AtomicBool) {
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n[");
    while !ended.load(Ordering::Relaxed) && stream.write_all(b" ").is_ok() {
        thread::sleep(Duration::from_millis(20));
    }
}

/// The readings of a window with this service, the probe's alone.
fn observe(settings: RedfishSettings) -> host::WatchReadings {
    let machine = Recorded::empty();
    let energy = EnergySettings { redfish: Some(settings), ..EnergySettings::default() };
    let watch = RunWatch::begin(&machine.root, &Context { energy, ..Context::default() });
    watch.end()
}

/// Why the probe cannot be made, and what to do about it.
fn why(settings: RedfishSettings) -> (String, String) {
    let machine = Recorded::empty();
    let energy = EnergySettings { redfish: Some(settings), ..EnergySettings::default() };
    let spec = PROBES.iter().find(|spec| spec.name == "redfish").unwrap();
    let context = Context { energy, ..Context::default() };
    let why = spec.make(&machine.root, &context).err().expect("a probe");
    (why.reason, why.remedy)
}

#[test]
fn watts_come_from_the_older_and_the_newer_resource() {
    let service = Redfish::serving(power);
    let observed = observe(service.with_login("s3cret"));
    let reading = |signal: &str| {
        observed.readings.iter().find(|reading| reading.signal == signal).unwrap().clone()
    };
    let watts = reading("power.redfish");
    assert_eq!((watts.value(), watts.scope), (Some(344.0), Scope::Node), "{watts:?}");
    let place = "/redfish/v1/Chassis/1U/Power at /PowerControl/0/PowerConsumedWatts";
    assert!(watts.source.ends_with(&format!("{}{place}", service.address)), "{watts:?}");
    assert!(reading("energy.redfish").value().is_some_and(|joules| joules > 0.0));

    let service = Redfish::serving(environment);
    let chassis = |id: &str| RedfishSettings {
        url: format!("https://{}/redfish/v1/Chassis/{id}", service.address),
        ..service.settings()
    };
    let observed = observe(chassis("B"));
    let watts = observed.readings.iter().find(|one| one.signal == "power.redfish").unwrap();
    assert_eq!(watts.answer, ReadingValue::Value(207.5), "{watts:?}");
    assert!(watts.source.contains("EnvironmentMetrics at /PowerWatts/Reading"), "{watts:?}");
    let (reason, remedy) = why(service.settings());
    assert!(reason.ends_with("has 2 chassis"), "{reason}");
    assert!(remedy.contains("/redfish/v1/Chassis/A|/redfish/v1/Chassis/B"), "{remedy}");
    let (reason, _) = why(chassis("C"));
    assert!(reason.contains("neither PowerWatts in EnvironmentMetrics nor"), "{reason}");
}

#[test]
fn a_certificate_of_another_signer_or_for_another_name_is_refused() {
    let (service, other) = (Redfish::serving(environment), Redfish::serving(environment));
    let foreign = RedfishSettings { ca: Some(other.ca()), ..service.settings() };
    let (reason, remedy) = why(foreign);
    assert!(reason.contains("signed by an unknown authority"), "{reason}");
    assert!(remedy.contains("`ca`"), "{remedy}");
    // The system's authorities have not signed it, either.
    let (reason, _) = why(RedfishSettings { ca: None, ..service.settings() });
    assert!(reason.contains("unknown authority") || reason.contains("ca"), "{reason}");
    let named = Redfish::named("bmc.example", environment);
    let (reason, _) = why(named.settings());
    assert!(reason.contains("is not for"), "{reason}");
    let missing = RedfishSettings { ca: Some("/none/ca.pem".into()), ..service.settings() };
    assert!(why(missing).0.contains("cannot read the CA file /none/ca.pem"));
}

#[test]
fn logins_are_read_from_private_files_and_variables() {
    let service = Redfish::serving(power);
    let (reason, remedy) = why(service.with_login("wrong"));
    assert!(reason.contains("refuses the login"), "{reason}");
    assert!(remedy.contains("password_file"), "{remedy}");
    assert!(why(service.settings()).0.contains("refuses the login"));
    let settings = service.with_login("s3cret");
    let file = settings.password_file.clone().unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let (reason, remedy) = why(settings.clone());
    assert!(reason.contains("everyone can read the password file"), "{reason}");
    assert!(remedy.starts_with("run `chmod go= "), "{remedy}");
    let by_variable = RedfishSettings {
        password_file: None,
        password_env: Some("KVMETER_TEST_NO_SUCH_VARIABLE".to_owned()),
        ..settings
    };
    assert!(why(by_variable).0.contains("KVMETER_TEST_NO_SUCH_VARIABLE holds no password"));
}

#[test]
fn endless_and_slow_answers_end_at_a_limit() {
    let service = Redfish::serving(endless);
    let (reason, _) = why(service.settings());
    assert!(reason.contains("did not answer"), "{reason}");
    let service = Redfish::serving(slow);
    let start = Instant::now();
    let (reason, _) = why(service.settings());
    assert!(reason.contains("did not answer") && reason.contains("timeout"), "{reason}");
    // The limit is 10 s; the rest is for a busy machine.
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    // Nothing listens at an address without a service.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let nowhere = RedfishSettings { url: format!("https://{address}"), ..service.settings() };
    assert!(why(nowhere).0.contains("did not answer"));
}

#[test]
fn words_of_the_command_line_become_settings_without_a_password() {
    let set = |word: &str| {
        let mut settings = EnergySettings::default();
        settings.set(word).map(|_| settings.redfish.unwrap())
    };
    let settings = set(
        "redfish=https://bmc.lan/redfish/v1/Chassis/1?user=monitor&password_file=/etc/b,c&ca=/c",
    )
    .unwrap();
    assert_eq!(settings.url, "https://bmc.lan/redfish/v1/Chassis/1");
    assert_eq!(settings.user.as_deref(), Some("monitor"));
    assert_eq!(settings.password_file, Some("/etc/b,c".into()));
    assert_eq!(settings.ca, Some("/c".into()));
    assert!(set("redfish=https://bmc.lan").is_ok());
    for (word, words) in [
        ("redfish=http://bmc.lan", "an https:// address"),
        ("redfish=https://", "an https:// address"),
        ("redfish=https://user:s3cret@bmc.lan", "without a user and a password"),
        ("redfish=https://bmc.lan?password=s3cret", "password_file or password_env"),
        ("redfish=https://bmc.lan?token=x", "user, password_file, password_env or ca"),
        ("redfish=https://bmc.lan?user=x", "password_file or password_env beside it"),
        ("redfish=https://bmc.lan?password_env=X", "a password belongs to a user"),
        ("redfish=https://b?user=x&password_env=X&password_file=/f", "leave out password_env"),
        ("redfish=https://bmc.lan#x", "at most the path of a chassis"),
    ] {
        let error = set(word).unwrap_err().to_string();
        assert!(error.contains(words), "{word}: {error}");
        assert!(!error.contains("s3cret"), "{error}");
    }
}
