//! Flame graphs: the stacks of a process, each function as wide as its share of the time, what it
//! calls above it. Drawn in shares of the width, so that they fit any window without a script.

use std::fmt::Write;

use model::StackSet;

use crate::figure::escaped;

/// Height of a function, in pixels.
const ROW: usize = 17;
/// Functions with less of the time are not drawn; their callers are.
const LEAST: f64 = 0.001;
/// Deeper calls are not drawn.
const DEEPEST: usize = 96;
const OF_KERNEL: &str = "_[k]";

/// A function in one stack of callers.
struct Node<'a> {
    name: &'a str,
    seconds: f64,
    calls: Vec<Node<'a>>,
}

impl<'a> Node<'a> {
    fn add(&mut self, frames: &'a [String], seconds: f64) {
        self.seconds += seconds;
        let Some((first, rest)) = frames.split_first() else { return };
        match self.calls.iter_mut().find(|call| call.name == first) {
            Some(call) => call.add(rest, seconds),
            None => {
                let mut call = Node { name: first, seconds: 0.0, calls: Vec::new() };
                call.add(rest, seconds);
                self.calls.push(call);
            }
        }
    }

    /// How many functions are above each other, with this.
    fn depth(&self, all: f64) -> usize {
        let drawn = self.calls.iter().filter(|call| call.seconds >= LEAST * all);
        1 + drawn.map(|call| call.depth(all)).max().unwrap_or(0)
    }
}

/// The drawing of one set of stacks as SVG; its root is the process.
pub(crate) fn draw(set: &StackSet<'_>, alt: &str) -> String {
    let mut root = Node { name: set.process, seconds: 0.0, calls: Vec::new() };
    for stack in &set.stacks {
        let frames = &stack.frames[..stack.frames.len().min(DEEPEST)];
        root.add(frames, stack.seconds);
    }
    let (all, rows) = (root.seconds, root.depth(root.seconds));
    let mut out = format!(
        "<svg class=\"flame\" role=\"img\" aria-label=\"{}\" width=\"100%\" height=\"{}\">",
        escaped(alt),
        rows * ROW
    );
    if all > 0.0 {
        frame(&root, 0.0, (rows - 1) * ROW, all, &mut out);
    }
    out.push_str("</svg>");
    out
}

/// A function that begins at `from` (a share of the width) with its lower edge's row at `y`.
fn frame(node: &Node<'_>, from: f64, y: usize, all: f64, out: &mut String) {
    let share = node.seconds / all;
    let name = escaped(node.name.trim_end_matches(OF_KERNEL));
    let class = if node.name.ends_with(OF_KERNEL) { "f k" } else { "f" };
    // Writing to text cannot fail.
    let _ = write!(
        out,
        "<svg class=\"{class}\" x=\"{:.3}%\" y=\"{y}\" width=\"{:.3}%\" height=\"{ROW}\"><title>{name}: \
         {:.2} %</title><rect width=\"100%\" height=\"16\" rx=\"1\"/><text x=\"3\" \
         y=\"12\">{name}</text></svg>",
        from * 100.0,
        share * 100.0,
        share * 100.0
    );
    let mut calls: Vec<&Node<'_>> =
        node.calls.iter().filter(|call| call.seconds >= LEAST * all).collect();
    // By name, so that two graphs can be compared by eye.
    calls.sort_by_key(|call| call.name);
    let mut at = from;
    for call in calls {
        frame(call, at, y.saturating_sub(ROW), all, out);
        at += call.seconds / all;
    }
}

#[cfg(test)]
mod tests {
    use model::{ProfiledSide, Stack, ThreadState};

    use super::*;

    #[test]
    fn widths_are_shares_and_callers_are_below() {
        let stack = |frames: &[&str], seconds| Stack {
            side: ProfiledSide::Server,
            process: "p".to_owned(),
            state: ThreadState::OnCpu,
            frames: frames.iter().map(|frame| (*frame).to_owned()).collect(),
            samples: 1,
            seconds,
        };
        let stacks = [
            stack(&["main", "b<T>"], 3.0),
            stack(&["main", "a", "read_[k]"], 1.0),
            stack(&["main", "rare"], 0.001),
        ];
        let set = StackSet {
            side: ProfiledSide::Server,
            process: "p",
            state: ThreadState::OnCpu,
            stacks: stacks.iter().collect(),
        };
        let drawn = draw(&set, "where the time of p goes");
        assert!(drawn.contains("height=\"68\""), "{drawn}");
        for (words, y) in [
            ("x=\"0.000%\" y=\"51\" width=\"100.000%\" height=\"17\"><title>p:", 51),
            ("x=\"0.000%\" y=\"17\" width=\"24.994%\" height=\"17\"><title>a: 24.99 %", 17),
            ("x=\"24.994%\" y=\"17\" width=\"74.981%\" height=\"17\"><title>b&lt;T&gt;: 74.98", 17),
            ("class=\"f k\" x=\"0.000%\" y=\"0\" width=\"24.994%\" height=\"17\"><title>read:", 0),
        ] {
            assert!(drawn.contains(words), "{y}: {words}: {drawn}");
        }
        assert!(!drawn.contains("rare"), "{drawn}");
    }
}
