-- What the harness costs is measured once for all runs of a setting: before which of them.
ALTER TABLE harness ADD COLUMN measured_before_run INTEGER;
