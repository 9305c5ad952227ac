//! Bytes of any kind: no panic, no endless reading, no more left out than may be.

use model::random::mix;
use workload::trace::{ArrivalSpread, RequestChunk, TraceFormat, TraceOptions, TraceReader};

use super::binary::{object, rocksdb};
use super::own::{written, zstd};
use super::packets::{CLIENT, Capture, Link, SERVER, request};
use super::{TraceFile, gzip, zst};

fn samples() -> Vec<Vec<u8>> {
    let mut capture = Capture::new(Link::Ethernet, true);
    capture.syn(CLIENT, SERVER);
    capture.segment(
        CLIENT,
        SERVER,
        0,
        b"set foo 0 60 5\r\nhello\r\nget foo bar\r\nms k 2 T0\r\nab\r\n",
    );
    let redis = (3, 6379);
    capture.segment(CLIENT, redis, 7, &request(&["SET", "key", "value", "EX", "10"]));
    capture.segment(CLIENT, redis, 5, &request(&["MGET", "key", "value"]));
    let objects: Vec<u8> = (0..20).flat_map(|n| object(n as u32 / 3, n % 5, 9, -1)).collect();
    let lines: [&[u8]; 6] = [
        b"ts=1.5 gid=2 type=item_get key=f%20 status=found clsid=0 cfd=6 size=3\nskipped=4\n\
          ts=1.7 gid=3 type=item_store key=f%20 status=stored cmd=set ttl=9 clsid=1 cfd=6 size=3\n",

        b"7,nz:a,b c,6,304,5,set,60\n8,k,2,0,5,gets,-1\n",
        b"op_time,key,key_size,op,op_count,size,ttl\n17,k1,30,GET_LEASE,2,0,8\n18,k2,,DELETE,1,0,\n",
        b"OK\n1.246245 [0 127.0.0.1:5] \"SET\" \"key \\x00\\\"\" \"v\" \"PXAT\" \"9\"\n",
        b"dumpflags, time, exptime, nbytes, nsuffix, it_flags, clsid, nkey, key, data\n\
          0, 1, 9, 7, 0, 0, 1, 5, \"a,\"\"b\", \"a,\"\"b\n\"\n",
        b"0x00FF 0 0 0 1\n0x6162 1 0 300 2\n0x6162 7 1 0 2\n",
    ];
    let mut samples = vec![rocksdb(), objects, capture.pcap(false, false), capture.pcapng(true)];
    samples.extend(lines.map(<[u8]>::to_vec));
    let own = written(None, Some(7));
    samples.extend([zstd(&own), own]);
    samples
}

fn read(file: &TraceFile, options: &TraceOptions) {
    let Ok(mut reader) = TraceReader::with(file.path(), options) else { return };
    let (mut chunk, mut requests, mut before) = (RequestChunk::new(), 0, 0.0);
    // One line may stand for a million requests.
    while requests < 1 << 16 {
        match reader.next_second(ArrivalSpread::Even, &mut chunk) {
            Ok(true) => {
                for request in chunk.iter() {
                    assert!(request.at_s >= before && (1..=250).contains(&request.key.len()));
                    before = request.at_s;
                }
                requests += chunk.len();
            }
            Ok(false) => break,
            Err(error) => {
                assert!(error.to_string().contains(&file.path().display().to_string()));
                break;
            }
        }
    }
    assert!(reader.counts().skipped() <= options.skip_bad);
}

#[test]
fn damaged_traces_are_refused_or_read_as_far_as_they_go() {
    let mut state = 7;
    let mut random = |below: usize| {
        state = mix(state);
        (state % below as u64) as usize
    };
    let file = TraceFile::of("");
    for sample in samples() {
        for round in 0..300 {
            let mut bytes = sample.clone();
            for _ in 0..1 + random(4) {
                let at = random(bytes.len());
                match random(4) {
                    0 => bytes[at] ^= 1 << random(8),
                    1 => bytes[at] = [0, 1, b'\n', b'"', 0x7f, 0x80, 0xff][random(7)],
                    2 => drop(bytes.drain(at..(at + random(9)).min(bytes.len()))),
                    _ => bytes.truncate(at + 1),
                }
                if bytes.is_empty() {
                    bytes.push(0);
                }
            }
            let bytes = match round % 10 {
                0 => gzip(&bytes),
                1 => zst(&bytes),
                _ => bytes,
            };
            std::fs::write(file.path(), bytes).unwrap();
            read(&file, &TraceOptions::default());
            let format = TraceFormat::ALL[random(TraceFormat::ALL.len())];
            let skip_bad = random(5) as u64;
            read(&file, &TraceOptions { skip_bad, copies: 2, ..TraceOptions::default() });
            read(
                &file,
                &TraceOptions { format: Some(format), skip_bad, ..TraceOptions::default() },
            );
        }
    }
}
