//! Net-SNMP's agent as Debian packages it, with values of the test's own. Skipped without it.

use std::fs;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use host::probe::energy::{SnmpSettings, SnmpVersion};
use model::Scope;
use tempfile::TempDir;

use crate::{LIMIT, made, power_and_energy, refusal, watts, why};

/// Debian's place for it, which the search path of users does not have.
const SNMPD: &str = "/usr/sbin/snmpd";

/// Outlets of a PDU: whole watts, and what models answer that do not measure.
const FIRST: &str = "1.3.6.1.4.1.318.1.1.26.9.4.3.1.7.1";
const SECOND: &str = "1.3.6.1.4.1.318.1.1.26.9.4.3.1.7.2";
const UNMEASURED: &str = "1.3.6.1.4.1.318.1.1.26.9.4.3.1.7.3";
const ABSENT: &str = "1.3.6.1.4.1.318.1.1.26.9.4.3.1.7.4";
/// The same number as text, as an unsigned and as a counter.
const TEXT: &str = "1.3.6.1.4.1.99999.1.1";
const UNSIGNED: &str = "1.3.6.1.4.1.99999.1.2";
const COUNTER: &str = "1.3.6.1.4.1.99999.1.3";
/// A number of 64 bits, which a script answers.
const WIDE: &str = "1.3.6.1.4.1.99999.2";
/// The load average as an opaque float (UCD-SNMP-MIB, laLoadFloat).
const FLOAT: &str = "1.3.6.1.4.1.2021.10.1.6.1";

/// An agent that runs until this goes out of scope.
struct Snmpd {
    child: Child,
    address: String,
    place: TempDir,
}

impl Drop for Snmpd {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Snmpd {
    fn start() -> Option<Snmpd> {
        if !Path::new(SNMPD).exists() {
            eprintln!("SKIPPED: {SNMPD} is not installed (Debian's package snmpd)");
            return None;
        }
        let start = Instant::now();
        loop {
            let mut agent = Snmpd::at_a_free_port();
            while agent.child.try_wait().unwrap().is_none() {
                if made(&agent.settings(&[FIRST])).is_ok() {
                    return Some(agent);
                }
                assert!(start.elapsed() < LIMIT, "{}", agent.log());
            }
            // Another program may have taken the port.
            assert!(start.elapsed() < LIMIT, "{}", agent.log());
        }
    }

    fn at_a_free_port() -> Snmpd {
        let free = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap().to_string();
        drop(free);
        let place = tempfile::tempdir().unwrap();
        let script = place.path().join("wide");
        fs::write(&script, "echo $2; echo counter64; echo 4294967340\n").unwrap();
        let config = format!(
            "agentaddress udp:{address}\n\
             rocommunity s3cret 127.0.0.1\n\
             override {FIRST} integer 137\n\
             override {SECOND} integer 205\n\
             override {UNMEASURED} integer -1\n\
             override {TEXT} octet_str 137.25\n\
             override {UNSIGNED} uinteger 4000000000\n\
             override {COUNTER} counter 137\n\
             pass {WIDE} /bin/sh {}\n",
            script.display()
        );
        fs::write(place.path().join("snmpd.conf"), config).unwrap();
        fs::write(place.path().join("community"), "s3cret\n").unwrap();
        private(&place.path().join("community"));
        let child = Command::new(SNMPD)
            .args(["-f", "-C", "-c"])
            .arg(place.path().join("snmpd.conf"))
            .arg("-Lf")
            .arg(place.path().join("log"))
            .env("SNMP_PERSISTENT_DIR", place.path())
            // Without the descriptions of objects, which Debian does not have.
            .env("MIBS", "")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Snmpd { child, address, place }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.file("log")).unwrap_or_default()
    }

    fn settings(&self, oids: &[&str]) -> SnmpSettings {
        let community_file = Some(self.file("community"));
        SnmpSettings { community_file, ..SnmpSettings::of(&self.address, oids) }
    }
}

