//! A hog in a process of its own, read over a pipe, so that its CPU time and counters stay apart
//! from those of the measured process.

use std::io::{self, BufRead, Write};
use std::str::FromStr;

use super::Hog;

/// The line that a serving hog writes when its traffic flows.
pub const READY: &str = "ready";

/// Totals of a hog since it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HogCounters {
    pub bytes: u64,
    pub nanoseconds: u64,
    /// CPU time of its whole process.
    pub cpu_ns: u64,
}

impl std::fmt::Display for HogCounters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.bytes, self.nanoseconds, self.cpu_ns)
    }
}

impl FromStr for HogCounters {
    type Err = String;
    fn from_str(line: &str) -> Result<HogCounters, String> {
        let numbers: Vec<u64> =
            line.split_whitespace().map_while(|word| word.parse().ok()).collect();
        match *numbers.as_slice() {
            [bytes, nanoseconds, cpu_ns] => Ok(HogCounters { bytes, nanoseconds, cpu_ns }),
            _ => Err(format!("`{}` is not what a hog answers", line.trim())),
        }
    }
}

/// Writes [`READY`], answers each line of `input` with [`HogCounters`], and returns at the end of
/// `input`, so that a hog does not outlive the process that started it.
///
/// # Errors
/// A pipe is broken.
pub fn serve(hog: &Hog, input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    writeln!(output, "{READY}")?;
    output.flush()?;
    for line in input.lines() {
        line?;
        let now = hog.mark();
        let nanoseconds = (now.at - hog.shared.begun).as_nanos() as u64;
        let cpu_ns = crate::clock::process_cpu_ns().unwrap_or_default();
        writeln!(output, "{}", HogCounters { bytes: now.bytes, nanoseconds, cpu_ns })?;
        output.flush()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{HogSpec, Traffic};
    use super::*;
    use crate::region::{PageSize, Placement};

    #[test]
    fn each_line_is_answered_with_the_counters() {
        let spec = HogSpec {
            cpus: vec![affinity::current_cpu().unwrap()],
            bytes_s: Some(20e6),
            traffic: Traffic::Read,
            buffer: 1 << 20,
            pages: PageSize::System,
            placement: Placement::FirstTouch,
        };
        let hog = Hog::start(&spec).unwrap();
        let mut output = Vec::new();
        serve(&hog, "look\nlook\n".as_bytes(), &mut output).unwrap();
        let output = String::from_utf8(output).unwrap();
        let lines: Vec<&str> = output.lines().collect();
        assert_eq!((lines.len(), lines[0]), (3, READY));
        let looks: Vec<HogCounters> = lines[1..].iter().map(|line| line.parse().unwrap()).collect();
        assert!(looks[0].nanoseconds <= looks[1].nanoseconds && looks[0].bytes <= looks[1].bytes);
        assert!(looks[0].cpu_ns > 0);
        assert!("ready".parse::<HogCounters>().is_err() && "1 2".parse::<HogCounters>().is_err());
    }
}
