//! The path of calls that most of the CPU time takes, and where it divides.

use std::collections::HashMap;

use model::StackSet;

use super::{Place, named, percent, place};

/// A path goes on while so much of a function's time is in one of those that it calls.
const GOES_ON: f64 = 0.7;
/// The least share of all time of a path's end.
const LEAST_PATH: f64 = 0.2;

/// Where the most frequent path of calls divides.
#[derive(Debug, Clone, PartialEq)]
pub struct HotPath {
    /// The function.
    pub function: String,
    /// Its share of the time, and those of what it calls, the largest first.
    pub share: f64,
    pub calls: Vec<(String, f64)>,
}

impl HotPath {
    pub(super) fn sentence(&self) -> String {
        let HotPath { function, share, calls } = self;
        let within = match named(calls) {
            Some(words) => format!(", which divides into {words}"),
            None => String::new(),
        };
        format!("{} of it is under {function}{within}.", percent(*share))
    }
}

/// The path of a process's CPU time; none where nothing has a fifth of it. A system call is one
/// step.
pub fn hot_path(set: &StackSet<'_>) -> Option<HotPath> {
    let paths: Vec<(Vec<String>, f64)> = set
        .stacks
        .iter()
        .map(|stack| {
            let own = stack.frames.iter().take_while(|frame| !frame.ends_with("_[k]"));
            let mut path: Vec<String> = own.cloned().collect();
            match place(&stack.frames) {
                Place::Program => {}
                other => path.push(other.to_string()),
            }
            (path, stack.seconds)
        })
        .collect();
    let all: f64 = paths.iter().map(|(_, seconds)| seconds).sum();
    let root = most_common(&paths)?;
    let from_root = paths.iter().filter_map(|(path, seconds)| {
        let at = path.iter().position(|name| *name == root)?;
        Some((&path[at..], *seconds))
    });
    let mut within: Vec<(&[String], f64)> = from_root.collect();
    let (mut depth, mut found) = (0, None);
    loop {
        let here: f64 = within.iter().map(|(_, seconds)| seconds).sum();
        let mut calls: Vec<(String, f64)> = Vec::new();
        for (path, seconds) in &within {
            if let Some(name) = path.get(depth) {
                match calls.iter_mut().find(|(known, _)| known == name) {
                    Some((_, sum)) => *sum += seconds,
                    None => calls.push((name.clone(), *seconds)),
                }
            }
        }
        calls.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let largest = calls.first().cloned();
        if let Some(HotPath { calls: shares, .. }) = &mut found {
            *shares = calls.into_iter().map(|(name, seconds)| (name, seconds / all)).collect();
        }
        let goes_on = largest.filter(|(_, seconds)| {
            *seconds >= GOES_ON * here && *seconds >= LEAST_PATH * all && *seconds > 0.0
        });
        let Some((name, seconds)) = goes_on else { break };
        within.retain(|(path, _)| path.get(depth) == Some(&name));
        depth += 1;
        found = Some(HotPath { function: name, share: seconds / all, calls: Vec::new() });
    }
    found
}

/// The function in which most of the time is, the outermost of several: stacks that are cut off at
/// their outer end have it too.
fn most_common(paths: &[(Vec<String>, f64)]) -> Option<String> {
    let mut sums: HashMap<&str, (f64, f64)> = HashMap::new();
    for (path, seconds) in paths {
        for (at, name) in path.iter().enumerate() {
            if !path[..at].contains(name) {
                let sum = sums.entry(name).or_insert((0.0, 0.0));
                sum.0 += seconds;
                // How far from the inner end, weighted.
                sum.1 += seconds * (path.len() - at) as f64;
            }
        }
    }
    let most = sums.values().map(|(seconds, _)| *seconds).fold(0.0, f64::max);
    let largest = sums.into_iter().filter(|(_, (seconds, _))| *seconds >= 0.99 * most);
    let outermost = largest.max_by(|a, b| (a.1.1).total_cmp(&b.1.1).then(b.0.cmp(a.0)));
    outermost.map(|(name, _)| name.to_owned())
}

#[cfg(test)]
mod tests {
    use model::{ProfiledSide, Stack, ThreadState};

    use super::*;

    #[test]
    fn the_path_ends_where_it_divides() {
        let stacks: Vec<Stack> = [
            // Its outer end was not copied.
            ("main;get;memtable", 2.0),
            ("start;main;get;table;block", 4.0),
            ("start;main;get;table;do_syscall_64_[k];__x64_sys_pread64_[k];io_[k]", 3.0),
            ("start;other", 1.0),
        ]
        .map(|(frames, seconds)| Stack {
            side: ProfiledSide::Client,
            process: "p".to_owned(),
            state: ThreadState::OnCpu,
            frames: frames.split(';').map(str::to_owned).collect(),
            samples: 1,
            seconds,
        })
        .into();
        let set = StackSet {
            side: ProfiledSide::Client,
            process: "p",
            state: ThreadState::OnCpu,
            stacks: stacks.iter().collect(),
        };
        let path = hot_path(&set).unwrap();
        assert_eq!((path.function.as_str(), path.share), ("table", 0.7));
        assert_eq!(path.calls, [("block".to_owned(), 0.4), ("pread64".to_owned(), 0.3)]);
        assert_eq!(
            path.sentence(),
            "70 % of it is under table, which divides into block 40 %, pread64 30 %."
        );
    }
}
