"""The laboratory's command: which cases run, in which order, and what came of them."""

import importlib
import shutil
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

from case import Case
from guest import MACHINES
from laboratory import Broken, Laboratory
from packages import Missing

QUICK = ["boot"]


def names_of_cases() -> list[str]:
    """Each file of `cases`."""
    return sorted(path.stem for path in Path(__file__).with_name("cases").glob("*.py"))


def variants(name: str) -> list[tuple[str, Case]]:
    case = importlib.import_module(f"cases.{name}").CASE
    if not case.variants:
        return [(name, case)]
    return [(f"{name}-{label}", replace(case, **fields)) for label, fields in case.variants.items()]


def chosen(words: list[str]) -> list[tuple[str, Case]]:
    """`nvme`, or one machine of a case: `kernels-5.10`."""
    every = [(name, variants(name)) for name in names_of_cases()]
    found = []
    for word in words:
        here = [one for name, several in every for one in several if word in (name, one[0])]
        if not here:
            print(f"test-lab: there is no case `{word}`; known: {', '.join(names_of_cases())}", file=sys.stderr)
            sys.exit(2)
        found += here
    return found


def play(name: str, case: Case, broken: bool) -> str:
    """Runs one case and prints what came of it: `ok`, `FAILED` or `SKIPPED`."""
    started, trouble = time.monotonic(), None
    if not shutil.which(MACHINES[case.arch][0]):
        print(f"SKIPPED: {name}: {MACHINES[case.arch][0]} is not installed (scripts/setup lab)", flush=True)
        return "SKIPPED"
    lab = Laboratory(name, case, broken)
    try:
        lab.run()
    except Missing as missing:
        print(f"SKIPPED: {name}: {missing}", flush=True)
        return "SKIPPED"
    except Broken as error:
        trouble = str(error)
    finally:
        lab.stop()
    failed = [text for passed, text in lab.checks if not passed]
    # With --broken the case breaks what it checks, and passes if it finds that out.
    result = "FAILED" if bool(failed or trouble) != broken else "ok"
    seconds = time.monotonic() - started
    kernel = lab.kernel.release
    print(f"{result}: {name}: {len(lab.checks) - len(failed)} of {len(lab.checks)} checks, {lab.boots} boots, "
          f"{seconds:.0f} s, Linux {kernel}, {lab.accelerator}; log {lab.place}/log")
    for text in failed + ([trouble] if trouble else []):
        print(f"    failed: {text}")
    for text in lab.figures:
        print(f"    {text}")
    for text in lab.notes:
        print(f"    note: {text}")
    sys.stdout.flush()
    return result


def main() -> int:
    words = sys.argv[1:]
    # An end by a signal ends the guest, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    if "--list" in words:
        for name in names_of_cases():
            for label, case in variants(name):
                print(f"{label:18} {case.summary}")
        return 0
    need, quick, broken = (f"--{word}" in words for word in ("need", "quick", "broken"))
    names = [word for word in words if not word.startswith("--")]
    results = [play(name, case, broken) for name, case in chosen(names or (QUICK if quick else names_of_cases()))]
    print("What a guest shows of speed is nothing: it shares, and mostly emulates, its CPUs.")
    return 1 if "FAILED" in results or (need and "SKIPPED" in results) else 0


if __name__ == "__main__":
    sys.exit(main())
