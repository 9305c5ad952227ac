//! What settings of energy sources have in common; each source declares its own in its file.

use thiserror::Error;

/// Reads the value of `--probes KEY=VALUE`.
pub type ReadFlag<S> = fn(&str) -> Result<S, SettingError>;

/// Settings of a source that cannot be detected.
pub trait SourceSettings: Sized {
    /// Without it only a study can give the settings.
    const FLAG: Option<ReadFlag<Self>> = None;
    /// Whether that value may contain commas, so that it is all the rest of its list.
    const TAKES_REST: bool = false;

    /// # Errors
    /// A value with which the source cannot work.
    fn check(&self) -> Result<(), SettingError>;
}

/// The key of a source's settings, in `[probes]` and in `--probes`.
#[derive(Debug, Clone, Copy)]
pub struct SettingKey {
    pub name: &'static str,
    /// Whether `--probes` takes it.
    pub has_flag: bool,
    pub takes_rest: bool,
}

impl SettingKey {
    pub(super) const fn of<S: SourceSettings>(name: &'static str) -> Self {
        SettingKey { name, has_flag: S::FLAG.is_some(), takes_rest: S::TAKES_REST }
    }
}

/// An invalid setting.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{key}` of the energy probes is `{value}`, which is not {expected}")]
pub struct SettingError {
    key: &'static str,
    value: String,
    expected: &'static str,
}

impl SettingError {
    pub(super) fn new(key: &'static str, value: impl ToString, expected: &'static str) -> Self {
        SettingError { key, value: value.to_string(), expected }
    }

    /// The source whose setting it is.
    pub fn source_key(&self) -> &'static str {
        self.key.split('.').next().unwrap_or(self.key)
    }
}

pub(super) fn positive(key: &'static str, value: f64) -> Result<(), SettingError> {
    match value.is_finite() && value > 0.0 {
        true => Ok(()),
        false => Err(SettingError::new(key, value, "above zero")),
    }
}

/// Checks a program and its arguments.
pub(super) fn program(key: &'static str, run: &[String]) -> Result<(), SettingError> {
    match run.first() {
        Some(program) if !program.is_empty() => Ok(()),
        _ => Err(SettingError::new(key, "", "a program and its arguments")),
    }
}

pub(super) fn one() -> f64 {
    1.0
}

/// Makes the list of sources of lines `name` or `name: settings`, and what goes by it.
macro_rules! energy_sources {
    ($($source:ident $(: $settings:ty)?,)*) => {
        /// The sources that are sampled.
        pub(super) const SOURCES: &[ProbeSpec] = &[$($source::SPEC),*];

        /// Settings of energy sources that cannot be detected, each under its source's name.
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct EnergySettings {
            $($(pub $source: Option<$settings>,)?)*
        }

        impl EnergySettings {
            /// The keys of all sources that have settings.
            pub const KEYS: &'static [SettingKey] =
                &[$($(SettingKey::of::<$settings>(stringify!($source)),)?)*];

            /// Takes one word of `--probes`, and returns whether it is one for an energy source.
            ///
            /// # Errors
            /// A value with which a source cannot work.
            pub fn set(&mut self, word: &str) -> Result<bool, SettingError> {
                let Some((key, value)) = word.split_once('=') else { return Ok(false) };
                match key {
                    $($(stringify!($source) => {
                        let Some(read) = <$settings>::FLAG else { return Ok(false) };
                        self.$source = Some(read(value)?);
                    })?)*
                    _ => return Ok(false),
                }
                self.check()?;
                Ok(true)
            }

            /// Reads the value of a key of `[probes]`, and returns whether it is one of a source.
            ///
            /// # Errors
            /// The value has another form.
            pub fn read<'de, A: MapAccess<'de>>(
                &mut self,
                key: &str,
                map: &mut A,
            ) -> Result<bool, A::Error> {
                match key {
                    $($(stringify!($source) => {
                        self.$source = Some(map.next_value::<$settings>()?);
                    })?)*
                    _ => return Ok(false),
                }
                Ok(true)
            }

            /// Checks every value. Call it when a study is read.
            ///
            /// # Errors
            /// A value with which a source cannot work.
            pub fn check(&self) -> Result<(), SettingError> {
                $($(self.$source.iter().try_for_each(<$settings>::check)?;)?)*
                Ok(())
            }

            /// Whether settings were given for a probe.
            pub(in crate::probe) fn configured(&self, name: &str) -> bool {
                match name {
                    $($(stringify!($source) => <Option<$settings>>::is_some(&self.$source),)?)*
                    _ => false,
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use crate::probe::energy::{Channels, EnergySettings, MeterVariant, Quantity};

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
