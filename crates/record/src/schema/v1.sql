-- One invocation of `run` or `bench`.
CREATE TABLE execution (
  key         INTEGER PRIMARY KEY,
  id          TEXT NOT NULL UNIQUE,
  study       TEXT NOT NULL,
  question    TEXT,
  spec        TEXT NOT NULL,
  seed        TEXT NOT NULL,
  command     TEXT NOT NULL,
  version     TEXT NOT NULL,
  started_at  TEXT NOT NULL,
  finished_at TEXT,
  machine     TEXT NOT NULL
);

CREATE TABLE fact (
  execution_key INTEGER NOT NULL REFERENCES execution (key),
  position      INTEGER NOT NULL,
  name          TEXT NOT NULL,
  value         TEXT,
  unavailable   TEXT,
  source        TEXT NOT NULL,
  PRIMARY KEY (execution_key, position)
) WITHOUT ROWID;

CREATE TABLE planned (
  execution_key INTEGER NOT NULL REFERENCES execution (key),
  position      INTEGER NOT NULL,
  ordinal       INTEGER NOT NULL,
  label         TEXT NOT NULL,
  PRIMARY KEY (execution_key, position),
  UNIQUE (execution_key, ordinal)
) WITHOUT ROWID;

CREATE TABLE planned_setting (
  execution_key INTEGER NOT NULL REFERENCES execution (key),
  ordinal       INTEGER NOT NULL,
  key           TEXT NOT NULL,
  value         TEXT NOT NULL,
  PRIMARY KEY (execution_key, ordinal, key)
) WITHOUT ROWID;

-- One phase of one store under one workload.
CREATE TABLE run (
  key           INTEGER PRIMARY KEY,
  id            TEXT NOT NULL UNIQUE,
  execution_key INTEGER NOT NULL REFERENCES execution (key),
  ordinal       INTEGER NOT NULL,
  label         TEXT NOT NULL,
  phase         TEXT NOT NULL,
  store_version TEXT NOT NULL,
  threads       INTEGER NOT NULL,
  loop          TEXT NOT NULL,
  think_s       REAL,
  rate_ops_s    REAL,
  arrivals      TEXT,
  started_at    TEXT NOT NULL,
  seconds       REAL,
  operations    INTEGER NOT NULL,
  verified      INTEGER NOT NULL,
  misses        INTEGER NOT NULL,
  UNIQUE (execution_key, ordinal)
);

CREATE TABLE setting (
  run_key INTEGER NOT NULL REFERENCES run (key),
  key     TEXT NOT NULL,
  value   TEXT NOT NULL,
  PRIMARY KEY (run_key, key)
) WITHOUT ROWID;

-- Why a run is invalid, and what its reader should know.
CREATE TABLE remark (
  run_key  INTEGER NOT NULL REFERENCES run (key),
  kind     TEXT NOT NULL CHECK (kind IN ('invalid', 'warning')),
  position INTEGER NOT NULL,
  text     TEXT NOT NULL,
  PRIMARY KEY (run_key, kind, position)
) WITHOUT ROWID;

CREATE TABLE failure (
  run_key  INTEGER NOT NULL REFERENCES run (key),
  position INTEGER NOT NULL,
  kind     TEXT NOT NULL,
  count    INTEGER NOT NULL,
  first    TEXT NOT NULL,
  PRIMARY KEY (run_key, position)
) WITHOUT ROWID;

-- What the harness itself costs.
CREATE TABLE harness (
  run_key   INTEGER PRIMARY KEY REFERENCES run (key),
  ns_per_op REAL,
  clock_ns  REAL,
  verify_ns REAL,
  busy      REAL
);

CREATE TABLE stream (
  run_key INTEGER NOT NULL REFERENCES run (key),
  name    TEXT NOT NULL,
  value   TEXT NOT NULL,
  PRIMARY KEY (run_key, name)
) WITHOUT ROWID;

-- `histogram` is the whole distribution in nanoseconds (HDR V2, deflated); the columns
-- before it are computed from it when the run is kept, for readers that have only SQL.
CREATE TABLE latency (
  run_key   INTEGER NOT NULL REFERENCES run (key),
  position  INTEGER NOT NULL,
  operation TEXT NOT NULL,
  clock     TEXT NOT NULL,
  count     INTEGER NOT NULL,
  mean_us   REAL,
  min_us    REAL,
  p50_us    REAL,
  p90_us    REAL,
  p95_us    REAL,
  p99_us    REAL,
  p99_9_us  REAL,
  p99_99_us REAL,
  max_us    REAL,
  histogram BLOB NOT NULL,
  PRIMARY KEY (run_key, position),
  UNIQUE (run_key, operation, clock)
);

