//! Which objects of which SNMP agent are read, and how it is reached.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::probe::energy::settings::{ReadFlag, SettingError, SourceSettings, one, positive};

/// The port of SNMP agents (RFC 3417).
const PORT: u16 = 161;

/// Most objects that are added: their names fit into the 484 bytes that every agent takes (RFC 3417).
const MAX_OBJECTS: usize = 16;
/// Most numbers of an object's name (RFC 3416).
const MAX_ARCS: usize = 128;

/// A PDU or other meter with an SNMP agent, and the objects that hold its power.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnmpSettings {
    /// `pdu.lan`, `10.0.0.5:1161`, `2001:db8::5`, `[2001:db8::5]:1161`; the port is 161 without one.
    pub address: String,
    /// Numeric names of objects down to the instance; their values are added.
    pub oids: Vec<String>,
    /// Watts in one unit of these objects: 0.1 for tenths of a watt.
    #[serde(default = "one")]
    pub factor: f64,
    #[serde(default)]
    pub version: SnmpVersion,
    /// The file with the community, which others cannot read; without one it is `public`.
    #[serde(default)]
    pub community_file: Option<PathBuf>,
    /// The environment variable with the community.
    #[serde(default)]
    pub community_env: Option<String>,
}

/// Versions that are secured by a community alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SnmpVersion {
    #[serde(rename = "v1")]
    V1,
    #[default]
    #[serde(rename = "v2c")]
    V2c,
}

impl SnmpVersion {
    const ALL: [SnmpVersion; 2] = [SnmpVersion::V1, SnmpVersion::V2c];

    pub(super) fn name(self) -> &'static str {
        match self {
            SnmpVersion::V1 => "v1",
            SnmpVersion::V2c => "v2c",
        }
    }
}

impl SnmpSettings {
    /// Objects of an agent whose unit is the watt, by version 2c with the community `public`.
    pub fn of(address: impl Into<String>, oids: &[&str]) -> Self {
        SnmpSettings {
            address: address.into(),
            oids: oids.iter().map(|oid| (*oid).to_owned()).collect(),
            factor: one(),
            version: SnmpVersion::default(),
            community_file: None,
            community_env: None,
        }
    }

    /// The host and the port.
    pub(super) fn endpoint(&self) -> Option<(&str, u16)> {
        let address = self.address.as_str();
        let (host, port) = match address.strip_prefix('[') {
            Some(rest) => {
                let (host, behind) = rest.split_once(']')?;
                match behind {
                    "" => (host, None),
                    _ => (host, Some(behind.strip_prefix(':')?)),
                }
            }
            // An IPv6 address without a port.
            None if address.matches(':').count() > 1 => (address, None),
            None => match address.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (address, None),
            },
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._:%".contains(c);
        let port = port.map_or(Some(PORT), |port| port.parse().ok().filter(|port| *port > 0))?;
        (!host.is_empty() && host.chars().all(plain)).then_some((host, port))
    }
}

/// The numbers of an object's name; none if it is not one.
pub(super) fn arcs(oid: &str) -> Option<Vec<u64>> {
    let oid = oid.strip_prefix('.').unwrap_or(oid);
    let arcs: Vec<u64> = oid.split('.').map(arc).collect::<Option<_>>()?;
    // How the first two are written leaves no more (RFC 2578, X.690).
    (3..=MAX_ARCS).contains(&arcs.len()).then_some(())?;
    (arcs[0] <= 2 && arcs[1] < 40).then_some(arcs)
}

fn arc(text: &str) -> Option<u64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse::<u32>().ok()).flatten().map(u64::from)
}

impl SourceSettings for SnmpSettings {
    /// `ADDRESS/OID+OID?factor=NUMBER&version=v1&community_file=FILE`.
    const FLAG: Option<ReadFlag<Self>> = Some(|value| {
        let (place, options) = value.split_once('?').unwrap_or((value, ""));
        let (address, oids) = place.split_once('/').unwrap_or((place, ""));
        let oids: Vec<&str> = oids.split('+').filter(|oid| !oid.is_empty()).collect();
        let mut settings = SnmpSettings::of(address, &oids);
        for option in options.split('&').filter(|option| !option.is_empty()) {
            let (key, text) = option.split_once('=').unwrap_or((option, ""));
            match key {
                "factor" => {
                    settings.factor = text.parse().map_err(|_| {
                        SettingError::new("snmp.factor", text, "a number of watts in one unit")
                    })?;
                }
                "version" => {
                    let known = SnmpVersion::ALL.into_iter().find(|known| known.name() == text);
                    settings.version = known.ok_or_else(|| {
                        let expected = "v1 or v2c; read SNMPv3 by the probe command";
                        SettingError::new("snmp.version", text, expected)
                    })?;
                }
                "community_file" => settings.community_file = Some(text.into()),
                "community_env" => settings.community_env = Some(text.to_owned()),
                "community" => {
                    let expected = "community_file or community_env: a community on a command \
                                    line is shown to every user";
                    return Err(SettingError::new("snmp", "community", expected));
                }
                other => {
                    let expected = "factor, version, community_file or community_env";
                    return Err(SettingError::new("snmp", other, expected));
                }
            }
        }
        Ok(settings)
    });
    const TAKES_REST: bool = true;

