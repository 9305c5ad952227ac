//! The load on a device.

use std::fmt;
use std::str::FromStr;

use model::RunSettings;

use super::keys;

/// The load on one device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeviceLoad {
    pub threads: u32,
    /// Stores on the same device, each with the whole dataset.
    pub databases: u32,
    /// Operations per second at which they are due; none in a closed loop.
    pub rate: Option<f64>,
}

impl DeviceLoad {
    /// Records it in a round's settings.
    pub fn settings(&self, settings: &mut RunSettings) {
        settings.insert(keys::THREADS.to_owned(), self.threads.to_string());
        settings.insert(keys::DATABASES.to_owned(), self.databases.to_string());
        match self.rate {
            Some(rate) => settings.insert(keys::RATE.to_owned(), rate.to_string()),
            None => settings.remove(keys::RATE),
        };
    }

    /// Reads it from a round's settings; None if they lack it. Files of older versions have one
    /// database a device.
    pub fn of(settings: &RunSettings) -> Option<DeviceLoad> {
        let databases = match settings.get(keys::DATABASES) {
            Some(databases) => databases.parse().ok()?,
            None => 1,
        };
        let rate = settings.get(keys::RATE).map(|rate| rate.parse()).transpose().ok()?;
        Some(DeviceLoad { threads: settings.get(keys::THREADS)?.parse().ok()?, databases, rate })
    }
}

/// `8`, `8x2` with two databases, `8x2@1000` at 1000 operations per second.
impl fmt::Display for DeviceLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.threads)?;
        if self.databases != 1 {
            write!(f, "x{}", self.databases)?;
        }
        self.rate.map_or(Ok(()), |rate| write!(f, "@{rate}"))
    }
}

impl FromStr for DeviceLoad {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a load; write 8, 8x2 or 8x2@1000");
        let (stores, rate) = match text.split_once('@') {
            Some((stores, rate)) => (stores, Some(rate.parse().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let (threads, databases) = stores.split_once('x').unwrap_or((stores, "1"));
        let number = |text: &str| text.parse::<u32>().map_err(|_| wrong());
        Ok(DeviceLoad { threads: number(threads)?, databases: number(databases)?, rate })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_round_trip_as_text() {
        for text in ["8", "8x2", "1@250.5", "128x4@1000"] {
            assert_eq!(text.parse::<DeviceLoad>().unwrap().to_string(), text);
        }
        for text in ["", "x2", "8x", "8@", "8@fast", "-1"] {
            assert!(text.parse::<DeviceLoad>().is_err(), "{text}");
        }
    }

    #[test]
    fn settings_hold_a_load() {
        let mut settings = RunSettings::new();
        for text in ["8@100", "8x2", "4"] {
            let load: DeviceLoad = text.parse().unwrap();
            load.settings(&mut settings);
            assert_eq!(DeviceLoad::of(&settings), Some(load));
        }
        settings.remove(keys::DATABASES);
        assert_eq!(DeviceLoad::of(&settings).map(|load| load.databases), Some(1));
    }
}
