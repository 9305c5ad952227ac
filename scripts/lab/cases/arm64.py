"""64-bit Arm: Spill's tests on a real kernel, and counters of a PMU that QEMU has."""

from case import Case

COUNTERS = r"""
figure "PMU: $(ls /sys/bus/event_source/devices | tr '\n' ' ')"
[ -z "${lab_broken:-}" ] || echo 3 >/proc/sys/kernel/perf_event_paranoid
check "the test of the running kernel's counters" counters --exact the_running_kernel_counts_this_process --nocapture
figure "$(grep counted /tmp/out | tr '\n' ';')"
cp /tmp/out /tmp/counters
check "instructions are counted" grep -q 'counted instructions' /tmp/counters
check "cycles are counted" grep -q 'counted cycles' /tmp/counters
counted() { grep -o "counted $1: [0-9]*" /tmp/counters | grep -o '[0-9]*$'; }
# QEMU's clock moves 2 ns with each instruction, and its PMU counts cycles of 1 ns.
check "there are two cycles in an instruction, as QEMU's clock has it" holds "($(counted cycles) / $(counted instructions) - 2 | fabs) < 0.02"
"""

# All of Spill's tests but `interleavings`, which needs a scheduler in the place of the kernel's.
SPILL = ["spill", "concurrent", "decoding", "filters", "limits", "model", "read_only", "regressions", "sim"]
DRIVE = ["store", "conformance", "drive", "instrument", "network", "trace"]


def suite(tests: list[str]) -> dict:
    """All these tests."""
    script = r"""
mkfs.ext4 -q -F /dev/vda && mount /dev/vda /disk || fail "mount"
export TMPDIR=/disk/tests${lab_broken:+/none}
for tests in %s; do
    mkdir $TMPDIR
    # The skipped test asks how late the client is, which an emulated one is.
    check "the tests '$tests'" $tests --test-threads=2 --skip queueing_in_the_store_is_not_client_lateness
    figure "$tests: $(grep 'test result' /tmp/out)"
    rm -r $TMPDIR
done
"""
    return {"cpu": "max", "binaries": tests, "script": script % " ".join(tests), "memory": "6G", "disks": [2048], "limit_s": 5400}


CASE = Case(
    summary="Spill's tests on 64-bit Arm; cycles and instructions through perf_event_open",
    limit_s=1500,
    memory="1G",
    arch="arm64",
    binaries=["spill", "sim", "host"],
    modules=["ext4", "crc32c_generic"],
    packages=["e2fsprogs"],
    programs=["sbin/mkfs.ext4"],
    disks=[128],
    variants={
        "max": {"cpu": "max"},
        "neoverse-n1": {"cpu": "neoverse-n1"},
        "spill": suite(SPILL),
        "drive": suite(DRIVE),
        # QEMU counts instructions only where it counts them itself, with one thread.
        "pmu": {
            "machine": ["-icount", "shift=1"], "accelerator": "tcg", "smp": "1",
            "binaries": ["counters"], "script": COUNTERS, "cpu": "max",
        },
    },
    script=r"""
figure "pages of $(getconf PAGESIZE 2>/dev/null || echo 4096) B; PMU: $(ls /sys/bus/event_source/devices | tr '\n' ' ')"
mkfs.ext4 -q -F /dev/vda && mount /dev/vda /disk || fail "mount"
check "the unit tests of Spill" spill --test-threads=2
check "the unit tests of host" host --test-threads=2
figure "host: $(grep -m 1 'test result' /tmp/out)"
: >/tmp/ledger
export SPILL_POWER_STORE=/disk/power SPILL_POWER_LEDGER=/tmp/ledger SPILL_POWER_MODE=2
check "Spill's writer" env SPILL_POWER_WRITES=100 sim --exact power_loss::round --ignored --nocapture --test-threads=1
umount /disk; mount /dev/vda /disk
floor=100; [ -z "${lab_broken:-}" ] || floor=105
check "and what it wrote" env SPILL_POWER_FLOOR=$floor SPILL_POWER_STARTED=$floor SPILL_POWER_WRITES=1 sim --exact power_loss::round --ignored --nocapture --test-threads=1
""",
)
