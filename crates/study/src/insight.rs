//! Which way the latency inside a server is seen.

use std::fmt;

/// How the server's side of latencies is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Insight {
    /// A preloaded library in a server that kvmeter starts, eBPF for one that runs already;
    /// neither in a closed loop, whose highest rate either would lower.
    #[default]
    Auto,
    /// The preloaded library.
    Tap,
    /// eBPF on the server's system calls.
    Ebpf,
    Off,
}

impl Insight {
    pub const ALL: [Insight; 4] = [Insight::Auto, Insight::Tap, Insight::Ebpf, Insight::Off];

    pub const fn name(self) -> &'static str {
        match self {
            Insight::Auto => "auto",
            Insight::Tap => "tap",
            Insight::Ebpf => "ebpf",
            Insight::Off => "off",
        }
    }

    pub fn from_name(name: &str) -> Option<Insight> {
        Insight::ALL.into_iter().find(|insight| insight.name() == name)
    }

    /// Whether a server that is started for such a run gets the library.
    pub(crate) fn preloads(self, open: bool) -> bool {
        match self {
            Insight::Tap => true,
            Insight::Auto => open,
            Insight::Ebpf | Insight::Off => false,
        }
    }
}

impl fmt::Display for Insight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
