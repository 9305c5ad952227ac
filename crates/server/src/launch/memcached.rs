use model::{Address, Bytes};
use nix::unistd::geteuid;

use super::error::SettingError;
use super::program::{LaunchContext, Program, common_remedy};
use super::settings::{
    ARGUMENTS, BINARY, CPUS, GivenSettings, LISTEN, PORT, SOCKET, ServerSetting,
};

const NAME: &str = "memcached";

#[derive(Debug)]
pub(super) struct Memcached;

const SETTINGS: &[ServerSetting] = &[
    ServerSetting::new("memory", "64MiB", "memory for items (-m), in whole MiB")
        .owns(&["-m", "--memory-limit"]),
    ServerSetting::new("threads", "4", "worker threads (-t)").owns(&["-t", "--threads"]),
    ServerSetting::new("connections", "1024", "most connections at once (-c)")
        .owns(&["-c", "--conn-limit"]),
    ServerSetting::new(
        "user",
        "the user of kvmeter",
        "user to run as, when kvmeter runs as root (-u)",
    )
    .owns(&["-u", "--user"]),
    PORT.owns(&["-p", "--port"]),
    SOCKET.owns(&["-s", "--unix-socket"]),
    LISTEN.owns(&["-l", "--listen"]),
    CPUS,
    BINARY,
    ARGUMENTS,
];

const DEFAULT_CONNECTIONS: u32 = 1024;

fn connections(given: &GivenSettings<'_>) -> Result<Option<u32>, SettingError> {
    given.number("connections", 1..=16_777_216)
}

impl Program for Memcached {
    fn name(&self) -> &'static str {
        NAME
    }

    fn binary(&self) -> &'static str {
        "memcached"
    }

    fn package(&self) -> &'static str {
        "memcached"
    }

    fn settings(&self) -> &'static [ServerSetting] {
        SETTINGS
    }

    fn version_flag(&self) -> &'static str {
        "-V"
    }

    fn version(&self, printed: &str) -> Option<String> {
        let version = printed.strip_prefix("memcached ")?.split_whitespace().next()?;
        Some(format!("memcached {version}"))
    }

    fn arguments(
        &self,
        given: &GivenSettings<'_>,
        context: LaunchContext<'_>,
    ) -> Result<Vec<String>, SettingError> {
        let mut arguments = Vec::new();
        let mut add = |flag: &str, value: String| arguments.extend([flag.to_owned(), value]);
        match context.listen {
            Address::Unix(path) => add("-s", path.display().to_string()),
            Address::Tcp { host, port } => {
                add("-l", host.clone());
                add("-p", port.to_string());
            }
        }
        // Without it memcached refuses to run as root.
        let user = given.text("user")?;
        match user {
            Some(user) => add("-u", user.to_owned()),
            None if geteuid().is_root() => add("-u", "root".to_owned()),
            None => {}
        }
        if let Some(memory) = given.bytes("memory", Bytes(1 << 20))? {
            add("-m", (memory.0 >> 20).to_string());
        }
        if let Some(threads) = given.number("threads", 1..=1024)? {
            add("-t", threads.to_string());
        }
        if let Some(connections) = connections(given)? {
            add("-c", connections.to_string());
        }
        Ok(arguments)
    }

    fn open_files(&self, given: &GivenSettings<'_>) -> Result<Option<u32>, SettingError> {
        Ok(Some(connections(given)?.unwrap_or(DEFAULT_CONNECTIONS)))
    }

    fn check(&self, arguments: &[String]) -> Result<(), SettingError> {
        match arguments.iter().find(|argument| matches!(argument.as_str(), "-d" | "--daemon")) {
            None => Ok(()),
            Some(argument) => Err(SettingError::Argument {
                program: NAME,
                argument: argument.clone(),
                instead: "kvmeter runs it in the foreground to end it; leave this out".to_owned(),
            }),
        }
    }

    fn probe_request(&self) -> &'static [u8] {
        // A binary-only server waits for the 24 bytes of a header before it refuses.
        b"version\r\nversion\r\nversion\r\n"
    }

    fn is_loading(&self, _: &[u8]) -> bool {
        false
    }

    fn unmet(&self, _: &GivenSettings<'_>, _: &str) -> Option<&'static str> {
        // It ends instead of running with less.
        None
    }

    fn remedy(&self, words: &str) -> Option<&'static str> {
        let known = [
            ("without the -u switch", "set `user` to the user to run as"),
            ("can't find the user", "set `user` to a user of this machine"),
            (
                "failed to set rlimit for open files",
                "give fewer `connections`, or raise `ulimit -n`",
            ),
        ];
        let way = known.iter().find(|(sign, _)| words.contains(sign)).map(|(_, way)| *way);
        way.or_else(|| common_remedy(words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_first_word_after_the_name() {
        assert_eq!(Memcached.version("memcached 1.6.18\n").as_deref(), Some("memcached 1.6.18"));
        assert_eq!(Memcached.version("usage: cat"), None);
    }
}
