//! How latency inside a server is measured.

use std::fmt;

/// How the server's side of latencies is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ServerTiming {
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

impl ServerTiming {
    pub const ALL: [ServerTiming; 4] =
        [ServerTiming::Auto, ServerTiming::Tap, ServerTiming::Ebpf, ServerTiming::Off];

    pub const fn name(self) -> &'static str {
        match self {
            ServerTiming::Auto => "auto",
            ServerTiming::Tap => "tap",
            ServerTiming::Ebpf => "ebpf",
            ServerTiming::Off => "off",
        }
    }

    pub fn from_name(name: &str) -> Option<ServerTiming> {
        ServerTiming::ALL.into_iter().find(|server_timing| server_timing.name() == name)
    }

    /// Whether a server that is started gets the preloaded library.
    pub fn preloads(self, open: bool) -> bool {
        match self {
            ServerTiming::Tap => true,
            ServerTiming::Auto => open,
            ServerTiming::Ebpf | ServerTiming::Off => false,
        }
    }
}

impl fmt::Display for ServerTiming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
