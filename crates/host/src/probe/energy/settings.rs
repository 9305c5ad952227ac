//! Settings of energy sources, from a study's `[probes]` and `--probes`.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Settings of energy probes that cannot be detected.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EnergySettings {
    pub meter: Option<MeterSettings>,
    pub plug: Option<PlugSettings>,
    pub command: Option<CommandSettings>,
    pub dcmi: Option<DcmiSettings>,
    /// The sensor that stands for `power.hwmon`, e.g. `power_meter.power1`.
    pub hwmon: Option<String>,
    pub model: Option<ModelSettings>,
}

/// A meter of the MCP39F511 family on a serial port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeterSettings {
    /// e.g. `/dev/ttyUSB0`
    pub port: String,
    #[serde(default)]
    pub variant: MeterVariant,
    /// Which outlets of a two-channel meter (511N) the machine hangs on.
    #[serde(default)]
    pub channels: Channels,
    /// Steps of the power register in a watt, which the board's calibration sets.
    #[serde(default = "steps_per_watt")]
    pub watts_divisor: f64,
    #[serde(default = "baud")]
    pub baud: u32,
}

impl MeterSettings {
    /// A single-channel meter as its maker ships it.
    pub fn at(port: impl Into<String>) -> Self {
        MeterSettings {
            port: port.into(),
            variant: MeterVariant::default(),
            channels: Channels::default(),
            watts_divisor: steps_per_watt(),
            baud: baud(),
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum MeterVariant {
    /// MCP39F511A: one channel.
    #[default]
    #[serde(rename = "511a")]
    Mcp39f511a,
    /// MCP39F511N: two channels.
    #[serde(rename = "511n")]
    Mcp39f511n,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Channels {
    /// All that the meter has, added.
    #[default]
    All,
    First,
    Second,
}

/// A smart plug or PDU that answers watts over HTTP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlugSettings {
    /// e.g. `http://plug.lan/rpc/Switch.GetStatus?id=0`
    pub url: String,
    /// JSON pointer (RFC 6901) to the number, e.g. `/apower`; empty if the answer is the number.
    #[serde(default)]
    pub watts: String,
    /// Watts in one unit of that number: 0.001 for milliwatts.
    #[serde(default = "one")]
    pub factor: f64,
}

/// A program that prints one number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandSettings {
    /// The program and its arguments; no shell is in between.
    pub run: Vec<String>,
    #[serde(default)]
    pub answers: Quantity,
    /// It is killed when it takes longer.
    #[serde(default = "one")]
    pub limit_s: f64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Power now.
    #[default]
    Watts,
    /// Energy since some time in the past; never goes down.
    Joules,
}

/// How the machine's management controller is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DcmiSettings {
    /// A program that prints what `ipmitool dcmi power reading` prints; may ask a
    /// remote controller (`ipmitool -I lanplus -H bmc.lan ...`).
    pub run: Vec<String>,
}

/// `P = idle + (full - idle) x utilisation`, for machines without any sensor.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelSettings {
    /// Watts of the idle machine.
    pub idle_w: f64,
    /// Watts with every CPU busy.
    pub full_w: f64,
}

fn steps_per_watt() -> f64 {
    100.0
}

fn baud() -> u32 {
    115_200
}

fn one() -> f64 {
    1.0
}

/// An invalid setting.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SettingError {
    #[error("`{key}` of the energy probes is `{value}`, which is not {expected}")]
    Bad { key: &'static str, value: String, expected: &'static str },
}

impl SettingError {
    /// The key of the setting: of a source, or a source and a key of its table.
    pub fn key(&self) -> &'static str {
        let SettingError::Bad { key, .. } = self;
        key
    }
}

fn bad(key: &'static str, value: impl ToString, expected: &'static str) -> SettingError {
    SettingError::Bad { key, value: value.to_string(), expected }
}

