//! What is malformed: where it is, and how much of it is left out.

use workload::trace::{TraceFormat, TraceOptions, TraceRecords};

use super::binary::object;
use super::{TraceFile, failing, shown};

fn named(format: TraceFormat) -> TraceOptions {
    TraceOptions { format: Some(format), ..TraceOptions::default() }
}

#[test]
fn malformed_lines_name_the_file_the_line_and_what_is_wrong() {
    use TraceFormat::{CacheLib, Memtier, RedisMonitor, RocksDbText};
    const ITEMS: &str =
        "dumpflags, time, exptime, nbytes, nsuffix, it_flags, clsid, nkey, key, data\n";
    for (format, text, says) in [
        (
            CacheLib,
            "key,op,size\nk,GET,1\nk,GTE,1\n",
            "T:3: no operation is called `GTE`; did you mean `GET`?; the line is `k,GTE,1`",
        ),
        (
            CacheLib,
            "key,op,size\nk,GET\n",
            "T:2: it has 2 fields instead of 3; the line is `k,GET`",
        ),
        (
            CacheLib,
            "key,op,size\nk,b,GET,7\n",
            "T:2: no operation is called `b`; known: GET, GET_LEASE, SET, SET_LEASE, DELETE; the line is `k,b,GET,7`",
        ),
        (
            CacheLib,
            "key,op,size\na k,GET,7\n",
            "T:2: the key holds the byte 0x20, which no text protocol takes in a key; the line is `a k,GET,7`",
        ),
        (
            CacheLib,
            "key,op,size,op_count\nk,GET,7,99999999999\n",
            "T:2: the operation count is 99999999999, above the limit of a replay, 1048576; the line is `k,GET,7,99999999999`",
        ),
        (
            CacheLib,
            "op_time,key,op,size\n7,k,GET,7\n5,k,GET,7\n",
            "T:3: the time goes back, from 7 to 5; sort the trace by its timestamps; the line is `5,k,GET,7`",
        ),
        (
            RedisMonitor,
            "1.000001 [0 a] \"get\"\n",
            "T:1: the command lacks arguments; the line is `1.000001 [0 a] \\\"get\\\"`",
        ),
        (
            RedisMonitor,
            "1.000001 [0 a] \"get\" \"k\n",
            "T:1: it is not `SECONDS.MICROSECONDS [DATABASE ADDRESS] \"COMMAND\" \"ARGUMENT\" ...`; the line is `1.000001 [0 a] \\\"get\\\" \\\"k`",
        ),
        (
            RedisMonitor,
            "1.5 [0 a] \"get\" \"k\"\n",
            "T:1: the time is not a whole number: `1.5`; the line is `1.5 [0 a] \\\"get\\\" \\\"k\\\"`",
        ),
        (
            RocksDbText,
            "0x6 0 0 0 1\n",
            "T:1: the key is not in hexadecimal digits behind `0x`: `0x6`; the line is `0x6 0 0 0 1`",
        ),
        (
            RocksDbText,
            "0x61 9 0 0 1\n",
            "T:1: no operation has the number 9; the line is `0x61 9 0 0 1`",
        ),
        (
            RocksDbText,
            "0x61 0 0 0\n",
            "T:1: it has 4 fields instead of 5; the line is `0x61 0 0 0`",
        ),
        (
            Memtier,
            &format!("{ITEMS}0, 0, 0, 3, 0, 0, 1, 9, k, v\n"),
            "T:2: the key or the data is not of the length that the line announces; the line is `0, 0, 0, 3, 0, 0, 1, 9, k, v`",
        ),
        (
            Memtier,
            &format!("{ITEMS}0, 0, 0, 9999999999, 0, 0, 1, 1, k, v\n"),
            "T:2: the nbytes is 9999999997, above the limit of a replay, 1073741824; the line is `0, 0, 0, 9999999999, 0, 0, 1, 1, k, v`",
        ),
        (
            Memtier,
            "1, 2\n",
            "T:1: it does not begin with `dumpflags, time, exptime`; the line is `1, 2\\n`",
        ),
    ] {
        assert_eq!(failing(&named(format), text).1, says);
    }
}

#[test]
fn malformed_records_name_the_byte() {
    let records = |last: Vec<u8>| [object(5, 9, 100, 2), object(6, 8, 1, -1), last].concat();
    for (last, says) in [
        (object(7, 9, 1, -1)[..23].to_vec(), "the file ends within it: 23 of 24 B"),
        (object(4, 9, 1, -1), "the time goes back, from 6 to 4; sort the trace by its timestamps"),
        (
            object(7, 9, u32::MAX, -1),
            "the size is 4294967295, above the limit of a replay, 1073741824",
        ),
    ] {
        let (lines, error) = failing(&named(TraceFormat::OracleGeneral), records(last));
        assert_eq!(error, format!("T: the record at byte 48: {says}"));
        assert_eq!(lines.len(), 2, "what is before it is read");
    }
}

/// So many malformed lines may be left out, and one more is an error.
#[test]
fn malformed_records_are_counted_where_they_may_be_left_out() {
    let mut text = String::from("5,a,1,0,1,get,0\nnonsense\n4,b,1,0,1,get,0\n");
    text += &format!("{}\n5,a,1,0,1,get,0\n5,last", "x".repeat(1 << 20));
    for (skip_bad, expected) in [(0, 1), (1, 1), (2, 1), (3, 2)] {
        let (lines, error) = failing(&TraceOptions { skip_bad, ..TraceOptions::default() }, &text);
        assert_eq!(lines.len(), expected, "{error}");
        assert!(error.starts_with(&format!("T:{}: ", [2, 3, 4, 6][skip_bad as usize])), "{error}");
    }
    let file = TraceFile::of(&text);
    let options = TraceOptions { skip_bad: 4, ..TraceOptions::default() };
    let mut records = TraceRecords::open(file.path(), &options).unwrap();
    let (lines, error) = shown(&mut records);
    assert!(error.is_none(), "{error:?}");
    assert_eq!((lines.len(), records.counts().skipped()), (2, 4));
}

/// A record that was cut short ends the file, whatever may be left out.
#[test]
fn what_cannot_be_left_out_is_an_error() {
    let bytes = [object(5, 9, 100, 2), object(6, 8, u32::MAX, -1), vec![7; 10]].concat();
    let options = TraceOptions { skip_bad: 100, ..named(TraceFormat::OracleGeneral) };
    let (lines, error) = failing(&options, bytes);
    assert_eq!(error, "T: the record at byte 48: the file ends within it: 10 of 24 B");
    assert_eq!(lines.len(), 1);
}
