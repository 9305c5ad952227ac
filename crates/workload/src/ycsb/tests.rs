use model::{Bytes, Count, Op};

use super::*;
use crate::{InsertOrder, LengthSpec, Mix, Popularity, Workload};

fn read(text: &str) -> YcsbWorkload {
    YcsbWorkload::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn spec(text: &str) -> WorkloadSpec {
    read(&format!("recordcount=1000\n{text}")).workload
}

/// The published values of the six core workloads: proportions of reads, updates, scans, inserts
/// and read-modify-writes, and the distribution. All have 1,000 records and operations.
const CORE: [(&str, [f64; 5], &str); 6] = [
    ("ycsb-a", [0.5, 0.5, 0.0, 0.0, 0.0], "zipfian"),
    ("ycsb-b", [0.95, 0.05, 0.0, 0.0, 0.0], "zipfian"),
    ("ycsb-c", [1.0, 0.0, 0.0, 0.0, 0.0], "zipfian"),
    ("ycsb-d", [0.95, 0.0, 0.0, 0.05, 0.0], "latest"),
    ("ycsb-e", [0.0, 0.0, 0.95, 0.05, 0.0], "zipfian"),
    ("ycsb-f", [0.5, 0.0, 0.0, 0.0, 0.5], "zipfian"),
];

#[test]
fn the_six_core_workloads_are_the_presets() {
    for (preset, [read_share, update, scan, insert, modify], distribution) in CORE {
        let scans = "maxscanlength=100\nscanlengthdistribution=uniform\n";
        let text = format!(
            "recordcount=1000\noperationcount=1000\nworkload=site.ycsb.workloads.CoreWorkload\n\n\
             readallfields=true\n\nreadproportion={read_share}\nupdateproportion={update}\n\
             scanproportion={scan}\ninsertproportion={insert}\n\
             readmodifywriteproportion={modify}\nrequestdistribution={distribution}\n{}",
            if scan > 0.0 { scans } else { "" }
        );
        let file = read(&text);
        // The preset has a million records; all else is equal.
        let expected = WorkloadSpec::preset(preset).unwrap().with_records(Count(1000));
        assert_eq!(file.workload, expected, "{preset}");
        let run = RunProperty { flag: "--ops", key: "operations", value: "1000".to_owned() };
        assert_eq!(file.run, [run]);
    }
}

#[test]
fn what_is_left_out_has_the_defaults_of_ycsb() {
    let default = spec("");
    assert_eq!(default.records, Count(1000));
    assert_eq!(default.mix, Mix::default().with(Op::Read, 0.95).with(Op::Update, 0.05));
    assert_eq!(default.popularity, Popularity::Uniform);
    assert_eq!(default.value.size, LengthSpec::fixed(1000));
    assert_eq!(default.order, InsertOrder::Hashed);
    let scans = spec("scanproportion=1");
    assert_eq!(scans.scan, LengthSpec::Uniform { min: Bytes(1), max: Bytes(1000) });
    assert_eq!(read("recordcount=5").run, []);
}

#[test]
fn every_property_is_mapped() {
    let popular = |text: &str| spec(text).popularity;
    assert_eq!(popular("requestdistribution=sequential"), Popularity::Sequential);
    assert_eq!(
        popular("requestdistribution=hotspot\nhotspotdatafraction=0.1\nhotspotopnfraction=0.9"),
        Popularity::Hotspot { keys: 0.1, operations: 0.9 }
    );
    assert_eq!(
        popular("requestdistribution=exponential\nexponential.percentile=90\nexponential.frac=0.5"),
        Popularity::Exponential { percentile: 90.0, fraction: 0.5 }
    );
    assert_eq!(popular("requestdistribution=exponential"), "exponential".parse().unwrap());
    let value = |text: &str| spec(text).value.size;
    assert_eq!(value("fieldcount=4\nfieldlength=25"), LengthSpec::fixed(100));
    assert_eq!(
        value("fieldcount=1\nfieldlengthdistribution=uniform\nminfieldlength=10"),
        LengthSpec::Uniform { min: Bytes(10), max: Bytes(100) }
    );
    let ordered = spec("insertorder=ordered\nzeropadding=12\nreadallfields=TRUE");
    assert_eq!(ordered.order, InsertOrder::Ordered);
    let mut key = Vec::new();
    Workload::new(&ordered).unwrap().key(7, &mut key);
    assert_eq!(key, b"user000000000007");
    assert!(spec("dotransactions=false").is_load());
    let run = read("recordcount=9\nthreadcount=4\ntarget=2000\nmaxexecutiontime=60\n").run;
    let flags: Vec<_> = run.iter().map(|run| (run.flag, run.key, &*run.value)).collect();
    let expected =
        [("--threads", "threads", "4"), ("--rate", "rate", "2000"), ("--time", "time", "60s")];
    assert_eq!(flags, expected);
    let without_effect = "table=usertable\nfieldnameprefix=field\nkeyprefix=user\ninsertstart=0\n\
                          insertcount=1000\ndataintegrity=true\nwriteallfields=true\n\
                          core_workload_insertion_retry_limit=0\nfieldlengthhistogram=hist.txt\n\
                          core_workload_insertion_retry_interval=3\nreadallfieldsbyname=false\n\
                          workload=com.yahoo.ycsb.workloads.CoreWorkload";
    assert_eq!(spec(without_effect), spec(""));
}

/// P(length = k) proportional to (k - shortest + 1)^-0.99, chi-square of the drawn ones.
#[test]
fn zipfian_lengths_favour_the_shortest() {
    let spec = spec(
        "scanproportion=1\nreadproportion=0\nupdateproportion=0\nminscanlength=5\n\
                     maxscanlength=24\nscanlengthdistribution=zipfian",
    );
    let workload = Workload::new(&spec).unwrap();
    let mut stream = workload.stream();
    let mut observed = [0u64; 25];
    let draws = 200_000;
    for index in 0..draws {
        if index % crate::BLOCK == 0 {
            stream.seek(index / crate::BLOCK);
        }
        observed[stream.next(u64::MAX).unwrap().scan as usize] += 1;
    }
    let sum: f64 = (1..=20).map(|rank| f64::from(rank).powf(-0.99)).sum();
    let chi: f64 = (1..=20u32)
        .map(|rank| {
            let expected = f64::from(rank).powf(-0.99) / sum * draws as f64;
            (observed[rank as usize + 4] as f64 - expected).powi(2) / expected
        })
        .sum();
    assert_eq!(observed.iter().sum::<u64>(), draws);
    // 19 degrees of freedom, five standard deviations.
    assert!(chi < 19.0 + 5.0 * 38f64.sqrt(), "{chi}");
}

#[test]
fn what_kvmeter_does_not_have_is_refused_by_name_with_its_line() {
    for (text, says) in [
        ("fieldlength=-1", "line 2: `fieldlength` is `-1`"),
        ("fieldlength=1e3", "`fieldlength` is `1e3`"),
        ("fieldcount=0", "`fieldcount` is 0"),
        ("fieldcount=99999999999\nfieldlength=999999999999", "are too long for a value"),
        ("fieldcount=1\nfieldlength=2147483648", "line 3: `value.size` is 2GiB"),
        ("fieldlengthdistribution=uniform", "set `fieldcount` to 1"),
        ("fieldcount=1\nfieldlengthdistribution=histogram", "does not read YCSB's histograms"),
        ("fieldcount=1\nfieldlengthdistribution=gauss", "`fieldlengthdistribution` is `gauss`"),
        ("fieldcount=1\nfieldlengthdistribution=zipfian\nfieldlength=5000", "more than 1000"),
        ("fieldcount=1\nfieldlengthdistribution=zipfian\nfieldlength=0", "below `minfieldlength`"),
        ("readallfields=false", "set it to true, or `fieldcount` to 1"),
        ("readallfields=perhaps", "write `true` or `false`"),
        ("readallfieldsbyname=true", "`readallfieldsbyname` is true"),
        ("readproportion=NaN", "`readproportion` is `NaN`"),
        ("readproportion=1e999", "`readproportion` is `1e999`"),
        ("readproportion=-0.5", "`readproportion` is `-0.5`"),
        ("readproportion=0\nupdateproportion=0", "every proportion is 0"),
        ("requestdistribution=zipfain", "did you mean `zipfian`?"),
        ("requestdistribution=exponential\ninsertproportion=0.1", "counts back from the newest"),
        ("requestdistribution=hotspot\nhotspotdatafraction=2", "line 2: `popularity`"),
        ("scanproportion=1\nscanlengthdistribution=constant", "`scanlengthdistribution`"),
        ("scanproportion=1\nmaxscanlength=0", "`min` is above `max`"),
        ("insertorder=random", "`insertorder` is `random`"),
        ("zeropadding=12", "at least 20"),
        ("insertorder=ordered\nzeropadding=2", "line 3: `key.size` is 6"),
        ("insertorder=ordered\nzeropadding=99999999999", "line 3: `key.size`"),
        ("insertstart=10", "agents share a load"),
        ("insertcount=10", "`insertcount` is 10 of 1000"),
        ("table=other", "`table` is `other`"),
        ("keyprefix=key", "`keyprefix` is `key`"),
        ("fieldnameprefix=f", "`fieldnameprefix` is `f`"),
        ("core_workload_insertion_retry_limit=3", "counts them as errors"),
        ("workload=site.ycsb.workloads.TimeSeriesWorkload", "TimeSeriesWorkload"),
        ("threadcount=many", "`threadcount` is `many`"),
        ("recordcount=2000", "`recordcount` is given on line 1 too"),
        ("redis.host=localhost", "line 2: `redis.host`"),
        ("db=site.ycsb.BasicDB", "line 2: `db` names YCSB's binding"),
        ("hdrhistogram.percentiles=99", "says what YCSB prints"),
        ("recordcuont=5", "did you mean `recordcount`?"),
    ] {
        let text = format!("recordcount=1000\n{text}");
        let error = YcsbWorkload::parse(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(says), "{text}: {error}");
    }
    for text in ["", "recordcount=0", "operationcount=1000", "recordcount=99999999999999999999"] {
        let error = YcsbWorkload::parse(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("`recordcount` is"), "{text}: {error}");
    }
}
