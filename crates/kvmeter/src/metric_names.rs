//! Names of metrics that a user gives.

use analyse::{Metric, field_names};
use model::suggest::nearest;
use study::signals::{catalogue, check_signal};

/// What is wrong with a metric that no run can have; None of one that is known.
pub fn unknown(metric: &Metric) -> Option<String> {
    let Metric::Signal(name) = metric else { return None };
    check_signal(name).is_err().then(|| {
        let known = catalogue().map(|signal| signal.name).chain(field_names());
        match nearest(name, known) {
            Some(meant) => format!("there is no metric `{name}`; did you mean `{meant}`?"),
            None => format!("there is no metric `{name}`; `kvmeter report FILE --json` has them"),
        }
    })
}
