"""Three NUMA nodes, the last with memory alone, as memory behind CXL is."""

from case import Case

CASE = Case(
    summary="placement on nodes is proven by the kernel's numa_maps; a node without CPUs",
    limit_s=400,
    memory="1152M",
    smp="2,sockets=2",
    machine=[
        "-object", "memory-backend-ram,id=m0,size=512M",
        "-object", "memory-backend-ram,id=m1,size=384M",
        "-object", "memory-backend-ram,id=m2,size=256M",
        "-numa", "node,nodeid=0,cpus=0,memdev=m0",
        "-numa", "node,nodeid=1,cpus=1,memdev=m1",
        "-numa", "node,nodeid=2,memdev=m2",
        "-numa", "dist,src=0,dst=1,val=20",
        "-numa", "dist,src=0,dst=2,val=30",
        "-numa", "dist,src=1,dst=2,val=30",
    ],
    script=r"""
# What a process has on a node, from the kernel, without the pages of programs, which are shared.
pages() { # NODE PID
    sed -n "/file=.lab\\|file=.lib/d; s/.* N$1=\([0-9]*\).*/\1/p" "/proc/$2/numa_maps" | awk '{ sum += $1 } END { print sum + 0 }'
}
expect "doctor lists three nodes" 0 'numa.nodes +3' kvmeter doctor
expect "doctor knows the node without CPUs" 0 'numa.node2 +CPUs none;' kvmeter doctor
for node in 0 1 2; do
    expect "memory=node$node is proven" 0 'memory.*proven' kvmeter knob set memory=node$node -- true
    kvmeter knob set memory=node$node -- sh -c 'cat /proc/self/numa_maps' >/tmp/maps 2>/tmp/err
    check "numa_maps has the policy of node$node" grep -Eq "(bind|prefer)[^ ]*:$node " /tmp/maps
    # A load's pages lie where the knob says.
    kvmeter bench spill:/tmp/s$node -w ycsb-c -n 20000 -t 6s --warm-up 0s -j 1 --probes off \
        --knob memory=node$node -o /tmp/r$node.sqlite >/tmp/out 2>&1 &
    load=$!
    sleep 5
    here=0; all=0
    for other in 0 1 2; do
        # Broken: the pages of the next node are counted.
        [ -z "${lab_broken:-}" ] && of=$other || of=$(((other + 1) % 3))
        count=$(pages $of $load)
        all=$((all + count)); [ $other = $node ] && here=$count
    done
    wait $load
    report "the load under memory=node$node ends well" "$([ $? = 0 ] || echo it failed)"
    figure "memory=node$node: $here of $all pages of the load lie there"
    check "nine tenths of the pages of the load lie on node$node" test $((here * 10)) -ge $((all * 9))
    check "STREAM on node$node" kvmeter micro stream --cpus 0 -j 1 --size 8MiB --rounds 2 --place node:$node --pages small
    check "latency on node$node" kvmeter micro latency --cpus 0 --size 4MiB -t 200ms --place node:$node --pages small
done
kvmeter knob set memory=interleave -- sh -c 'cat /proc/self/numa_maps' >/tmp/maps 2>/tmp/err
check "numa_maps has the policy of interleave" grep -q 'interleave:0-2' /tmp/maps
expect "cpus=node1 is proven" 0 'cpus.*proven' kvmeter knob set cpus=node1 -- true
check "cpus=node1 gives CPU 1" sh -c '[ "$(kvmeter knob set -q cpus=node1 -- sed -n "s/Cpus_allowed_list:\s*//p" /proc/self/status | tail -n 1)" = 1 ]'
expect "cpus=node2 is refused, it has none" 2 'node2|CPU' kvmeter knob set cpus=node2 -- true
expect "memory=node3 is refused" 2 'node2' kvmeter knob set memory=node3 -- true
expect "a hog on one node runs" 0 '' kvmeter micro hog --cpus 1 --size 16MiB -t 1s --place node:2 --pages small
""",
)
