//! A history as JSON.

use serde_json::{Value, json};

use super::{HistoryPoint, HistorySeries, sentences};

/// As one object.
pub fn object(all: &[HistorySeries]) -> Value {
    json!({
        "summary": sentences(all),
        "series": all.iter().map(series).collect::<Vec<_>>(),
    })
}

fn series(own: &HistorySeries) -> Value {
    let changes = own.changes.iter().map(|change| {
        let mut value = point(&own.points[change.at]);
        value["result"] = json!(change.at);
        value["before"] = json!(change.before);
        value["after"] = json!(change.after);
        value["p"] = json!(change.p);
        value["worse"] = json!(own.is_worse(change));
        value["version_before"] = json!(own.points[change.at - 1].version);
        value
    });
    json!({
        "metric": own.metric,
        "cell": own.cell,
        "unit": own.unit,
        "changes": changes.collect::<Vec<_>>(),
        "results": own.points.iter().map(point).collect::<Vec<_>>(),
    })
}

fn point(point: &HistoryPoint) -> Value {
    json!({
        "started_at": point.started_at,
        "file": point.file,
        "version": point.version,
        "value": point.value,
        "runs": point.runs,
    })
}
