"""Device mapper's devices that fail, lie and dawdle, and a log of writes replayed to every flush."""

import os
import re
import shutil

from case import Case
from laboratory import Broken
from writelog import Replay

# How many states of the log are looked at, evenly spread and the last one among them.
STATES = int(os.environ.get("KVMETER_LAB_REPEATS", "24"))

SCRIPT = r"""
size=$(blockdev --getsz /dev/vda)
linear() { echo "0 $size linear /dev/vda 0"; }
# create NAME TABLE: without udev no link to the device is made.
create() {
    dmsetup create $1 --noudevsync --noudevrules --table "$2" || fail "dmsetup create: $2"
    mkdir -p /dev/mapper
    ln -sf /dev/$(dmsetup info -c --noheadings -o blkdevname $1) /dev/mapper/$1
}
# become TABLE: from one moment to the next; what waits is not written first.
become() { dmsetup suspend --noflush --nolockfs d; dmsetup reload d --table "$1"; dmsetup resume d; }
round() {
    SPILL_POWER_STORE=/disk/store SPILL_POWER_LEDGER=/tmp/ledger SPILL_POWER_MODE=${mode:-2} SPILL_POWER_FLOOR=$1 \
        SPILL_POWER_STARTED=$2 SPILL_POWER_WRITES=$3 sim --exact power_loss::round --ignored --nocapture --test-threads=1
}
last() { sed -n "s/^$1 //p" /tmp/ledger | tail -n 1; }
bench() { kvmeter bench null -w ycsb-c -n 100 -t 100ms --warm-up 0s -j 1 --probes off -q -o /disk/results.sqlite; }
runs() { kvmeter export $1 --format json 2>/tmp/out | jq length; }
# A boot again: nothing that was cached is there.
again() { umount /disk || fail "umount"; become "$(linear)"; echo 3 >/proc/sys/vm/drop_caches; mount /dev/mapper/d /disk || fail "mount again"; }

fails() { # NAME TABLE: the device becomes this under load, and what it was again
    : >/tmp/ledger
    round $done $((done + 1)) 200000 >/tmp/out 2>&1 &
    writer=$!
    sleep 5
    become "$2"
    for _ in $(seq 150); do kill -0 $writer 2>/dev/null || break; sleep 0.1; done
    bench >/tmp/bench 2>&1; code=$?
    kill -9 $writer 2>/dev/null && note "$1: the writer goes on"
    wait $writer; ended=$?
    figure "$1: after $(( $(last acknowledged) - done )) writes: $(last error: || echo no error); the results file: exit code $code, $(head -c 160 /tmp/bench | tr '\n' ' ')"
    report "$1: it ends without a panic" "$([ $ended = 0 ] || echo exit code $ended)"
    check "$1: the error is typed" grep -q '^error: ' /tmp/ledger
    cp /tmp/bench /tmp/out
    # A failed disk is no mistake of the user, a file system that the kernel has made read-only may be.
    want=1; grep -Eq 'cannot be (written|opened)' /tmp/bench && want=2
    report "$1: the results file fails in words" "$([ $code = $want ] && [ -s /tmp/bench ] && ! grep -q panicked /tmp/bench || echo exit code $code)"
    now=$(last acknowledged)
    again
    [ -z "${lab_broken:-}" ] || now=$((now + 5))
    : >/tmp/ledger
    check "$1: nothing acknowledged is lost ($now writes)" round $now $((now + 1)) 20
    done=$(last acknowledged)
    check "$1: no finished run is lost" test "$(runs /disk/results.sqlite)" -ge $known
    check "$1: the results file takes another run" bench
    known=$((known + 1))
}

case $lab_part in
base)
    mkfs.ext4 -q -F /dev/vda || fail "mkfs"
    ;;
fail)
    create d "$(linear)"
    mount /dev/mapper/d /disk || fail "mount"
    check "a store" round 0 0 100
    check "a results file" bench
    done=$(last acknowledged); known=1
    fails "dm-error" "0 $size error"
    fails "dm-flakey, writes fail" "0 $size flakey /dev/vda 0 0 1000 1 error_writes"
    # A device that takes writes and keeps none: what was acknowledged until then must be there.
    : >/tmp/ledger
    round $done $((done + 1)) 200000 >/tmp/out 2>&1 &
    writer=$!
    sleep 5
    become "0 $size flakey /dev/vda 0 0 1000 1 drop_writes" 
    sleep 3; kill -9 $writer; wait $writer 2>/dev/null
    lied=$(last acknowledged)
    again
    : >/tmp/ledger.new; cp /tmp/ledger /tmp/ledger.old; : >/tmp/ledger
    round $done $((lied + 1)) 20 >/tmp/out 2>&1
    figure "dm-flakey, writes dropped: $lied acknowledged, $(last found) found, $(last error:)"
    check "dm-flakey, writes dropped: a prefix or a typed error, no wrong answer" sh -c '! grep -q "^lost" /tmp/ledger && grep -Eq "^(found|error:)" /tmp/ledger'
    umount /disk; become "0 $size delay /dev/vda 0 0 /dev/vda 0 100"
    mount /dev/mapper/d /disk
    kvmeter bench "spill:/disk/slow?durability=sync" -w ycsb-load -n 20 --ops 20 --warm-up 0s -j 1 --probes off --json -q -o /tmp/slow.sqlite >/tmp/slow.json 2>/tmp/out
    p50=$(jq '[.latency_us[].p50] | max' /tmp/slow.json)
    figure "dm-delay of 100 ms: p50 of a synced write $p50 us"
    check "dm-delay: a synced write takes 100 ms" holds "$p50 >= 100000"
    umount /disk
    ;;
log)
    create d "0 $size log-writes /dev/vda /dev/vdb"
    mount /dev/mapper/d /disk || fail "mount"
    mkfifo /tmp/marks
    # A mark stands behind what it promises: it is made after the acknowledgement.
    (while read -r word number; do
        case $word in acknowledged | synced) dmsetup message d 0 mark "$word-$number" ;; esac
    done </tmp/marks) &
    marker=$!
    writes=150; [ $lab_mode = 0 ] && writes=600
    [ -z "${lab_broken:-}" ] || lab_mode=0
    SPILL_POWER_STORE=/disk/store SPILL_POWER_LEDGER=/tmp/marks SPILL_POWER_MODE=$lab_mode SPILL_POWER_WRITES=$writes \
        sim --exact power_loss::round --ignored --nocapture --test-threads=1 &
    writer=$!
    for run in 1 2 3; do bench >/tmp/out 2>&1 && dmsetup message d 0 mark "run-$run"; done
    check "the writer ends well" wait $writer
    wait $marker
    umount /disk
    dmsetup remove d
    ;;
look)
    # One state behind the other on a disk.
    at=0
    while IFS=, read -r floor started known; do
        create s "0 $size linear /dev/vdb $((at * size))"
        if mount /dev/mapper/s /disk 2>/tmp/out; then
            if [ -d /disk/store ] || [ "$floor" != 0 ]; then
                : >/tmp/ledger
                mode=$lab_mode check "state $at: Spill has $floor to $started writes" round $floor $started 5
                say "prefix $(last found)"
            fi
            count=$(runs /disk/results.sqlite)
            check "state $at: $known finished runs are there" test "${count:-0}" -ge $known
            umount /disk
        else
            report "state $at: mounts" "$(cat /tmp/out)"
        fi
        dmsetup remove s
        at=$((at + 1))
    done </lab/states
    ;;
esac
"""


