"""The power goes: QEMU is killed, or the guest resets itself, and its page cache is lost."""

import os
import random
import time

from case import Case
from ledger import Ledger

SCRIPT = r"""
[ -z "${lab_new:-}" ] || eval "$MKFS" /dev/vda || fail "mkfs"
mount -t $FS $OPTIONS /dev/vda /disk || fail "mount: $FS of /dev/vda"
export KVMETER_STATE_DIR=/disk/state
ledger=/dev/vport0p2
for at in /sys/class/virtio-ports/*; do [ "$(cat $at/name 2>/dev/null)" = ledger ] && ledger=/dev/$(basename $at); done
if [ -n "${lab_precondition:-}" ]; then
    if [ "$lab_precondition" = begin ]; then
        say "working"
        kvmeter precondition /dev/vdb --times 1 --rate 4MB --confirm disk1 --state /disk/precondition.json
    else
        expect "precondition resumes after the power went" 0 '' kvmeter precondition /dev/vdb --times 1 --rate 4MB --confirm disk1 --state /disk/precondition.json --resume
        check "all of it is written" sh -c '[ $(tr -d "\0" </dev/vdb | wc -c) -gt 50000000 ]'
    fi
    exit 0
fi
if [ -z "${lab_new:-}" ]; then
    # What the boot before this one left turned.
    [ "$(cat /proc/sys/kernel/randomize_va_space)" = 2 ] || fail "aslr is still $(cat /proc/sys/kernel/randomize_va_space)"
    if [ "${lab_knobs:-0}" = 1 ]; then
        kvmeter knob restore >/tmp/out 2>&1
        check "the journal of the boot before is set aside" sh -c 'ls /disk/state | grep -q stale-'
        rm -f /disk/state/stale-*
    fi
    count=$(kvmeter export /disk/results.sqlite --format json 2>/tmp/out | jq length)
    [ "${lab_runs:-0}" = 0 ] || check "no finished run is lost (${lab_runs:-0} known, ${count:-none} there)" test "${count:-0}" -ge "${lab_runs:-0}"
    say "runs ${count:-0}"
fi
kvmeter knob set -q aslr=off && say "knobs 1"
(while kvmeter bench null -w ycsb-c -n 100 -t 100ms --warm-up 0s -j 1 --probes off -q -o /disk/results.sqlite >/tmp/bench 2>&1; do
    say "finished"
done) &
if [ "${lab_reset:-0}" != 0 ]; then (sleep $lab_reset; echo b >/proc/sysrq-trigger) & fi
say "working"
export SPILL_POWER_STORE=/disk/store SPILL_POWER_LEDGER=$ledger SPILL_POWER_MODE=$lab_mode
export SPILL_POWER_FLOOR=${lab_floor:-0} SPILL_POWER_STARTED=${lab_started:-0}
# Broken: writes that are not synced are reported as if they were.
[ -z "${lab_broken:-}" ] || SPILL_POWER_MODE=0
sim --exact power_loss::round --ignored --nocapture --test-threads=1
fail "the writer ended with $?"
"""

MODES = {2: "Sync", 0: "None"}


def play(lab) -> None:
    repeats = int(os.environ.get("KVMETER_LAB_REPEATS", "6"))
    # Seeded, and named, so that the moments can be repeated.
    seed = int(os.environ.get("KVMETER_LAB_SEED", time.time_ns() % 1_000_000))
    chance = random.Random(seed)
    for mode in MODES:
        lose_power(lab, mode, repeats, chance)
    lab.figures.append(f"seed {seed}")
    precondition(lab)


def lose_power(lab, mode: int, repeats: int, chance) -> None:
    """Boots, checks and cuts the power again and again; one store in each mode."""
    ledger, runs, knobs, kills, resets, writes = Ledger(), 0, 0, 0, 0, 0
    lab.blank(0, lab.case.disks[0])
    for number in range(repeats + 1):
        path = lab.place / "ledger"
        path.unlink(missing_ok=True)
        last, reset = number == repeats, number % 3 == 2
        moment = chance.uniform(0.5, 15)
        words = f"lab_mode={mode} lab_runs={runs} lab_knobs={knobs} {ledger.words(mode)}"
        words += " lab_new=1" if number == 0 else ""
        words += f" lab_reset={moment:.2f}" if reset and not last else ""
        machine = ("-chardev", f"file,id=ledger,path={path}", "-device", "virtserialport,chardev=ledger,name=ledger")
        guest = lab.boot(words, machine)
        seen: dict[str, int] = {}
        lab.listen(guest, until="working", seen=seen)
        # The last boot only checks; the writer then says what it found.
        until = time.monotonic() + (60 if reset or last else moment)
        lab.listen_until(guest, until, seen, lambda: last and "found" in path.read_text() if path.exists() else False)
        guest.kill()
        resets, kills = resets + (reset and not last), kills + (not reset and not last)
        runs = max(runs, seen.get("runs", 0)) + seen.get("finished", 0)
        knobs = seen.get("knobs", 0)
        ledger.read(path.read_text() if path.exists() else "")
        writes = max(writes, ledger.acknowledged)
    lab.check(not ledger.losses, f"Spill in {MODES[mode]}: " + ("; ".join(ledger.losses) or f"{repeats} power losses"))
    lab.check(not ledger.errors, f"Spill in {MODES[mode]} opens and writes" + "".join(f": {text}" for text in ledger.errors[:3]))
    lab.check(writes > repeats, f"Spill in {MODES[mode]}: {writes} writes were acknowledged")
    lab.figures.append(
        f"{MODES[mode]}: {kills} kills of QEMU and {resets} resets, {writes} writes acknowledged, "
        f"{ledger.gone} of them gone, {runs} finished runs known, none of them lost"
    )


def precondition(lab) -> None:
    guest = lab.boot("lab_precondition=begin")
    lab.listen(guest, until="working")
    lab.listen_until(guest, time.monotonic() + 8, {}, lambda: False)
    guest.kill()
    lab.listen(lab.boot("lab_precondition=resume"))


def on(file_system: str, mkfs: str, modules: list[str], options: str = "") -> dict:
    head = f"FS={file_system}\nMKFS='{mkfs}'\nOPTIONS='{options}'\n"
    return {"script": head + SCRIPT, "modules": ["crc32c_generic", *modules]}


CASE = Case(
    summary="the power goes: acknowledged writes, finished runs and the knobs' journal survive",
    script="",
    limit_s=6 * 3600,
    memory="640M",
    binaries=["kvmeter", "sim"],
    packages=["e2fsprogs", "xfsprogs", "btrfs-progs"],
    programs=["sbin/mkfs.ext4", "sbin/mkfs.xfs", "sbin/mkfs.btrfs"],
    disks=[320, 64],
    kernel_words="sysrq_always_enabled",
    play=play,
    variants={
        "ext4": on("ext4", "mkfs.ext4 -q -F", ["ext4"]),
        "xfs": on("xfs", "mkfs.xfs -q -f", ["xfs"]),
        "btrfs": on("btrfs", "mkfs.btrfs -q -f", ["btrfs"]),
    },
)
