//! The log of memcached's `watch`.

use workload::trace::{TraceFormat, TraceOptions, TraceRecords, TraceTiming};

use super::{TraceFile, failing, shown};

/// What memcached 1.6.18 printed, and a line of a later one about a deletion.
const LOG: &str = "OK
ts=1795956126.903808 gid=2 type=item_get key=foo status=not_found clsid=0 cfd=26 size=0
ts=1795956126.903813 gid=3 type=item_store key=foo status=stored cmd=set ttl=0 clsid=1 cfd=26 size=3
ts=1795956126.953473 gid=4 type=item_get key=foo status=found clsid=1 cfd=26 size=3
ts=1795956127.3748 gid=5 type=item_get key=nope status=not_found clsid=0 cfd=26 size=0
ts=1795956127.54290 gid=6 type=item_get key=foo status=found clsid=1 cfd=26 size=3
ts=1795956127.54296 gid=7 type=item_get key=bar status=not_found clsid=0 cfd=26 size=0
skipped=40
ts=1795956127.104560 gid=11 type=item_store key=k%2520 status=stored cmd=add ttl=100 clsid=1 cfd=26 size=5
ts=1795956127.104580 gid=12 type=item_get key=c status=found clsid=0 cfd=26 size=1
ts=1795956127.104555 gid=8 type=item_get key=k%2520 status=not_found clsid=0 cfd=27 size=0
ts=1795956127.104590 gid=13 type=item_store key=c status=stored cmd=set ttl=0 clsid=0 cfd=27 size=2
ts=1795956127.104595 gid=14 type=item_store key=c status=stored cmd=append ttl=0 clsid=0 cfd=26 size=3
ts=1795956127.204560 gid=15 type=conn_new rip=127.0.0.1 rport=5 transport=tcp cfd=30
ts=1795956127.304560 gid=16 type=deleted key=foo cmd=delete clsid=1 cfd=26 size=3
ts=1795956127.757943 gid=26 type=item_get key=%C3%A9 status=not_found clsid=0 cfd=26 size=0
";

#[test]
fn a_log_of_memcached_is_its_requests() {
    let file = TraceFile::of(LOG);
    let options = TraceOptions { format: Some(TraceFormat::MemcachedWatch), ..Default::default() };
    let mut records = TraceRecords::open(file.path(), &options).unwrap();
    assert_eq!(records.timing(), TraceTiming::Exact);
    let (lines, error) = shown(&mut records);
    assert!(error.is_none(), "{error:?}");
    let expected = [
        // The lookup of a write is no request, unless it is of another connection; lines of two
        // threads are sorted by their number.
        "6903813000 set foo v=3 never",
        "6953473000 get foo v=3",
        "7003748000 get nope",
        "7054290000 get foo v=3",
        "7054296000 get bar",
        "7104555000 get k%20",
        "7104560000 add k%20 v=5 ttl=100",
        "7104590000 set c v=2 never",
        "7104595000 append c v=3 never",
        "7304560000 delete foo",
        r"7757943000 get \xc3\xa9",
    ];
    assert_eq!(lines, expected.map(|line| format!("179595612{line}")));
    assert_eq!((records.counts().ignored(), records.counts().lost()), (2, 40));
    // Without the answer to the command it is recognised by content.
    let file = TraceFile::of(LOG.strip_prefix("OK\n").unwrap());
    let records = TraceRecords::open(file.path(), &TraceOptions::default()).unwrap();
    assert_eq!(records.format(), TraceFormat::MemcachedWatch);
}

#[test]
fn malformed_lines_are_named() {
    for (line, says) in [
        ("ts=1.x gid=2 type=item_get key=a", "the ts is not a whole number"),
        ("ts=1.5 gid=1 type=item_get", "it is not `ts=SECONDS"),
        ("ts=1.5 gid=1 type=item_get key=a%2", "it is not `ts=SECONDS"),
        ("ts=1.5 gid=1 type=item_store key=a cmd=put", "no operation is called `put`"),
        (
            "ts=1.5 gid=1 type=item_get key=a status=found size=99999999999",
            "the size is 99999999999",
        ),
    ] {
        let text = format!("ts=1.5 gid=0 type=item_get key=a\n{line}\n");
        let format = Some(TraceFormat::MemcachedWatch);
        let (_, error) = failing(&TraceOptions { format, ..Default::default() }, &text);
        assert!(error.contains(says), "{line}: {error}");
    }
}
