//! Formats of bytes.

use workload::trace::{TraceFormat, TraceOptions, TraceRecords, TraceTiming};

use super::{TraceFile, failing, gzip, hex, requests, sample, shown, zst};

/// A record of oracleGeneral.
pub(super) fn object(second: u32, object: u64, size: u32, next: i64) -> Vec<u8> {
    let mut bytes = second.to_le_bytes().to_vec();
    bytes.extend(object.to_le_bytes());
    bytes.extend(size.to_le_bytes());
    bytes.extend(next.to_le_bytes());
    bytes
}

#[test]
fn oracle_general_has_records_of_24_bytes() {
    let bytes = [
        object(5, 9, 100, 2),
        object(5, u64::MAX, 0, -1),
        object(6, 9, 100, -1),
        object(6, 1, 1 << 30, i64::MAX),
    ]
    .concat();
    let expected = [
        "5000000000 get #9 v=100",
        "5000000000 get #18446744073709551615 v=0",
        "6000000000 get #9 v=100",
        "6000000000 get #1 v=1073741824",
    ];
    for bytes in [
        bytes.clone(),
        gzip(&bytes),
        [zst(&bytes[..30]), zst(&bytes[30..])].concat(),
        [gzip(&bytes[..30]), gzip(&bytes[30..])].concat(),
    ] {
        assert_eq!(requests(TraceFormat::OracleGeneral, bytes), expected);
    }
}

#[test]
fn bytes_that_are_no_records_have_no_format() {
    for bytes in [
        // Time goes back, the next request is an earlier one, and half a record.
        [object(5, 9, 100, 2), object(4, 9, 100, -1)].concat(),
        [object(5, 9, 100, 2), object(5, 9, 100, 1)].concat(),
        object(5, 9, 100, 2)[..20].to_vec(),
        [b"\x7fELF".to_vec(), vec![0; 60]].concat(),
    ] {
        let (_, says) = failing(&TraceOptions::default(), &bytes);
        assert!(says.contains("begins like no format that is known (twitter, cachelib,"), "{says}");
        assert!(says.ends_with("--trace-format (`trace_format` in a study)"), "{says}");
    }
}

/// What `TraceWriter` of RocksDB 7.8 wrote of: a put of 300 B, a delete, a batch (put, put into
/// another column family, single delete, delete of a range, data for the log), a get, a multi-get,
/// a seek, a seek backwards, and a seek with an upper bound.
pub(super) fn rocksdb() -> Vec<u8> {
    let value = "76".repeat(300);
    hex(&format!(
        "2faed8ce65610600015a000000666565646361666564656164626565660954726163652056657273696f6e3a20\
         302e3209526f636b7344422056657273696f6e3a20372e3809466f726d61743a2054696d657374616d70204f70\
         54797065205061796c6f61640a42aed8ce65610600034b0100000200000000000000c102000000000000000001\
         0000000105616c706861ac02{value}f1aed8ce65610600031b00000002000000000000001200000000000000\
         0001000000000462657461fdaed8ce65610600033a000000020000000000000031000000000000000004000000\
         01036f6e65013105010774776f2074776f0232320704676f6e650f016101620304626c6f620aafd8ce65610600\
         04120000000c000000000000000000000005616c70686132afd8ce656106000d21000000000700000000000002\
         0000000800000000000000000b036f6e65066e6f6e652c7854afd8ce65610600050f0000003000000000000000\
         000000000262656cafd8ce65610600060f000000300000000000000000000000027a7a85afd8ce656106000512\
         000000b000000000000000010000000174037a7a7a88afd8ce656106000200000000"
    ))
}

const ROCKSDB: [&str; 11] = [
    "1795939750161986000 set alpha v=300",
    "1795939750162161000 delete beta",
    "1795939750162173000 set one v=1",
    "1795939750162173000 set two two v=2",
    "1795939750162173000 delete gone",
    "1795939750162186000 get alpha",
    "1795939750162226000 get one",
    "1795939750162226000 get none,x",
    "1795939750162260000 seek be",
    "1795939750162284000 seek zz",
    "1795939750162309000 seek t",
];

