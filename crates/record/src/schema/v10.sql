-- What became of the pipeline's slots, from a further pass after a run.
-- Its window and operations; NULL where there was no such pass.
ALTER TABLE profile ADD COLUMN top_down_seconds REAL;
ALTER TABLE profile ADD COLUMN top_down_operations INTEGER;
-- Why slots were not counted, or not those of every process.
ALTER TABLE profile ADD COLUMN top_down_missing TEXT;

CREATE TABLE top_down (
  run_key   INTEGER NOT NULL REFERENCES profile (run_key),
  position  INTEGER NOT NULL,
  side      TEXT NOT NULL CHECK (side IN ('client', 'server')),
  process   TEXT NOT NULL,
  -- The kind of core.
  cpu       TEXT NOT NULL,
  -- Where the formulas were published.
  source    TEXT NOT NULL,
  -- 1 where slots of user space alone were counted.
  user_only INTEGER NOT NULL,
  PRIMARY KEY (run_key, position)
) WITHOUT ROWID;

CREATE TABLE slot_share (
  run_key  INTEGER NOT NULL REFERENCES profile (run_key),
  -- Of its row in top_down.
  position INTEGER NOT NULL,
  category TEXT NOT NULL
           CHECK (category IN ('retiring', 'bad_speculation', 'frontend_bound', 'backend_bound',
                               'smt_contention', 'light_operations', 'heavy_operations',
                               'branch_mispredicts', 'machine_clears', 'fetch_latency',
                               'fetch_bandwidth', 'memory_bound', 'core_bound',
                               'frontend_stalls', 'backend_stalls')),
  -- From 0 to 1; NULL where it is unavailable.
  share    REAL,
  reason   TEXT,
  remedy   TEXT,
  PRIMARY KEY (run_key, position, category)
) WITHOUT ROWID;

CREATE TABLE slot_event (
  run_key   INTEGER NOT NULL REFERENCES profile (run_key),
  -- Of its row in top_down.
  position  INTEGER NOT NULL,
  -- Of the event in the groups that were counted together.
  nth       INTEGER NOT NULL,
  -- As perf writes it, with the manual's name.
  event     TEXT NOT NULL,
  -- Over all threads, scaled to the whole window; NULL where it is unavailable.
  count     REAL,
  reason    TEXT,
  remedy    TEXT,
  -- The share of the time in which it was counted.
  running   REAL NOT NULL,
  PRIMARY KEY (run_key, position, nth)
) WITHOUT ROWID;

-- A further quantity: SQLite changes a check by a new table.
CREATE TABLE widened (
  run_key   INTEGER NOT NULL REFERENCES profile (run_key),
  position  INTEGER NOT NULL,
  quantity  TEXT NOT NULL
            CHECK (quantity IN ('run_queue', 'block_wait', 'block_latency', 'block_size', 'softirq')),
  -- Of the buckets' values.
  unit      TEXT NOT NULL CHECK (unit IN ('nanoseconds', 'bytes')),
  -- A process, a block device or a kind of softirq.
  subject   TEXT NOT NULL,
  -- Of a process.
  side      TEXT CHECK (side IN ('client', 'server')),
  -- Of a block device.
  operation TEXT CHECK (operation IN ('read', 'write', 'flush', 'discard', 'other')),
  PRIMARY KEY (run_key, position)
) WITHOUT ROWID;
INSERT INTO widened SELECT * FROM kernel_histogram;
DROP TABLE kernel_histogram;
ALTER TABLE widened RENAME TO kernel_histogram;