impl EnergySettings {
    /// Takes one word of `--probes`, and returns whether it is one for the energy probes:
    /// - `meter=PORT` or `meter=PORT@511n`;
    /// - `plug=URL#POINTER`;
    /// - `command=PROGRAM ARGUMENTS`, which prints watts;
    /// - `hwmon=SENSOR`;
    /// - `model=IDLE:FULL`, in watts.
    pub fn set(&mut self, word: &str) -> Result<bool, SettingError> {
        let Some((key, value)) = word.split_once('=') else { return Ok(false) };
        match key {
            "meter" => {
                let (port, variant) = match value.rsplit_once('@') {
                    Some((port, "511a")) => (port, MeterVariant::Mcp39f511a),
                    Some((port, "511n")) => (port, MeterVariant::Mcp39f511n),
                    Some(_) => return Err(bad("meter", value, "PORT@511a or PORT@511n")),
                    None => (value, MeterVariant::default()),
                };
                self.meter = Some(MeterSettings { variant, ..MeterSettings::at(port) });
            }
            "plug" => {
                let (url, watts) = value.split_once('#').unwrap_or((value, ""));
                let (url, watts) = (url.to_owned(), watts.to_owned());
                self.plug = Some(PlugSettings { url, watts, factor: one() });
            }
            "command" => {
                let run = value.split_whitespace().map(str::to_owned).collect();
                let answers = Quantity::default();
                self.command = Some(CommandSettings { run, answers, limit_s: one() });
            }
            "hwmon" => self.hwmon = Some(value.to_owned()),
            "model" => {
                let watts = value.split_once(':').and_then(|(idle, full)| {
                    Some(ModelSettings { idle_w: idle.parse().ok()?, full_w: full.parse().ok()? })
                });
                let watts = watts.ok_or_else(|| bad("model", value, "IDLE:FULL in watts"))?;
                self.model = Some(watts);
            }
            _ => return Ok(false),
        }
        self.check()?;
        Ok(true)
    }

    /// Checks every value. Call it when a study is read.
    pub fn check(&self) -> Result<(), SettingError> {
        if let Some(meter) = &self.meter {
            if meter.port.is_empty() {
                return Err(bad("meter.port", "", "a serial port such as /dev/ttyUSB0"));
            }
            positive("meter.watts_divisor", meter.watts_divisor)?;
            if meter.baud == 0 {
                return Err(bad("meter.baud", 0, "a rate such as 115200"));
            }
            if meter.channels == Channels::Second && meter.variant == MeterVariant::Mcp39f511a {
                return Err(bad("meter.channels", "second", "there on a 511a: it has one channel"));
            }
        }
        if let Some(plug) = &self.plug {
            if !plug.url.starts_with("http://") {
                let expected = "an http:// address (kvmeter asks plugs without TLS)";
                return Err(bad("plug.url", &plug.url, expected));
            }
            let host = plug.url.trim_start_matches("http://").split('/').next().unwrap_or_default();
            if host.contains('@') {
                // It is kept in results files and shown.
                let expected = "an address without a user and a password: it is kept with the runs";
                return Err(bad("plug.url", model::masked(&plug.url), expected));
            }
            if !plug.watts.is_empty() && !plug.watts.starts_with('/') {
                return Err(bad("plug.watts", &plug.watts, "a JSON pointer such as /apower"));
            }
            positive("plug.factor", plug.factor)?;
        }
        if let Some(command) = &self.command {
            program("command.run", &command.run)?;
            if !(command.limit_s > 0.0 && command.limit_s <= 10.0) {
                return Err(bad("command.limit_s", command.limit_s, "between 0 and 10 seconds"));
            }
        }
        if let Some(dcmi) = &self.dcmi {
            program("dcmi.run", &dcmi.run)?;
        }
        if let Some(ModelSettings { idle_w, full_w }) = self.model {
            if !(idle_w.is_finite() && idle_w >= 0.0) {
                return Err(bad("model.idle_w", idle_w, "watts of the idle machine"));
            }
            if !(full_w.is_finite() && full_w >= idle_w) {
                return Err(bad("model.full_w", full_w, "watts, idle_w or more"));
            }
        }
        Ok(())
    }

