-- Runs of phase `simulate`, of which nothing was counted: not even none.
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
  CASE WHEN run.phase <> 'simulate' THEN run.seconds END AS seconds,
  CASE WHEN run.phase <> 'simulate' THEN run.operations END AS operations,
  CASE WHEN run.phase = 'simulate' THEN NULL
    WHEN run.seconds > 0 THEN run.operations / run.seconds ELSE 0.0 END AS throughput_ops_s,
  (SELECT value FROM reading WHERE run_key = run.key AND signal = 'client.achieved_rate'
   ORDER BY position LIMIT 1) AS achieved_rate_ops_s,
  (SELECT value FROM reading WHERE run_key = run.key AND signal = 'cache.hit_ratio'
   ORDER BY position LIMIT 1) AS hit_ratio,
  (SELECT value FROM reading WHERE run_key = run.key AND signal = 'cpu_s_per_mop'
   ORDER BY position LIMIT 1) AS cpu_s_per_mop,
  (SELECT value FROM reading WHERE run_key = run.key AND signal = 'ops_per_joule'
   ORDER BY position LIMIT 1) AS ops_per_joule,
  (SELECT value FROM reading WHERE run_key = run.key AND signal = 'joules_per_op'
   ORDER BY position LIMIT 1) AS joules_per_op,
  (SELECT value FROM reading WHERE run_key = run.key AND signal = 'joules_per_op_net'
   ORDER BY position LIMIT 1) AS joules_per_op_net,
  (SELECT scope FROM reading WHERE run_key = run.key AND signal = 'joules_per_op'
   AND value IS NOT NULL ORDER BY position LIMIT 1) AS energy_boundary,
  (SELECT origin FROM reading WHERE run_key = run.key AND signal = 'joules_per_op'
   AND value IS NOT NULL ORDER BY position LIMIT 1) AS energy_origin,
  (SELECT value FROM reading WHERE run_key = run.key AND signal = 'ipc'
   ORDER BY position LIMIT 1) AS ipc,
  CASE WHEN run.phase <> 'simulate' THEN run.verified END AS verified,
  CASE WHEN run.phase <> 'simulate' THEN run.misses END AS misses,
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
