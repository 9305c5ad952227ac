-- What was counted inside the kernel during the pass after a run.
-- Events that were not counted; NULL where nothing was.
ALTER TABLE profile ADD COLUMN events_lost INTEGER;

CREATE TABLE kernel_histogram (
  run_key   INTEGER NOT NULL REFERENCES profile (run_key),
  position  INTEGER NOT NULL,
  quantity  TEXT NOT NULL
            CHECK (quantity IN ('run_queue', 'block_latency', 'block_size', 'softirq')),
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

CREATE TABLE kernel_bucket (
  run_key  INTEGER NOT NULL REFERENCES profile (run_key),
  -- Of its histogram.
  position INTEGER NOT NULL,
  -- The lowest value, and how many values from there on.
  low      INTEGER NOT NULL,
  width    INTEGER NOT NULL,
  count    INTEGER NOT NULL,
  sum      INTEGER NOT NULL,
  PRIMARY KEY (run_key, position, low)
) WITHOUT ROWID;

CREATE TABLE kernel_missing (
  run_key  INTEGER NOT NULL REFERENCES profile (run_key),
  position INTEGER NOT NULL,
  what     TEXT NOT NULL,
  reason   TEXT NOT NULL,
  PRIMARY KEY (run_key, position)
) WITHOUT ROWID;

CREATE TABLE tcp (
  run_key                  INTEGER NOT NULL REFERENCES profile (run_key),
  position                 INTEGER NOT NULL,
  side                     TEXT NOT NULL CHECK (side IN ('client', 'server')),
  process                  TEXT NOT NULL,
  connections              INTEGER NOT NULL,
  -- Segments that were sent again during the pass.
  retransmitted            INTEGER NOT NULL,
  median_rtt_us            REAL NOT NULL,
  max_rtt_us               REAL NOT NULL,
  mean_send_queue_bytes    REAL NOT NULL,
  max_send_queue_bytes     INTEGER NOT NULL,
  mean_receive_queue_bytes REAL NOT NULL,
  max_receive_queue_bytes  INTEGER NOT NULL,
  PRIMARY KEY (run_key, position)
) WITHOUT ROWID;