    /// Whether settings were given for a probe.
    pub(in crate::probe) fn configured(&self, name: &str) -> bool {
        match name {
            "meter" => self.meter.is_some(),
            "plug" => self.plug.is_some(),
            "command" => self.command.is_some(),
            "dcmi" => self.dcmi.is_some(),
            "hwmon" => self.hwmon.is_some(),
            "model" => self.model.is_some(),
            _ => false,
        }
    }
}

fn positive(key: &'static str, value: f64) -> Result<(), SettingError> {
    if value.is_finite() && value > 0.0 { Ok(()) } else { Err(bad(key, value, "above zero")) }
}

fn program(key: &'static str, run: &[String]) -> Result<(), SettingError> {
    match run.first() {
        Some(program) if !program.is_empty() => Ok(()),
        _ => Err(bad(key, "", "a program and its arguments")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(words: &[&str]) -> EnergySettings {
        let mut settings = EnergySettings::default();
        for word in words {
            assert_eq!(settings.set(word), Ok(true), "{word}");
        }
        settings
    }

    #[test]
    fn parses_words_of_the_command_line() {
        let some = set(&["model=40:120", "meter=/dev/ttyUSB1@511n"]);
        assert!(["model", "meter"].iter().all(|name| some.configured(name)));
        assert!(!some.configured("plug") && !some.configured("rapl"));
        assert_eq!(some.meter.as_ref().unwrap().port, "/dev/ttyUSB1");
        assert_eq!(some.meter.unwrap().variant, MeterVariant::Mcp39f511n);
        let plug = set(&["plug=http://p/cm?cmnd=Status%208#/StatusSNS/ENERGY/Power"]).plug.unwrap();
        assert_eq!(plug.url, "http://p/cm?cmnd=Status%208");
        assert_eq!(plug.watts, "/StatusSNS/ENERGY/Power");
        assert_eq!(EnergySettings::default().set("rapl"), Ok(false));
        assert_eq!(EnergySettings::default().set("events=0x1"), Ok(false));
    }

    #[test]
    fn refuses_invalid_settings_by_key() {
        for (word, named) in [
            ("model=120:40", "model.full_w"),
            ("model=-1:40", "model.idle_w"),
            ("model=40", "model"),
            ("model=nan:nan", "model.idle_w"),
            ("meter=", "meter.port"),
            ("meter=/dev/ttyUSB0@512", "meter"),
            ("plug=https://p#/x", "plug.url"),
            ("plug=http://user:x@p#/x", "plug.url"),
            ("plug=http://p#x", "plug.watts"),
            ("command=", "command.run"),
        ] {
            let error = EnergySettings::default().set(word).unwrap_err();
            assert!(error.to_string().starts_with(&format!("`{named}`")), "{word}: {error}");
        }
    }

    #[test]
    fn reads_settings_of_a_study() {
        let text = r#"{"meter": {"port": "/dev/ttyUSB0", "variant": "511n", "channels": "first"},
                       "command": {"run": ["snmpget", "-Oqv"], "answers": "joules"},
                       "model": {"idle_w": 40, "full_w": 120}}"#;
        let settings: EnergySettings = serde_json::from_str(text).unwrap();
        assert_eq!(settings.check(), Ok(()));
        let meter = settings.meter.unwrap();
        assert_eq!(
            (meter.channels, meter.watts_divisor, meter.baud),
            (Channels::First, 100.0, 115_200)
        );
        assert_eq!(settings.command.unwrap().answers, Quantity::Joules);
        assert!(serde_json::from_str::<EnergySettings>(r#"{"metre": {}}"#).is_err());
    }
}
