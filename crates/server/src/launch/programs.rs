//! The programs that kvmeter can start.

use model::suggest::hint;

use super::error::LaunchError;
use super::memcached::Memcached;
use super::program::Program;
use super::redis::Redis;

/// Every program that can be started.
pub static PROGRAMS: &[&dyn Program] = &[&Memcached, &Redis::REDIS, &Redis::VALKEY];

/// The program of a study's `[server.NAME]`.
///
/// # Errors
/// An unknown name; the error suggests the nearest.
pub fn program(name: &str) -> Result<&'static dyn Program, LaunchError> {
    PROGRAMS.iter().copied().find(|program| program.name() == name).ok_or_else(|| {
        LaunchError::NoSuchProgram {
            name: name.to_owned(),
            hint: hint(name, PROGRAMS.iter().map(|program| program.name())),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use model::Address;

    use super::*;
    use crate::launch::LaunchContext;
    use crate::launch::settings::{GivenSettings, ServerSettings};

    #[test]
    fn every_program_takes_common_settings() {
        for program in PROGRAMS {
            let names: Vec<&str> = program.settings().iter().map(|setting| setting.name).collect();
            for common in [
                "memory",
                "threads",
                "connections",
                "port",
                "socket",
                "listen",
                "cpus",
                "binary",
                "arguments",
            ] {
                assert!(names.contains(&common), "{}: {common}", program.name());
            }
            for setting in program.settings() {
                assert!(!setting.what.is_empty() && !setting.default.is_empty());
                assert_eq!(names.iter().filter(|name| **name == setting.name).count(), 1);
            }
            let address = Address::parse("[::1]:7000", 1).unwrap();
            let context = LaunchContext { listen: &address, folder: Path::new("/tmp/f") };
            let none = ServerSettings::default();
            let given = GivenSettings::new(program.name(), program.settings(), &none).unwrap();
            let arguments = program.arguments(&given, context).unwrap();
            assert!(
                arguments.contains(&"7000".to_owned()) && arguments.contains(&"::1".to_owned())
            );
        }
    }

    #[test]
    fn suggests_the_nearest_program() {
        let error = program("memcache").unwrap_err();
        assert!(error.to_string().contains("did you mean `memcached`?"), "{error}");
        assert!(error.is_request());
        assert_eq!(program("valkey").unwrap().binary(), "valkey-server");
    }
}
