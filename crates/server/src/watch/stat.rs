//! The files of one process or thread under `/proc`, as `proc(5)` describes them.

use model::Unavailable;

/// The used fields of a `stat` file; of the whole process, ended threads included, or of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stat {
    pub name: String,
    pub state: char,
    /// The pid of the process that started it, or of the one that adopted it.
    pub parent: u32,
    pub minor_faults: u64,
    pub major_faults: u64,
    /// In clock ticks.
    pub user_ticks: u64,
    pub system_ticks: u64,
    pub threads: u64,
    /// Clock ticks between the machine's start and its own; with the pid it names a process.
    pub started: u64,
}

impl Stat {
    /// Reads the one line of the file. The name stands in parentheses and may hold any of them.
    pub fn parse(path: &str, text: &str) -> Result<Self, Unavailable> {
        let read = || {
            let (head, rest) = text.rsplit_once(')')?;
            let (_, name) = head.split_once('(')?;
            // The first of them is field 3 of the manual.
            let fields: Vec<&str> = rest.split_whitespace().collect();
            let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
            Some(Stat {
                name: name.to_owned(),
                state: fields.first()?.chars().next()?,
                parent: u32::try_from(number(4)?).ok()?,
                minor_faults: number(10)?,
                major_faults: number(12)?,
                user_ticks: number(14)?,
                system_ticks: number(15)?,
                threads: number(20)?,
                started: number(22)?,
            })
        };
        read().ok_or_else(|| malformed(path))
    }

    /// Ended, and only waiting for its parent to notice.
    pub fn is_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x')
    }
}

/// A number of a file of `name: value` lines, such as `status` and `io`.
pub(super) fn field(path: &str, text: &str, name: &str) -> Result<u64, Unavailable> {
    text.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        .and_then(|value| value.split_whitespace().next()?.parse().ok())
        .ok_or_else(|| Unavailable::new(format!("{path} has no number `{name}`"), WHY))
}

/// The first number of `schedstat`: nanoseconds on a CPU.
pub(super) fn on_cpu_ns(path: &str, text: &str) -> Result<u64, Unavailable> {
    text.split_whitespace()
        .next()
        .and_then(|number| number.parse().ok())
        .ok_or_else(|| malformed(path))
}

const WHY: &str = "use a kernel that documents it in proc(5)";

fn malformed(path: &str) -> Unavailable {
    Unavailable::new(format!("{path} is not as proc(5) describes it"), WHY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_any_process_name() {
        let text = "7 (a) R (b c) S 1 7 7 0 -1 4194560 11 0 12 0 13 14 0 0 20 0 5 0 99 1000 50";
        let stat = Stat::parse("/proc/7/stat", text).unwrap();
        assert_eq!(stat.name, "a) R (b c");
        assert_eq!(stat.parent, 1);
        assert_eq!((stat.state, stat.minor_faults, stat.major_faults), ('S', 11, 12));
        assert_eq!((stat.user_ticks, stat.system_ticks), (13, 14));
        assert_eq!((stat.threads, stat.started), (5, 99));
        assert!(Stat::parse("/proc/7/stat", "7 (a) S 1").is_err());
        assert!(Stat::parse("/proc/7/stat", "").is_err());
    }

    #[test]
    fn matches_whole_field_names() {
        let text = "VmRSSx: 1\nVmRSS:\t  12 kB\n";
        assert_eq!(field("/proc/7/status", text, "VmRSS"), Ok(12));
        let error = field("/proc/7/status", text, "Vm").unwrap_err().to_string();
        assert!(error.contains("/proc/7/status has no number `Vm`"), "{error}");
    }
}
