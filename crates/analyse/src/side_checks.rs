//! Relations between the latencies of server and client: the server's part of a request lies within
//! the client's.

use model::{LatencyClock, LatencyStatistics, Run};

use crate::slo::LatencyFigure;

/// Both sides are histograms of three digits: differences within a bucket are ignored.
const RESOLUTION: f64 = 2e-3;

/// One figure of one side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClockFigure {
    /// [`LatencyClock::Server`] or [`LatencyClock::Service`].
    pub clock: LatencyClock,
    pub figure: LatencyFigure,
    pub nanoseconds: f64,
}

/// `lesser` must not exceed `greater`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SideCheck {
    pub lesser: ClockFigure,
    pub greater: ClockFigure,
}

impl SideCheck {
    pub fn holds(&self) -> bool {
        self.lesser.nanoseconds <= self.greater.nanoseconds * (1.0 + RESOLUTION)
    }

    /// Why it may fail, most likely first.
    pub fn explanation(&self) -> &'static str {
        match (self.lesser.figure, self.greater.clock) {
            (LatencyFigure::Mean, LatencyClock::Server) => {
                "fewer than 1 % of the requests took most of the server's time: its p99.9 and \
                 maximum show how long, and its logs may show why"
            }
            (LatencyFigure::Mean, _) => {
                "the server counted other requests than the client: those of other clients, or \
                 batches of pipelined requests as one"
            }
            _ => {
                "the server counted other requests than the client: those of other clients, those \
                 of the warm-up, or batches of pipelined requests as one"
            }
        }
    }
}

/// The checks of a run whose server was watched, in this order: the server's mean is not above
/// the server's p99, the server's p99 not above the client's, the server's mean not above the
/// client's mean. None where one of the two sides is missing.
///
/// All operations together, as a server does not distinguish them. The client's side is service
/// time, which includes the server's part of each request and no queue of the client.
pub fn checks(run: &Run) -> Vec<SideCheck> {
    let sides =
        (run.latency_of_all(LatencyClock::Server), run.latency_of_all(LatencyClock::Service));
    let (Some(server), Some(client)) = sides else { return Vec::new() };
    let mean = |clock, all: &LatencyStatistics<'_>| ClockFigure {
        clock,
        figure: LatencyFigure::Mean,
        nanoseconds: all.mean(),
    };
    let p99 = |clock, all: &LatencyStatistics<'_>| ClockFigure {
        clock,
        figure: LatencyFigure::Percentile(99.0),
        nanoseconds: all.value_at_percentile(99.0) as f64,
    };
    let server_p99 = p99(LatencyClock::Server, &server);
    let server_mean = mean(LatencyClock::Server, &server);
    vec![
        SideCheck { lesser: server_mean, greater: server_p99 },
        SideCheck { lesser: server_p99, greater: p99(LatencyClock::Service, &client) },
        SideCheck { lesser: server_mean, greater: mean(LatencyClock::Service, &client) },
    ]
}