    fn check(&self) -> Result<(), SettingError> {
        if self.endpoint().is_none() {
            let expected = "an address such as pdu.lan, 10.0.0.5:1161 or [2001:db8::5]:1161";
            return Err(SettingError::new("snmp.address", model::masked(&self.address), expected));
        }
        if !(1..=MAX_OBJECTS).contains(&self.oids.len()) {
            let expected = "1 to 16 objects: ADDRESS/OID, or ADDRESS/OID+OID to add two";
            return Err(SettingError::new("snmp.oids", self.oids.join("+"), expected));
        }
        let mut seen = BTreeSet::new();
        for oid in &self.oids {
            let Some(arcs) = arcs(oid) else {
                let expected = "an object's name in numbers, such as 1.3.6.1.4.1.318.1.1.12.1.16.0";
                return Err(SettingError::new("snmp.oids", oid, expected));
            };
            if !seen.insert(arcs) {
                let expected = "named once: its power would be counted twice";
                return Err(SettingError::new("snmp.oids", oid, expected));
            }
        }
        if let (Some(file), Some(_)) = (&self.community_file, &self.community_env) {
            let expected = "the only source of the community; leave out community_env";
            return Err(SettingError::new("snmp.community_file", file.display(), expected));
        }
        positive("snmp.factor", self.factor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::energy::EnergySettings;

    #[test]
    fn addresses_have_a_host_and_a_port() {
        for (address, expected) in [
            ("pdu.lan", Some(("pdu.lan", 161))),
            ("10.0.0.5:1161", Some(("10.0.0.5", 1161))),
            ("2001:db8::5", Some(("2001:db8::5", 161))),
            ("[2001:db8::5]", Some(("2001:db8::5", 161))),
            ("[fe80::5%eth0]:1161", Some(("fe80::5%eth0", 1161))),
            ("", None),
            (":161", None),
            ("pdu:", None),
            ("pdu:0", None),
            ("pdu:65536", None),
            ("pdu:snmp", None),
            ("[::1]161", None),
            ("[::1", None),
            ("user:secret@pdu", None),
            ("pdu lan", None),
        ] {
            assert_eq!(SnmpSettings::of(address, &[]).endpoint(), expected, "{address}");
        }
    }

    #[test]
    fn names_of_objects_are_numbers() {
        assert_eq!(arcs("1.3.6.1"), Some(vec![1, 3, 6, 1]));
        assert_eq!(arcs(".1.3.4294967295"), Some(vec![1, 3, 4_294_967_295]));
        let long = format!("1.3{}", ".1".repeat(MAX_ARCS));
        let invalid =
            ["", "1.3", "1..3.6", "1.3.6.", "+1.3.6", "1.3.4294967296", "3.3.6", "1.40.6", &long];
        for oid in invalid.into_iter().chain(["iso.3.6.1", "1.3.-1"]) {
            assert_eq!(arcs(oid), None, "{oid}");
        }
    }

    #[test]
    fn words_of_the_command_line_become_settings_without_a_community() {
        let set = |word: &str| {
            let mut settings = EnergySettings::default();
            settings.set(word).map(|_| settings.snmp.unwrap())
        };
        let settings = set("snmp=pdu.lan:1161/1.3.6.1.7.1+.1.3.6.1.7.2?factor=0.1&version=v1\
                            &community_file=/etc/a,b")
        .unwrap();
        let expected = SnmpSettings {
            factor: 0.1,
            version: SnmpVersion::V1,
            community_file: Some("/etc/a,b".into()),
            ..SnmpSettings::of("pdu.lan:1161", &["1.3.6.1.7.1", ".1.3.6.1.7.2"])
        };
        assert_eq!(settings, expected);
        assert_eq!(set("snmp=::1/1.3.6.1?community_env=X").unwrap().version, SnmpVersion::V2c);
        for (word, words) in [
            ("snmp=/1.3.6.1", "`snmp.address`"),
            ("snmp=user:s3cret@pdu/1.3.6.1", "an address such as"),
            ("snmp=pdu", "1 to 16 objects"),
            (&format!("snmp=pdu/{}", "1.3.6+".repeat(17)), "1 to 16 objects"),
            ("snmp=pdu/iso.3.6", "an object's name in numbers"),
            ("snmp=pdu/1.3.6.1+.1.3.6.1", "counted twice"),
            ("snmp=pdu/1.3.6.1?factor=x", "`snmp.factor`"),
            ("snmp=pdu/1.3.6.1?factor=0", "above zero"),
            ("snmp=pdu/1.3.6.1?factor=inf", "above zero"),
            ("snmp=pdu/1.3.6.1?version=v3", "SNMPv3 by the probe command"),
            ("snmp=pdu/1.3.6.1?community=s3cret", "community_file or community_env"),
            ("snmp=pdu/1.3.6.1?user=x", "factor, version, community_file or community_env"),
            ("snmp=pdu/1.3.6.1?community_env=X&community_file=/f", "leave out community_env"),
        ] {
            let error = set(word).unwrap_err().to_string();
            assert!(error.contains(words), "{word}: {error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn a_study_names_them_in_a_table() {
        let text = r#"{"snmp": {"address": "pdu", "oids": ["1.3.6.1.7"], "version": "v1"}}"#;
        let settings: EnergySettings = serde_json::from_str(text).unwrap();
        assert_eq!(settings.check(), Ok(()));
        let expected =
            SnmpSettings { version: SnmpVersion::V1, ..SnmpSettings::of("pdu", &["1.3.6.1.7"]) };
        assert_eq!(settings.snmp, Some(expected));
        let newer = text.replace("v1", "v3");
        let error = serde_json::from_str::<EnergySettings>(&newer).unwrap_err().to_string();
        assert!(error.contains("`v1` or `v2c`"), "{error}");
    }
}
