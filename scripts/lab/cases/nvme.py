"""QEMU's NVMe: a controller with several namespaces, one that fails, two that are throttled."""

from case import Case


def play(lab) -> None:
    for name, size in (("ns1", 64), ("ns2", 32), ("ns3", 32), ("bad", 64), ("slow1", 64), ("slow2", 64)):
        with (lab.place / name).open("wb") as file:
            file.truncate(size << 20)
    lab.listen(lab.boot())


def file_node(name: str) -> list[str]:
    return ["-blockdev", f"driver=file,filename={{dir}}/{name},node-name={name}-file,discard=unmap"]


def namespace(name: str, nsid: int, bus: str, node: str = "") -> list[str]:
    return ["-device", f"nvme-ns,drive={node or name + '-file'},nsid={nsid},bus={bus},uuid=00000000-0000-4000-8000-0000000000{nsid:02}"]


def throttled(name: str) -> list[str]:
    return [
        *file_node(name),
        "-object", f"throttle-group,id=limit-{name},x-iops-total=240",
        "-blockdev", f"driver=throttle,throttle-group=limit-{name},file={name}-file,node-name={name}",
        "-device", f"nvme,serial=LAB{name.upper()},drive={name}",
    ]


CASE = Case(
    summary="precondition by discard and format, refusals, a device that fails or goes; work units count 2.0",
    limit_s=1800,
    memory="1G",
    packages=["e2fsprogs"],
    programs=["sbin/mkfs.ext4"],
    modules=["nvme", "ext4", "crc32c_generic"],
    files={"lab/units.toml": "scripts/lab/guest/units.toml"},
    machine=[
        *file_node("ns1"), *file_node("ns2"), *file_node("ns3"),
        "-device", "nvme,serial=LABMANY,id=many",
        *namespace("ns1", 1, "many"), *namespace("ns2", 2, "many"), *namespace("ns3", 3, "many"),
        *file_node("bad"),
        # The 30 MiB mark cannot be written.
        "-blockdev", "driver=blkdebug,node-name=bad,image=bad-file,inject-error.0.event=none,"
        "inject-error.0.iotype=write,inject-error.0.sector=61440,inject-error.0.errno=5,inject-error.0.immediately=on",
        "-device", "nvme,serial=LABBAD,drive=bad",
        *throttled("slow1"), *throttled("slow2"),
    ],
    play=play,
    script=r"""
# The kernel numbers controllers in the order in which they answer.
by_serial() { for at in /sys/class/nvme/*; do grep -q "$1" $at/serial && basename $at; done; }
many=/dev/$(by_serial LABMANY); bad=/dev/$(by_serial LABBAD)n1
slow1=/dev/$(by_serial LABSLOW1)n1; slow2=/dev/$(by_serial LABSLOW2)n1
one=${many}n1; two=${many}n2; three=${many}n3
sum() { md5sum <"$1"; }
bytes_not_zero() { dd if="$1" bs=1M skip="$2" count="$3" 2>/dev/null | tr -d '\0' | wc -c; }
name_of() { cat /sys/block/$(basename $1)/wwid; }
# What --dry-run says may be lost, as flags.
lost() { kvmeter precondition "$@" --dry-run 2>&1 | grep -o -- '--overwrite [a-z0-9:-]*' | sort -u | tr '\n' ' '; }

check "three namespaces" test -b $three
expect "sanitize is refused, which the controller does not declare" 2 'sanitize' kvmeter precondition $one --sanitize --confirm "$(name_of $one)"
for disk in $one $two $three; do dd if=/dev/urandom of=$disk bs=1M count=32 2>/dev/null; done
sync; echo 3 >/proc/sys/vm/drop_caches
[ -z "${lab_broken:-}" ] || one=$two
before2=$(sum ${many}n2); before3=$(sum $three)
kvmeter precondition $one --dry-run --format
expect "unknown content must be named" 2 'overwrite' kvmeter precondition $one --format --confirm "$(name_of $one)"
expect "a serial number that three namespaces have confirms nothing" 2 'LABMANY|confirm' kvmeter precondition $one --format --confirm LABMANY $(lost $one)
expect "another device's name confirms nothing" 2 'confirm' kvmeter precondition $one --format --confirm "$(name_of $two)" $(lost $one)
check "format and half of the addresses" kvmeter precondition $one --format --times 1 --lbas 50% --confirm "$(name_of $one)" $(lost $one)
echo 3 >/proc/sys/vm/drop_caches
figure "after format and 50 %: $(bytes_not_zero $one 0 32) of 33554432 bytes of the first half are not zero, $(bytes_not_zero $one 32 32) of the second"
check "the first half is written" test "$(bytes_not_zero $one 0 32)" -gt 33000000
check "the format erased the second half" test "$(bytes_not_zero $one 32 32)" = 0
check "the other namespaces are as before" test "$(sum ${many}n2) $(sum $three)" = "$before2 $before3"
check "discard and a quarter" kvmeter precondition $two --times 1 --lbas 25% --confirm "$(name_of $two)" $(lost $two)
echo 3 >/proc/sys/vm/drop_caches
figure "after discard and 25 %: $(bytes_not_zero $two 0 8) of 8388608 bytes of the first quarter, $(bytes_not_zero $two 8 24) of the rest are not zero"
check "the discard emptied the rest" test "$(bytes_not_zero $two 8 24)" = 0
mkfs.ext4 -q -F $three && mount $three /disk
expect "a mounted namespace is refused" 2 'mounted' kvmeter precondition $three --confirm "$(name_of $three)" --overwrite all
umount /disk

expect "a sector that cannot be written is named" 1 '61440|sector' kvmeter precondition $bad --times 1 --no-purge --confirm LABBAD
grep -o 'sector [0-9]*' /tmp/out | head -n 1 >/tmp/sector; dmesg | grep -o 'dev nvme.*sector [0-9]*' >/tmp/kernel
figure "the failed write: $(cat /tmp/sector), injected at 61440; the kernel says $(head -n 1 /tmp/kernel)"
check "it is the sector that the kernel names" grep -q "$(cat /tmp/sector)\$" /tmp/kernel

# Cut off half way, and resumed.
expect "a limit ends it early" 1 'resume' kvmeter precondition $two --times 1 --rate 4MB --limit 2s --no-purge --confirm "$(name_of $two)" $(lost $two)
expect "it resumes" 0 '' kvmeter precondition $two --times 1 --rate 4MB --no-purge --resume --confirm "$(name_of $two)"
echo 3 >/proc/sys/vm/drop_caches
check "all of it is written then" test "$(bytes_not_zero $two 0 32)" -gt 33000000

# A device that goes while it is written, and is there again later.
name=$(basename $slow2); name=${name%n1}
kvmeter precondition $slow2 --times 40 --no-purge --rate 4MB --confirm LABSLOW2 >/tmp/gone 2>&1 &
writer=$!
sleep 4
echo 1 >/sys/class/nvme/$name/device/remove
wait $writer; code=$?
cp /tmp/gone /tmp/out
figure "a device that goes under load: exit code $code: $(grep error /tmp/gone | tr '\n' ' ' | cut -c 1-240)"
report "a device that goes ends it with 1" "$([ $code = 1 ] || echo exit code $code)"
check "and is called removed, not full" grep -q 'was removed' /tmp/gone
echo 1 >/sys/bus/pci/rescan
for _ in $(seq 50); do slow2=/dev/$(by_serial LABSLOW2)n1; [ -b "$slow2" ] && break; sleep 0.2; done
check "it is there again" test -b $slow2
expect "and is written on" 1 'resume' kvmeter precondition $slow2 --times 40 --no-purge --rate 4MB --limit 2s --resume --confirm LABSLOW2

# Work units of two throttled namespaces.
kvmeter run /lab/units.toml --out /tmp/units.sqlite --device $slow1 --device $slow2 --confirm LABSLOW1 --confirm LABSLOW2 $(lost $slow2 --times 1) >/tmp/out 2>&1
code=$?; cat /tmp/out
report "run of work units" "$([ $code = 0 ] || echo exit code $code)"
kvmeter mbwu /tmp/units.sqlite --json >/tmp/units.json; cat /tmp/units.json
units=$(jq -r .units /tmp/units.json)
figure "work units of two equal namespaces: $units"
check "they are 2.0 within 5 %" holds "$units > 1.9 and $units < 2.1"
""",
)