#[test]
fn rocksdb_query_traces_are_read_as_the_store_wrote_them() {
    let file = TraceFile::of(zst(&rocksdb()));
    let mut records = TraceRecords::open(file.path(), &TraceOptions::default()).unwrap();
    assert_eq!((records.format(), records.timing()), (TraceFormat::RocksDb, TraceTiming::Exact));
    let (lines, error) = shown(&mut records);
    assert!(error.is_none(), "{error:?}");
    assert_eq!(lines, ROCKSDB);
    assert_eq!(records.counts().ignored(), 1, "the range");
}

/// Version 0.1 has no bits that say which fields follow.
#[test]
fn older_rocksdb_query_traces_are_read() {
    let record = |micros: u64, kind: u8, payload: &[u8]| {
        let mut bytes = micros.to_le_bytes().to_vec();
        bytes.push(kind);
        bytes.extend((payload.len() as u32).to_le_bytes());
        bytes.extend(payload);
        bytes
    };
    let bytes = [
        record(1, 1, b"feedcafedeadbeef\tTrace Version: 0.1\tRocksDB Version: 6.6\tFormat: x\n"),
        record(2, 3, b"\0\0\0\0\0\0\0\0\x01\0\0\0\x01\x01k\x02vv"),
        record(3, 4, b"\0\0\0\0\x02ke"),
        record(3, 5, b"\x01\0\0\0\x02ke"),
    ]
    .concat();
    // Without the record that ends it: the store died.
    assert_eq!(
        requests(TraceFormat::RocksDb, bytes),
        ["2000 set k v=2", "3000 get ke", "3000 seek ke"]
    );
}

#[test]
fn a_rocksdb_trace_that_was_cut_names_the_byte() {
    let whole = rocksdb();
    for (bytes, place, says) in [
        (whole[..110].to_vec(), 103, "the file ends within it: 7 of 13 B"),
        (whole[..200].to_vec(), 103, "the file ends within it: 97 of 344 B"),
        (whole[..50].to_vec(), 0, "the file ends within it: 50 of 103 B"),
    ] {
        for bytes in [bytes.clone(), gzip(&bytes)] {
            let (_, error) = failing(&TraceOptions::default(), bytes);
            assert_eq!(error, format!("T: the record at byte {place}: {says}"));
        }
    }
    let changed = |at: usize, byte: u8| {
        let mut bytes = rocksdb();
        bytes[at] = byte;
        let (lines, says) = failing(&TraceOptions::default(), bytes);
        (lines.len(), says)
    };
    let cases = [
        (47, b'9', 0, "T: the record at byte 0: its version is `0.9`; known are 0.1 and 0.2"),
        (
            115,
            200,
            0,
            "T: the record at byte 103: the payload length is 3355443531, above the limit of a replay, 67108864",
        ),
        (111, 99, 0, "T: the record at byte 103: no operation has the number 99"),
        (116, 6, 0, "T: the record at byte 103: its fields are not those of its type: 0x6"),
        (138, 0x7e, 0, "T: the record at byte 103: its batch of writes has the unknown tag 0x7e"),
        (139, 200, 0, "T: the record at byte 103: its parts are longer than it is"),
    ];
    for (at, byte, lines, says) in cases {
        assert_eq!(changed(at, byte), (lines, says.to_owned()), "{at}");
    }
    // The second tag of a batch: none of its requests is issued.
    let (lines, says) = changed(528, 0x7e);
    assert_eq!(lines, 2, "{says}");
}

#[test]
fn the_real_sample_of_oracle_general_is_read() {
    let Some(file) = sample("cloudphysics-30k.oracleGeneral.zst") else { return };
    let mut records = TraceRecords::open(&file, &TraceOptions::default()).unwrap();
    let found = (records.format(), records.timing());
    assert_eq!(found, (TraceFormat::OracleGeneral, TraceTiming::Seconds));
    let (mut count, mut bytes, mut last) = (0, 0, 0);
    while let Some(record) = records.next().unwrap() {
        count += 1;
        bytes += u64::from(record.value_size.unwrap());
        last = record.at_ns;
    }
    assert_eq!((count, bytes, last), (30_000, 1_224_695_808, 5_635_731_000_000_000));
}
