//! The procedure that finds and counts work units, on platforms that are known.
#![allow(clippy::unwrap_used)]

use analyse::mbwu::{
    Bottleneck, Ended, Evaluation, Next, Request, Resource, Round, Stage, Use, next,
};

/// A platform: how fast one device is, and what all of them together may take.
struct Platform {
    /// Operations per second that a device does at most, and of one thread.
    device: f64,
    thread: f64,
    /// Operations per second for which a resource suffices.
    cpu: f64,
    network: f64,
    /// A store that never keeps its device busier than this.
    busy: f64,
    /// How much a round differs from the one before, as a share.
    noise: f64,
    others_busy: bool,
}

impl Default for Platform {
    fn default() -> Self {
        let far = 1e9;
        let (device, thread) = (10_000.0, 2_000.0);
        Platform {
            device,
            thread,
            cpu: far,
            network: far,
            busy: 1.0,
            noise: 0.01,
            others_busy: false,
        }
    }
}

impl Platform {
    fn round(&self, stage: Stage, devices: u32, threads: u32, number: u32) -> Round {
        let wanted = (f64::from(threads) * self.thread).min(self.device * self.busy);
        let wiggle = 1.0 + self.noise * if number.is_multiple_of(2) { 1.0 } else { -1.0 };
        let all = (wanted * f64::from(devices) * wiggle).min(self.cpu).min(self.network);
        // How fast a device is differs from round to round; that it is busy does not.
        let busy = all / wiggle / f64::from(devices) / self.device;
        let uses = vec![
            Use { resource: Resource::Device, share: Ok(busy.min(1.0)) },
            Use { resource: Resource::Cpu, share: Ok(all / self.cpu) },
            Use { resource: Resource::Memory, share: Ok(0.3) },
            Use { resource: Resource::MemoryBandwidth, share: Err("no PMU".to_owned()) },
            Use { resource: Resource::Network, share: Ok(all / self.network) },
        ];
        Round {
            stage,
            devices,
            threads,
            number,
            throughput_ops_s: all,
            each_ops_s: vec![all / f64::from(devices); devices as usize],
            busy: Ok(vec![busy.min(1.0); devices as usize]),
            queue: Ok(vec![f64::from(threads) * busy; devices as usize]),
            uses,
            machine_busy: Some(if self.others_busy { 1.0 } else { all / self.cpu }),
            read_from_device: Some(1.0),
            invalid_because: Vec::new(),
        }
    }

    /// Runs the procedure to its end.
    fn evaluate(&self, request: &Request) -> Evaluation {
        let mut rounds = Vec::new();
        for _ in 0..10_000 {
            match next(request, &rounds) {
                Next::Done(found) => return *found,
                Next::Measure { stage, devices, threads, number } => {
                    rounds.push(self.round(stage, devices, threads, number));
                }
            }
        }
        panic!("the procedure does not end");
    }
}

fn request(devices: u32) -> Request {
    let loads = vec![1, 2, 4, 8, 16, 32];
    Request { loads, gain: 0.05, most_rounds: 25, devices, given_unit: None }
}

#[test]
fn k_equal_devices_are_k_units() {
    for devices in 1..=8 {
        let found = Platform::default().evaluate(&request(devices));
        let unit = found.unit.as_ref().unwrap();
        assert!(unit.proven && unit.steady, "{unit:?}");
        // 8 threads bring all that the device does; 16 only made the queue longer.
        assert_eq!(unit.threads, 8);
        assert!((unit.throughput_ops_s / 10_000.0 - 1.0).abs() < 0.01);
        let units = found.count.units.unwrap();
        assert!((units / f64::from(devices) - 1.0).abs() < 0.02, "{units} of {devices}");
        assert_eq!(found.count.ended, Ended::Devices, "nothing ended the growth");
        assert_eq!(found.growth.len() as u32, devices);
        if devices > 1 {
            let interval = found.count.interval.unwrap();
            assert!(interval.low <= units && units <= interval.high, "{interval:?}");
        }
        assert!(found.notes.iter().any(|note| note.contains("memory bandwidth (no PMU)")));
    }
}

#[test]
fn a_platform_that_saturates_is_counted_and_the_resource_is_named() {
    let cases = [
        (Platform { cpu: 35_000.0, ..Platform::default() }, Resource::Cpu),
        (Platform { network: 35_000.0, ..Platform::default() }, Resource::Network),
    ];
    for (platform, resource) in cases {
        let found = platform.evaluate(&request(8));
        let units = found.count.units.unwrap();
        assert!((units - 3.5).abs() < 0.07, "{units}");
        assert_eq!(found.count.ended, Ended::Saturated(Bottleneck::Platform(resource)));
        // The fifth device added nothing, so there was no sixth.
        assert_eq!(found.growth.len(), 5);
        assert!(found.conclusion.contains(&resource.to_string()), "{}", found.conclusion);
    }
}