CREATE TABLE series (
  run_key    INTEGER NOT NULL REFERENCES run (key),
  position   INTEGER NOT NULL,
  at_s       REAL,
  seconds    REAL,
  operation  TEXT NOT NULL,
  operations INTEGER NOT NULL,
  p50_ns     INTEGER NOT NULL,
  p99_ns     INTEGER NOT NULL,
  p99_9_ns   INTEGER NOT NULL,
  max_ns     INTEGER NOT NULL,
  PRIMARY KEY (run_key, position)
) WITHOUT ROWID;

CREATE TABLE reading (
  run_key     INTEGER NOT NULL REFERENCES run (key),
  position    INTEGER NOT NULL,
  signal      TEXT NOT NULL,
  value       REAL,
  unavailable TEXT,
  remedy      TEXT,
  unit        TEXT NOT NULL,
  scope       TEXT NOT NULL,
  source      TEXT NOT NULL,
  window_s    REAL,
  origin      TEXT NOT NULL,
  PRIMARY KEY (run_key, position),
  CHECK ((value IS NULL) <> (unavailable IS NULL))
) WITHOUT ROWID;

-- The views below are what a person selects from. Their columns carry the names of
-- `export` and of `--json`.
CREATE VIEW run_summary AS
SELECT
  run.id AS run,
  execution.id AS execution,
  execution.study AS study,
  execution.machine AS machine,
  run.label AS label,
  run.phase AS phase,
  (SELECT value FROM setting WHERE run_key = run.key AND key = 'store') AS store,
  run.store_version AS store_version,
  (SELECT value FROM setting WHERE run_key = run.key AND key = 'workload') AS workload,
  run.threads AS threads,
  run.loop AS loop,
  run.rate_ops_s AS target_rate_ops_s,
  run.arrivals AS arrivals,
  run.think_s AS think_s,
  run.started_at AS started_at,
  run.seconds AS seconds,
  run.operations AS operations,
  CASE WHEN run.seconds > 0 THEN run.operations / run.seconds ELSE 0.0 END AS throughput_ops_s,
  (SELECT value FROM reading WHERE run_key = run.key AND signal = 'cpu_s_per_mop'
   ORDER BY position LIMIT 1) AS cpu_s_per_mop,
  run.verified AS verified,
  run.misses AS misses,
  (SELECT coalesce(sum(count), 0) FROM failure WHERE run_key = run.key) AS errors,
  NOT EXISTS (SELECT 1 FROM remark WHERE run_key = run.key AND kind = 'invalid') AS valid,
  (SELECT group_concat(text, '; ') FROM
    (SELECT text FROM remark WHERE run_key = run.key AND kind = 'invalid' ORDER BY position)
  ) AS invalid_because,
  (SELECT group_concat(text, '; ') FROM
    (SELECT text FROM remark WHERE run_key = run.key AND kind = 'warning' ORDER BY position)
  ) AS warnings,
  harness.ns_per_op AS harness_ns_per_op,
  harness.clock_ns AS harness_clock_ns,
  harness.verify_ns AS harness_verify_ns,
  harness.busy AS harness_busy
FROM run
JOIN execution ON execution.key = run.execution_key
LEFT JOIN harness ON harness.run_key = run.key;

CREATE VIEW latency_summary AS
SELECT
  summary.run, summary.execution, summary.study, summary.machine, summary.label, summary.phase,
  summary.store, summary.store_version, summary.workload,
  latency.operation, latency.clock, latency.count, latency.mean_us, latency.min_us,
  latency.p50_us, latency.p90_us, latency.p95_us, latency.p99_us, latency.p99_9_us,
  latency.p99_99_us, latency.max_us
FROM run_summary AS summary
JOIN run ON run.id = summary.run
JOIN latency ON latency.run_key = run.key;

CREATE VIEW series_summary AS
SELECT
  summary.run, summary.execution, summary.study, summary.machine, summary.label, summary.phase,
  summary.store, summary.store_version, summary.workload,
  series.at_s, series.seconds, series.operation, series.operations,
  CASE WHEN series.seconds > 0 THEN series.operations / series.seconds ELSE 0.0 END
    AS throughput_ops_s,
  series.p50_ns / 1e3 AS p50_us, series.p99_ns / 1e3 AS p99_us,
  series.p99_9_ns / 1e3 AS p99_9_us, series.max_ns / 1e3 AS max_us
FROM run_summary AS summary
JOIN run ON run.id = summary.run
JOIN series ON series.run_key = run.key;

CREATE VIEW reading_summary AS
SELECT
  summary.run, summary.execution, summary.study, summary.machine, summary.label, summary.phase,
  summary.store, summary.store_version, summary.workload,
  reading.signal, reading.value, reading.unit, reading.scope, reading.origin, reading.window_s,
  reading.source, reading.unavailable, reading.remedy
FROM run_summary AS summary
JOIN run ON run.id = summary.run
JOIN reading ON reading.run_key = run.key;
