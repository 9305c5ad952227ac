-- New names in columns that version 1 has: the clocks `arrival` and `server`, the operation
-- `any`, the scopes `server` and `client`, the unit `per_million_ops`. A run's summary says
-- what rate went out and how many reads hit.
DROP VIEW run_summary;

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
  (SELECT value FROM reading WHERE run_key = run.key AND signal = 'client.achieved_rate'
   ORDER BY position LIMIT 1) AS achieved_rate_ops_s,
  (SELECT value FROM reading WHERE run_key = run.key AND signal = 'cache.hit_ratio'
   ORDER BY position LIMIT 1) AS hit_ratio,
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
