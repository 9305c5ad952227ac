//! Whether a run measured the server or was limited by the client.

use model::signal::{CLIENT_BUSY, CLIENT_LATENESS};
use model::{LatencyClock, Run};

use super::{MAX_CLIENT_BUSY, MIN_ACHIEVED, achieved};

/// The largest share of the client's lateness in the mean response time, and the least lateness
/// that counts.
const MAX_LATENESS_SHARE: f64 = 0.5;
const MIN_LATENESS_S: f64 = 5e-6;
/// The largest share of the harness in the client's busy time.
const MAX_HARNESS_SHARE: f64 = 0.5;

/// The state of the client in a trial.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ClientHealth {
    /// Share of its threads' time in which it could not have issued more, between 0 and 1.
    pub busy: f64,
    /// Why its requests were sent too late for their latencies to count; None if they were not.
    pub late: Option<String>,
}

impl ClientHealth {
    /// The client of an open-loop run.
    ///
    /// With a remote server the client is busy whenever its threads do not wait. An embedded store
    /// runs in the client thread: a thread without idle time is the store's limit, unless most of
    /// its time goes to making and checking requests.
    pub fn of(run: &Run) -> ClientHealth {
        let all = run.value(CLIENT_BUSY.name).unwrap_or_default();
        let harness = run.tax.as_ref().map_or(0.0, |tax| tax.busy);
        // Only networked runs have connections.
        let networked = run.settings.contains_key("connections");
        let busy = match networked {
            true => all,
            false if all > MAX_CLIENT_BUSY && harness > MAX_HARNESS_SHARE * all => all,
            false => harness,
        };
        ClientHealth { busy, late: lateness(run) }
    }
}

/// What kept a run from its rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitedBy {
    Client,
    Server,
}

/// What limited an open-loop run; None if nothing did.
pub fn limit(run: &Run, client: &ClientHealth) -> Option<LimitedBy> {
    let rate = run.target_rate()?;
    let behind = achieved(run, rate) < MIN_ACHIEVED * rate;
    // A late client that keeps up has headroom: at low rates lateness is the wake-up of a thread.
    if client.busy > MAX_CLIENT_BUSY || behind && client.late.is_some() {
        Some(LimitedBy::Client)
    } else {
        behind.then_some(LimitedBy::Server)
    }
}

/// Why latencies are dominated by the client, if they are.
fn lateness(run: &Run) -> Option<String> {
    let late_s = run.value(CLIENT_LATENESS.name)?;
    let share = lateness_share(run)?;
    (late_s > MIN_LATENESS_S && share > MAX_LATENESS_SHARE).then(|| {
        format!("{:.0} % of the mean response time, {:.1} µs", share * 100.0, late_s * 1e6)
    })
}

/// The share of the client's lateness in the mean response time.
pub(super) fn lateness_share(run: &Run) -> Option<f64> {
    let response_s = run.latency_of_all(LatencyClock::Response)?.mean() / 1e9;
    Some(run.value(CLIENT_LATENESS.name)? / response_s.max(1e-12))
}