#[test]
fn below_one_unit_nothing_is_called_one() {
    let platform = Platform { cpu: 5_000.0, ..Platform::default() };
    let found = platform.evaluate(&request(4));
    let unit = found.unit.as_ref().unwrap();
    assert!(!unit.proven);
    assert_eq!(unit.bottleneck, Bottleneck::Platform(Resource::Cpu));
    assert_eq!(found.count.units, None, "there is nothing to divide by");
    assert!(found.conclusion.contains("at least 5000 ops/s: the CPU throttled one device"));
    assert_eq!(found.growth.len(), 1, "more devices would say nothing");

    // With a unit from elsewhere it is a fraction.
    let found = platform.evaluate(&Request { given_unit: Some(10_000.0), ..request(4) });
    assert!((found.count.units.unwrap() - 0.5).abs() < 1e-9);
    let cpu = Bottleneck::Platform(Resource::Cpu);
    assert_eq!(found.count.ended, Ended::BelowOne(cpu));
}

#[test]
fn a_store_that_leaves_the_device_idle_gives_no_unit() {
    let platform = Platform { busy: 0.6, ..Platform::default() };
    let found = platform.evaluate(&request(2));
    let unit = found.unit.as_ref().unwrap();
    assert!(!unit.proven && unit.bottleneck == Bottleneck::Unknown, "{unit:?}");
    assert!(found.conclusion.contains("nothing that was watched"), "{}", found.conclusion);
    // On CPUs that others keep busy it is those that it waits for.
    let platform = Platform { others_busy: true, ..platform };
    let unit = platform.evaluate(&request(2)).unit.unwrap();
    assert_eq!(unit.bottleneck, Bottleneck::Platform(Resource::Cpu));
}

#[test]
fn others_that_are_busy_do_not_hide_a_busy_device() {
    let platform = Platform { others_busy: true, ..Platform::default() };
    let found = platform.evaluate(&request(2));
    assert!(found.unit.as_ref().unwrap().proven);
    assert!(found.notes.iter().any(|note| note.contains("other programs")), "{:?}", found.notes);
}

#[test]
fn what_is_never_steady_ends_after_the_most_rounds_and_says_so() {
    let platform = Platform { noise: 0.3, ..Platform::default() };
    let found = platform.evaluate(&request(1));
    let unit = found.unit.as_ref().unwrap();
    assert_eq!((unit.rounds, unit.steady, unit.proven), (25, false, false));
    assert!(found.conclusion.contains("not steady"), "{}", found.conclusion);
    assert!(found.notes.iter().any(|note| note.starts_with("not steady: 25 rounds")));
}

#[test]
fn a_round_that_does_not_count_ends_it() {
    let request = request(2);
    let mut bad = Platform::default().round(Stage::Raise, 1, 1, 1);
    bad.invalid_because = vec!["7 answers failed".to_owned()];
    let Next::Done(found) = next(&request, &[bad]) else { panic!("it goes on") };
    assert_eq!(found.count.ended, Ended::Invalid("7 answers failed".to_owned()));
    assert_eq!(found.count.units, None);
}

#[test]
fn a_resumed_evaluation_is_the_same_one() {
    let (platform, request) = (Platform::default(), request(3));
    let whole = platform.evaluate(&request);
    for kept in 0..whole.rounds.len() {
        // The round after those that were kept is the one that came then.
        let Next::Measure { stage, devices, threads, number } =
            next(&request, &whole.rounds[..kept])
        else {
            panic!("it ends after {kept} rounds");
        };
        let then = &whole.rounds[kept];
        assert_eq!(
            (stage, devices, threads, number),
            (then.stage, then.devices, then.threads, then.number)
        );
        let part = Evaluation::of(&request, &whole.rounds[..kept]);
        assert_eq!(part.count.ended, Ended::CutShort, "{kept}");
    }
}

#[test]
fn settings_tell_the_request() {
    let request = Request { given_unit: Some(1234.5), ..request(3) };
    let mut settings = Default::default();
    request.settings(&mut settings);
    assert_eq!(Request::of(&settings).unwrap(), request);
    settings.insert("mbwu.gain".to_owned(), "much".to_owned());
    assert!(Request::of(&settings).unwrap_err().to_string().contains("`mbwu.gain` is `much`"));
    settings.remove("mbwu.loads");
    assert!(Request::of(&settings).unwrap_err().to_string().contains("no evaluation"));
}