def play(lab) -> None:
    lab.listen(lab.boot("lab_part=base"))
    base = lab.place / "base"
    shutil.copyfile(lab.disk(0), base)
    lab.listen(lab.boot("lab_part=fail"))
    for mode, name in ((2, "Sync"), (0, "None")):
        shutil.copyfile(base, lab.disk(0))
        lab.blank(1, 512)
        lab.listen(lab.boot(f"lab_part=log lab_mode={mode}"))
        look(lab, base, mode, name)


def promised(marks: list[str], mode: int) -> tuple[int, int]:
    """How many writes and how many runs must be there, from what was acknowledged before a flush."""
    word = "acknowledged" if mode == 2 else "synced"
    numbers = {"run": 0, word: 0}
    for kind, number in (re.fullmatch(r"(\w+)-(\d+)", mark).groups() for mark in marks):
        if kind in numbers:
            numbers[kind] = max(numbers[kind], int(number))
    return numbers[word], numbers["run"]


def look(lab, base, mode: int, name: str) -> None:
    """Makes the device's state at flushes of the log, and has a guest look at each of them."""
    log = lab.place / "log-of-writes"
    shutil.move(lab.disk(1), log)
    replay = Replay(log, base)
    count = sum(1 for _ in replay.states())
    if count < 10:
        raise Broken(f"the log has {count} flushes")
    chosen = {round(number * (count - 1) / (STATES - 1)) for number in range(STATES)}
    total = max(int(entry.text.rpartition("-")[2]) for entry in replay.entries if entry.text.startswith("ack"))
    lines = []
    with lab.disk(1).open("wb") as out:
        for number, (marks, content) in enumerate(Replay(log, base).states()):
            if number in chosen:
                floor, runs = promised(marks, mode)
                lines.append(f"{floor},{total},{runs}\n")
                out.write(content)
    lab.extra("lab/states", "".join(lines).encode())
    seen: dict[str, int] = {}
    lab.listen(lab.boot(f"lab_part=look lab_mode={mode}"), seen=seen)
    lab.figures.append(f"dm-log-writes, {name}: {len(replay.entries)} entries, {count} flushes, {len(lines)} states looked at, {total} writes")


CASE = Case(
    summary="dm-error, dm-flakey, dm-delay; a log of writes replayed to its flushes: nothing acknowledged is lost",
    script=SCRIPT,
    limit_s=3600,
    memory="1G",
    binaries=["kvmeter", "sim"],
    packages=["e2fsprogs", "dmsetup", "util-linux"],
    programs=["sbin/mkfs.ext4", "sbin/dmsetup", "sbin/blockdev"],
    modules=["ext4", "crc32c_generic", "dm_mod", "dm_flakey", "dm_delay", "dm_log_writes"],
    disks=[48, 512],
    play=play,
)
