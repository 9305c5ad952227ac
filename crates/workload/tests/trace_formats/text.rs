//! Formats of lines.

use workload::trace::{TraceFormat, TraceOptions, TraceRecords, TraceTiming};

use super::{gzip, requests, sample, shown, zst};

const TWITTER: &str = "7,nz:a,b c,6,304,5,set,60\n7,\u{e9},2,0,5,gets,0\n";

#[test]
fn twitter_keys_hold_commas_and_any_letters() {
    let file = TWITTER.replace(' ', "_");
    let expected =
        ["7000000000 set nz:a,b_c k=6 v=304 ttl=60", "7000000000 gets \\xc3\\xa9 k=2 v=0 never"];
    for bytes in [
        file.clone().into_bytes(),
        file.replace('\n', "\r\n").into_bytes(),
        format!("timestamp,key,key size,value size,client id,operation,TTL\n{file}").into_bytes(),
        [gzip(&file.as_bytes()[..9]), gzip(&file.as_bytes()[9..])].concat(),
        [zst(&file.as_bytes()[..9]), zst(&file.as_bytes()[9..])].concat(),
    ] {
        assert_eq!(requests(TraceFormat::Twitter, bytes), expected);
    }
}

#[test]
fn cachelib_columns_are_those_of_the_first_line() {
    let expected = ["0 get k1 k=30 v=87", "0 get k1 k=30 v=87", "0 set k2 k=16 v=5"];
    for file in [
        "key,op,size,op_count,key_size\nk1,GET,87,2,30\nk2,SET,5,1,16\n",
        // Without a first line they are the usual ones.
        "k1,GET,87,2,30\nk2,SET_LEASE,5,1,16\n",
        // As many words as Twitter's lines have.
        "usecase,key,key_size,op,op_count,size,cache_hits\r\nu,k1,30,GET,2,87,1\r\n9,k2,16,SET,1,5,\r\n",
    ] {
        assert_eq!(requests(TraceFormat::CacheLib, file), expected, "{file}");
    }
    let timed = "op_time,key,key_size,op,op_count,size,cache_hits,ttl,usecase,sub_usecase\n\
                 17,k1,30,GET_LEASE,1,0,1,0,8,9\n18,k2,,DELETE,1,0,1,,8,9\n";
    assert_eq!(
        requests(TraceFormat::CacheLib, timed),
        ["17000000000 get k1 k=30 v=0 never", "18000000000 delete k2 v=0"]
    );
}

/// Lines of a server 7.0: a script, keys with blanks and escapes, commands that are no requests.
#[test]
fn monitor_logs_name_the_requests_of_commands() {
    let log = r#"OK
1795939752.246245 [0 127.0.0.1:56206] "SET" "key one" "v\"\\x00 a" "EX" "10"
1795939752.250551 [0 127.0.0.1:56212] "MSET" "a" "1" "b" "22"
1795939752.254786 [0 [::1]:56220] "MGET" "a" "no\xff\n\"pe,"
1795939752.258786 [0 127.0.0.1:56228] "EVAL" "redis.call('set',KEYS[1],'x')" "1" "lua"
1795939752.258843 [0 lua] "set" "lua" "x" "PXAT" "1795939754000"
1795939752.262741 [0 unix:/run/redis.sock] "MULTI"
1795939752.262742 [0 unix:/run/redis.sock] "HSET" "h" "f" "v"
1795939752.262743 [0 unix:/run/redis.sock] "SETEX" "s" "5" "value"
1795939752.262744 [0 unix:/run/redis.sock] "incr" "n"
1795939752.262745 [0 unix:/run/redis.sock] "DEL" "n" "m"
"#;
    let file = super::TraceFile::of(log.replace('\n', "\r\n"));
    let mut records = TraceRecords::open(file.path(), &TraceOptions::default()).unwrap();
    assert_eq!(records.format(), TraceFormat::RedisMonitor);
    assert_eq!(records.timing(), TraceTiming::Exact);
    let (lines, error) = shown(&mut records);
    assert!(error.is_none(), "{error:?}");
    let expected = [
        r"246245000 set key one v=8 ttl=10",
        r"250551000 set a v=1",
        r"250551000 set b v=2",
        r"254786000 get a",
        r#"254786000 get no\xff\n\"pe,"#,
        r"258843000 set lua v=1 ttl=2",
        r"262742000 set h v=2",
        r"262743000 set s v=5 ttl=5",
        r"262744000 incr n",
        r"262745000 delete n",
        r"262745000 delete m",
    ];
    assert_eq!(lines, expected.map(|line| format!("1795939752{line}")));
    assert_eq!(records.counts().ignored(), 3, "OK, EVAL, MULTI");
}

#[test]
fn memtier_items_hold_commas_quotes_and_line_ends() {
    let file = "dumpflags, time, exptime, nbytes, nsuffix, it_flags, clsid, nkey, key, data\n\
                0, 1256713434, 0, 7, 0, 0, 1, 9, \"key,\"\"1\n x\", \"a,\"\"b\n\"\n\
                0, 1256713434, 1256713494, 3, 0, 0, 1, 2, k2, v\n\
                0, 1256713434, 30, 2, 0, 0, 1, 2, \"k3\", \"\"";
    let expected = ["0 set key,\\\"1\\n x v=5 never", "0 set k2 v=1 ttl=60", "0 set k3 v=0 ttl=30"];
    assert_eq!(requests(TraceFormat::Memtier, file), expected);
    // The numbers count the bytes of keys and values, so that their line ends stay.
    let file = file.replacen("data\n", "data\r\n", 1).replace("\"\n0", "\"\r\n0");
    assert_eq!(requests(TraceFormat::Memtier, file), expected);
}

#[test]
fn rocksdb_text_has_its_key_first_or_last() {
    let expected = [
        "1000 get \\x00\\xff",
        "2000 set ab v=300",
        "2000 delete ab",
        "3000 seek ab",
        "4000 get c",
    ];
    for file in [
        "0x00FF 0 0 0 1\n0x6162 1 0 300 2\n0x6162 3 1 0 2\n0x61 4 0 0 2\n0x6162 7 0 0 3\n0x63 8 0 0 4\n",
        "0 0 0 1 0x00ff\n1 0 300 2 0x6162\n2 1 0 2 0x6162\n4 0 0 2 0x61\n6 0 0 3 0x6162\n8 0 0 4 0x63\r\n",
    ] {
        assert_eq!(requests(TraceFormat::RocksDbText, file), expected, "{file}");
    }
}

#[test]
fn real_samples_of_lines_are_read() {
    for (name, format, count, first) in [
        (
            "twitter-cluster001-sample.csv",
            TraceFormat::Twitter,
            50,
            "0 get q:q:1:8WTwl7huJeQ k=17 v=249 never",
        ),
        (
            "cachelib-kv_traces_1.csv",
            TraceFormat::CacheLib,
            // Operations of 99 lines.
            691,
            "604038471000000000 get 82131353f9ddc8c6 k=48 v=87 never",
        ),
    ] {
        let Some(file) = sample(name) else { continue };
        let mut records = TraceRecords::open(&file, &TraceOptions::default()).unwrap();
        assert_eq!((records.format(), records.timing()), (format, TraceTiming::Seconds));
        let (lines, error) = shown(&mut records);
        assert!(error.is_none(), "{error:?}");
        assert_eq!(lines[0], first);
        assert_eq!(lines.len(), count, "{name}");
    }
}
