-- Where the time of a run's processes went, from a pass of its own after the run.
CREATE TABLE profile (
  run_key      INTEGER PRIMARY KEY REFERENCES run (key),
  -- What interrupts threads for samples: the counter of cycles, or the software clock.
  clock        TEXT NOT NULL CHECK (clock IN ('cycles', 'software')),
  -- Samples a second of CPU time.
  frequency_hz INTEGER NOT NULL,
  -- 1 where the kernel was sampled too.
  kernel       INTEGER NOT NULL,
  seconds      REAL NOT NULL,
  operations   INTEGER NOT NULL,
  lost         INTEGER NOT NULL
);

CREATE TABLE stack (
  run_key  INTEGER NOT NULL REFERENCES profile (run_key),
  position INTEGER NOT NULL,
  side     TEXT NOT NULL CHECK (side IN ('client', 'server')),
  process  TEXT NOT NULL,
  state    TEXT NOT NULL CHECK (state IN ('on_cpu', 'blocked', 'preempted')),
  -- Functions separated by semicolons, the outermost first; those of the kernel end in _[k].
  frames   TEXT NOT NULL,
  samples  INTEGER NOT NULL,
  -- Of all threads, estimated from the samples.
  seconds  REAL NOT NULL,
  PRIMARY KEY (run_key, position)
) WITHOUT ROWID;