fn private(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

const VERSIONS: [SnmpVersion; 2] = [SnmpVersion::V1, SnmpVersion::V2c];

#[test]
fn watts_and_joules_are_read_by_both_versions() {
    let Some(agent) = Snmpd::start() else { return };
    for version in VERSIONS {
        let settings = SnmpSettings { version, ..agent.settings(&[FIRST]) };
        let (power, energy) = power_and_energy(&settings);
        assert_eq!((power.value(), power.scope), (Some(137.0), Scope::Wall), "{power:?}");
        assert_eq!(power.source, format!("SNMP {} at {FIRST}", agent.address));
        let expected = 137.0 * energy.window_s;
        let joules = energy.value().unwrap();
        assert!((joules / expected - 1.0).abs() < 0.01, "{joules} J, {expected} J");
        // Two outlets of one machine, in tenths of a watt.
        let both = SnmpSettings { version, factor: 0.1, ..agent.settings(&[FIRST, SECOND]) };
        let (power, _) = power_and_energy(&both);
        assert!((power.value().unwrap() - 34.2).abs() < 1e-9, "{power:?}");
        assert!(power.source.ends_with(&format!("at {FIRST} + {SECOND}")), "{power:?}");
    }
}

#[test]
fn every_type_of_number_is_read() {
    let Some(agent) = Snmpd::start() else { return };
    for (oid, expected) in
        [(TEXT, 137.25), (UNSIGNED, 4e9), (COUNTER, 137.0), (WIDE, 4_294_967_340.0)]
    {
        assert_eq!(watts(&agent.settings(&[oid])), expected, "{oid}");
    }
    // Version 1 has no numbers of 64 bits.
    let narrow = SnmpSettings { version: SnmpVersion::V1, ..agent.settings(&[WIDE]) };
    let (reason, _) = refusal(&narrow);
    assert!(reason.ends_with(&format!("has no object {WIDE}")), "{reason}");
    // The load may be zero, which only a window refuses.
    let float = agent.settings(&[FLOAT]);
    let start = Instant::now();
    while let Err(why) = made(&float) {
        assert!(start.elapsed() < LIMIT, "{why:?}");
    }
}

#[test]
fn a_missing_object_and_one_without_a_measurement_are_named() {
    let Some(agent) = Snmpd::start() else { return };
    for version in VERSIONS {
        let missing = SnmpSettings { version, ..agent.settings(&[FIRST, ABSENT]) };
        let (reason, _) = refusal(&missing);
        assert!(reason.ends_with(&format!("has no object {ABSENT}")), "{reason}");
        // A column without its row.
        let column = ABSENT.trim_end_matches(".4");
        let column = SnmpSettings { version, ..agent.settings(&[column]) };
        let (reason, _) = refusal(&column);
        assert!(reason.contains("has no object"), "{reason}");
        let unmeasured = SnmpSettings { version, ..agent.settings(&[UNMEASURED]) };
        let (reason, _) = refusal(&unmeasured);
        assert!(reason.contains("is -1, which is not a power"), "{reason}");
    }
}

#[test]
fn a_wrong_community_has_no_answer() {
    let Some(agent) = Snmpd::start() else { return };
    // The community is `public` where none is named.
    let public = SnmpSettings { community_file: None, ..agent.settings(&[FIRST]) };
    let (reason, remedy) = why(&public);
    assert!(reason.ends_with("did not answer 3 requests of SNMPv2c within 1.8 s"), "{reason}");
    assert!(remedy.contains("`community_file` of the probe snmp"), "{remedy}");
    fs::write(agent.file("wrong"), "secret").unwrap();
    let exposed =
        SnmpSettings { community_file: Some(agent.file("wrong")), ..agent.settings(&[FIRST]) };
    fs::set_permissions(agent.file("wrong"), fs::Permissions::from_mode(0o644)).unwrap();
    let (reason, remedy) = why(&exposed);
    assert!(reason.contains("everyone can read the community file"), "{reason}");
    assert!(remedy.starts_with("run `chmod go= "), "{remedy}");
    private(&agent.file("wrong"));
    let (reason, _) = why(&SnmpSettings { version: SnmpVersion::V1, ..exposed });
    assert!(reason.contains("requests of SNMPv1 within"), "{reason}");
    let variable = "KVMETER_TEST_NO_SUCH_VARIABLE".to_owned();
    let unset = SnmpSettings { community_env: Some(variable), ..public };
    assert!(why(&unset).0.contains("KVMETER_TEST_NO_SUCH_VARIABLE holds no community"));
}
