//! What the server's latencies and the client's must have in common, whatever was measured:
//! the server's part of a request lies within the client's.

use model::Distribution;
use record::{LatencyClock, Run};

use crate::slo::Figure;

/// Both sides are histograms of three digits: a difference within a bucket is none.
const RESOLUTION: f64 = 2e-3;

/// One figure of one side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Side {
    /// [`Clock::Server`] or [`Clock::Service`].
    pub clock: LatencyClock,
    pub figure: Figure,
    pub nanoseconds: f64,
}

/// `lesser` must not exceed `greater`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Check {
    pub lesser: Side,
    pub greater: Side,
}

impl Check {
    pub fn holds(&self) -> bool {
        self.lesser.nanoseconds <= self.greater.nanoseconds * (1.0 + RESOLUTION)
    }

    /// What could make it fail, most likely first.
    pub fn explanation(&self) -> &'static str {
        match (self.lesser.figure, self.greater.clock) {
            (Figure::Mean, LatencyClock::Server) => {
                "requests rarer than one in a hundred took most of the server's time: its p99.9 \
                 and maximum say how long, and its own logs may say why"
            }
            (Figure::Mean, _) => {
                "the two sides did not count the same requests: other clients asked the server \
                 too, or its batches of pipelined requests were counted as single long ones"
            }
            _ => {
                "the two sides did not count the same requests: other clients asked the server \
                 too, requests of the warm-up are in its count, or its batches of pipelined \
                 requests were counted as single long ones"
            }
        }
    }
}

/// The checks of a run whose server was watched, in this order: the server's mean is not above
/// the server's p99, the server's p99 not above the client's, the server's mean not above the
/// client's mean. None where one of the two sides is missing.
///
/// All operations together, for a server does not tell them apart. The client's side counts
/// from sending (service time): the server's part of each request lies within it, and it holds
/// no queue of the client's, so that no breach hides behind one.
pub fn checks(run: &Run) -> Vec<Check> {
    let sides =
        (run.latency_of_all(LatencyClock::Server), run.latency_of_all(LatencyClock::Service));
    let (Some(server), Some(client)) = sides else { return Vec::new() };
    let mean = |clock, histogram: &Distribution| Side {
        clock,
        figure: Figure::Mean,
        nanoseconds: histogram.mean(),
    };
    let p99 = |clock, histogram: &Distribution| Side {
        clock,
        figure: Figure::Percentile(99.0),
        nanoseconds: histogram.value_at_percentile(99.0) as f64,
    };
    let server_p99 = p99(LatencyClock::Server, &server);
    let server_mean = mean(LatencyClock::Server, &server);
    vec![
        Check { lesser: server_mean, greater: server_p99 },
        Check { lesser: server_p99, greater: p99(LatencyClock::Service, &client) },
        Check { lesser: server_mean, greater: mean(LatencyClock::Service, &client) },
    ]
}
