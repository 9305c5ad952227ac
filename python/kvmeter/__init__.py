"""Reads the results files of kvmeter as data frames.

>>> import kvmeter
>>> results = kvmeter.read("results.sqlite")
>>> results.runs()          # one row a run; units are in the columns' names

The command that came with this module does the reading, so that both agree on what is in a file.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

__all__ = ["Error", "Results", "read"]


class Error(Exception):
    """What the command refused, in its own words."""


def read(file: str | os.PathLike[str], frames: str | None = None) -> Results:
    """Opens a results file.

    file: its path, which may be narrowed to some of its runs: ``results.sqlite?store=spill``.
    frames: ``"polars"`` or ``"pandas"``; without it, the one that is installed, Polars first.

    Raises :class:`Error` if the file cannot be read, :class:`ImportError` without both libraries.
    """
    results = Results(os.fspath(file), frames or _frames())
    results.runs()
    return results


class Results:
    """The tables of one results file, as they are when they are asked for."""

    def __init__(self, file: str, frames: str) -> None:
        if frames not in ("polars", "pandas"):
            raise ValueError(f"frames is {frames!r}; it is 'polars' or 'pandas'")
        self.file = file
        self.frames = frames

    def runs(self) -> Any:
        """One row a run: settings, throughput in operations a second, validity and why."""
        return self._table("runs")

    def latency(self) -> Any:
        """One row a kind of operation and clock of a run: percentiles in microseconds."""
        return self._table("latency")

    def series(self) -> Any:
        """One row an interval of a run."""
        return self._table("series")

    def readings(self) -> Any:
        """One row a signal of a run: value or why there is none, unit, scope, source."""
        return self._table("readings")

    def samples(self) -> Any:
        """One row a value that a probe sampled during a run."""
        return self._table("samples")

    def _table(self, table: str) -> Any:
        with tempfile.TemporaryDirectory(prefix="kvmeter-") as folder:
            out = Path(folder) / f"{table}.parquet"
            words = ["export", "--quiet", "--format", "parquet", "--table", table, "--out", out]
            done = subprocess.run(
                [_command(), *words, "--", self.file], capture_output=True, text=True, check=False
            )
            if done.returncode != 0:
                raise Error(done.stderr.strip().removeprefix("error: "))
            if self.frames == "polars":
                import polars

                # In memory, for the file goes with its folder.
                return polars.read_parquet(out, memory_map=False)
            import pandas

            return pandas.read_parquet(out)


def _frames() -> str:
    from importlib.util import find_spec

    for name in ("polars", "pandas"):
        if find_spec(name):
            return name
    raise ImportError("install polars or pandas: pip install 'kvmeter[polars]'")


def _command() -> str:
    """The command beside this module, else the first in PATH."""
    for folder in (sysconfig.get_path("scripts"), os.path.dirname(sys.executable)):
        beside = os.path.join(folder, "kvmeter")
        if os.path.exists(beside):
            return beside
    found = shutil.which("kvmeter")
    if found is None:
        raise Error("the command kvmeter is not installed beside this module")
    return found
