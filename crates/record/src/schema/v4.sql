-- What a study varies, checks, asks and draws, and what was done otherwise than planned.
CREATE TABLE design (
  execution_key INTEGER PRIMARY KEY REFERENCES execution (key),
  -- One JSON object; see docs/results-file.md.
  design        TEXT NOT NULL
);

CREATE TABLE note (
  execution_key INTEGER NOT NULL REFERENCES execution (key),
  position      INTEGER NOT NULL,
  text          TEXT NOT NULL,
  PRIMARY KEY (execution_key, position)
) WITHOUT ROWID;
