"""File systems that are full, read-only, or become read-only under load."""

from case import Case

SCRIPT = r"""
eval "$MKFS" /dev/vda || fail "mkfs"
mount -t $FS $OPTIONS /dev/vda /disk || fail "mount"
# round FLOOR STARTED WRITES: the writer of the power-loss test, with its ledger in memory.
round() {
    SPILL_POWER_STORE=/disk/store SPILL_POWER_LEDGER=/tmp/ledger SPILL_POWER_MODE=${mode:-2} SPILL_POWER_FLOOR=$1 \
        SPILL_POWER_STARTED=$2 SPILL_POWER_WRITES=$3 sim --exact power_loss::round --ignored --nocapture --test-threads=1
}
last() { sed -n "s/^$1 //p" /tmp/ledger | tail -n 1; }
bench() { kvmeter bench null -w ycsb-c -n 100 -t 100ms --warm-up 0s -j 1 --probes off -q -o /disk/results.sqlite; }
runs() { kvmeter export /disk/results.sqlite --format json | jq length; }
check "a store on $FS" round 0 0 100
check "a results file on $FS" bench
done=$(last acknowledged)

# Full: a typed error, and everything is there when there is space again.
dd if=/dev/zero of=/disk/filler bs=64k 2>/dev/null; sync
: >/tmp/ledger
round $done $done 200000 >/tmp/out 2>&1
report "a full file system is no panic" "$([ $? = 0 ] || echo exit code $?)"
figure "full: after $(( $(last acknowledged) - done )) writes: $(last error:)"
check "it is named as full" grep -Eqi 'error: .*(full|space)' /tmp/ledger
now=$(last acknowledged); now=${now:-$done}
before=$(runs)
bench >/tmp/out 2>&1; code=$?
figure "a results file on it: exit code $code: $(head -c 200 /tmp/out | tr '\n' ' ')"
report "a results file on it fails in words" "$([ $code = 0 ] || grep -Eqi 'space|full' /tmp/out || echo exit code $code)"
rm -f /disk/filler; sync
: >/tmp/ledger
[ -z "${lab_broken:-}" ] || now=$((now + 5))
check "with space again nothing is lost" round $now $((now + 1)) 50
check "the results file is whole" test "$(runs)" -ge "$before"
check "and takes another run" bench
done=$(last acknowledged)

# Remounted read-only under load, by the kernel's own emergency.
: >/tmp/ledger
round $done $done 200000 >/tmp/out 2>&1 &
writer=$!
sleep 4
echo u >/proc/sysrq-trigger
for _ in $(seq 100); do kill -0 $writer 2>/dev/null || break; sleep 0.1; done
wait $writer; report "read-only under load is no panic" "$([ $? = 0 ] || echo exit code $?)"
figure "read-only under load, after $(( $(last acknowledged) - done )) writes: $(last error:)"
check "the error is typed" grep -q '^error: ' /tmp/ledger
now=$(last acknowledged)
expect "a load on a read-only file system is refused in words" '[12]' 'ead-only' kvmeter bench spill:/disk/new -w ycsb-a -n 100 -t 100ms -j 1 --probes off -o /tmp/r.sqlite
before=$(runs)
check "results are read from it" test "${before:-0}" -ge 1
umount /disk; mount -t $FS $OPTIONS /dev/vda /disk || fail "mount again"
: >/tmp/ledger
check "mounted again nothing is lost" round $now $((now + 1)) 20
check "no run is lost" test "$(runs)" -ge "${before:-0}"
umount /disk
"""


def on(file_system: str, mkfs: str, modules: list[str], options: str = "") -> dict:
    head = f"FS={file_system}\nMKFS='{mkfs}'\nOPTIONS='{options}'\n"
    return {"script": head + SCRIPT, "modules": ["crc32c_generic", *modules]}


CASE = Case(
    summary="a file system that is full, read-only, or becomes so under load: typed errors, nothing lost",
    script="",
    limit_s=600,
    memory="768M",
    binaries=["kvmeter", "sim"],
    packages=["e2fsprogs", "xfsprogs", "btrfs-progs"],
    programs=["sbin/mkfs.ext4", "sbin/mkfs.xfs", "sbin/mkfs.btrfs"],
    kernel_words="sysrq_always_enabled",
    disks=[640],
    variants={
        "ext4-ordered": on("ext4", "mkfs.ext4 -q -F", ["ext4"], "-o data=ordered"),
        "ext4-writeback": on("ext4", "mkfs.ext4 -q -F", ["ext4"], "-o data=writeback"),
        "xfs": on("xfs", "mkfs.xfs -q -f", ["xfs"]),
        "btrfs": on("btrfs", "mkfs.btrfs -q -f", ["btrfs"]),
    },
)
