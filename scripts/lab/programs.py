"""kvmeter and the test programs that run in guests: built by cargo, or ready-made."""

import functools
import json
import os
import subprocess
from pathlib import Path

from packages import Missing

ROOT = Path(__file__).resolve().parents[2]
TARGETS = {"amd64": None, "arm64": "aarch64-unknown-linux-gnu"}
# The package of each test program.
TESTS = {
    name: package
    for package, names in {
        "spill": ["spill", "concurrent", "decoding", "filters", "limits", "model", "read_only", "regressions", "sim"],
        "host": ["host", "counters"],
        "store": ["store", "conformance"],
        "drive": ["drive", "instrument", "network", "trace"],
    }.items()
    for name in names
}


def program(name: str, arch: str) -> Path:
    """`KVMETER_LAB_BIN` names a folder of ready-made programs, with one for `arm64` in it."""
    ready = os.environ.get("KVMETER_LAB_BIN")
    if ready:
        path = Path(ready, *([] if arch == "amd64" else [arch]), name)
        if not path.is_file():
            raise Missing(f"{path}, where KVMETER_LAB_BIN promises it, is not there")
        return path
    if name == "kvmeter" and arch == "amd64":
        path = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"), "release/kvmeter")
        if not path.is_file():
            raise Missing(f"{path} is not there (make build)")
        return path
    return built(arch, name)


@functools.cache
def built(arch: str, name: str) -> Path:
    package = TESTS.get(name, name)
    words = ["cargo", "test", "--no-run"] if name in TESTS else ["cargo", "build", "--bin", name]
    words += ["--release", "--locked", "--package", package, "--message-format", "json"]
    environment = dict(os.environ)
    if TARGETS[arch]:
        words += ["--target", TARGETS[arch]]
        environment["CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER"] = "aarch64-linux-gnu-gcc"
    done = subprocess.run(["nice", *words], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise Missing(f"`{' '.join(words)}` failed")
    for line in done.stdout.splitlines():
        message = json.loads(line)
        if message.get("executable") and message["target"]["name"] == name:
            return Path(message["executable"])
    raise Missing(f"cargo built no {name} of {package}")
