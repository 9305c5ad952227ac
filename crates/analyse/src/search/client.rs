//! Whether a run tells of the server or of the client that asked it.

use record::{LatencyClock, Run};

use super::{LEAST_ACHIEVED, MOST_BUSY, achieved};

/// The client's own part of the mean response from which it is what was measured, and the least
/// of it that is more than making a request and reading the clock.
const RULING_LATENESS: f64 = 0.5;
const LEAST_LATENESS_S: f64 = 5e-6;
/// The harness's part of the busy time from which it is what was measured.
const RULING_HARNESS: f64 = 0.5;

/// How the client did in a trial.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ClientHealth {
    /// Share of its threads' time in which it could not have sent more, between 0 and 1.
    pub busy: f64,
    /// Why its requests went out too late for their latencies to count; none if they did not.
    pub late: Option<String>,
}

impl ClientHealth {
    /// The client of a run with a rate.
    ///
    /// On its way to a server a request costs the client sending and receiving: its share is
    /// all the time in which its threads did not wait. A store in the same process answers in
    /// the very thread that asks: time inside it is the store's, and a thread without time left
    /// is the store's limit, unless most of that time went to making and checking requests.
    pub fn of(run: &Run) -> ClientHealth {
        let all = run.value("client.busy").unwrap_or_default();
        let harness = run.tax.as_ref().map_or(0.0, |tax| tax.busy);
        // Only runs that go over a network have them.
        let networked = run.settings.contains_key("connections");
        let busy = match networked {
            true => all,
            false if all > MOST_BUSY && harness > RULING_HARNESS * all => all,
            false => harness,
        };
        ClientHealth { busy, late: lateness(run) }
    }
}

/// Who kept a run from its rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitedBy {
    Client,
    Server,
}

/// Who was the limit of a run with a rate; none where neither was.
pub fn limit(run: &Run, client: &ClientHealth) -> Option<LimitedBy> {
    let rate = run.target_rate()?;
    let behind = achieved(run, rate) < LEAST_ACHIEVED * rate;
    // A client that is late and keeps up has room: at low rates it is what waking a thread takes.
    if client.busy > MOST_BUSY || behind && client.late.is_some() {
        Some(LimitedBy::Client)
    } else {
        behind.then_some(LimitedBy::Server)
    }
}

/// Why latencies are the client's and not the server's, if they are.
fn lateness(run: &Run) -> Option<String> {
    let late_s = run.value("client.lateness")?;
    let share = lateness_share(run)?;
    (late_s > LEAST_LATENESS_S && share > RULING_LATENESS).then(|| {
        format!("{:.0} % of the mean response time, {:.1} µs", share * 100.0, late_s * 1e6)
    })
}

/// The client's own part of the mean response.
pub(super) fn lateness_share(run: &Run) -> Option<f64> {
    let response_s = run.latency_of_all(LatencyClock::Response)?.mean() / 1e9;
    Some(run.value("client.lateness")? / response_s.max(1e-12))
}
