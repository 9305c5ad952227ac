//! The procedure that finds and counts work units, on platforms that are known.
#![allow(clippy::unwrap_used)]

use analyse::mbwu::{
    Bottleneck, DeviceLoad, EvaluationRequest, EvaluationRound, GrowthEnd, NextRound, Resource,
    ResourceUse, RoundPurpose, UnitEvaluation, in_units, next,
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
    /// Operations per second that the locks of one database let through.
    lock: f64,
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
            lock: far,
            noise: 0.01,
            others_busy: false,
        }
    }
}

impl Platform {
    fn round(
        &self,
        stage: RoundPurpose,
        devices: u32,
        load: DeviceLoad,
        number: u32,
    ) -> EvaluationRound {
        let able = f64::from(load.threads) * self.thread;
        let locks = self.lock * f64::from(load.databases);
        let reached = able.min(self.device * self.busy).min(locks);
        let expected = load.rate.map_or(reached, |rate| rate.min(reached));
        let wiggle = 1.0 + self.noise * if number.is_multiple_of(2) { 1.0 } else { -1.0 };
        let all = (expected * f64::from(devices) * wiggle).min(self.cpu).min(self.network);
        // How fast a device is differs from round to round; that it is busy does not.
        let busy = all / wiggle / f64::from(devices) / self.device;
        let uses = vec![
            ResourceUse { resource: Resource::Device, share: Ok(busy.min(1.0)) },
            ResourceUse { resource: Resource::Cpu, share: Ok(all / self.cpu) },
            ResourceUse { resource: Resource::Memory, share: Ok(0.3) },
            ResourceUse { resource: Resource::MemoryBandwidth, share: Err("no PMU".to_owned()) },
            ResourceUse { resource: Resource::Network, share: Ok(all / self.network) },
        ];
        EvaluationRound {
            stage,
            devices,
            load,
            number,
            rate_not_held: load.rate.is_some_and(|rate| rate > reached),
            throughput_ops_s: all,
            device_ops_s: vec![all / f64::from(devices); devices as usize],
            busy: Ok(vec![busy.min(1.0); devices as usize]),
            queue: Ok(vec![f64::from(load.threads) * busy; devices as usize]),
            uses,
            machine_busy: Some(if self.others_busy { 1.0 } else { all / self.cpu }),
            read_from_device: Some(1.0),
            invalid_because: match load.rate {
                Some(rate) if rate > reached => vec!["the rate was not held".to_owned()],
                _ => Vec::new(),
            },
        }
    }

    /// Runs the procedure to its end.
    fn evaluate(&self, request: &EvaluationRequest) -> UnitEvaluation {
        let mut rounds = Vec::new();
        for _ in 0..10_000 {
            match next(request, &rounds) {
                NextRound::Done(result) => return *result,
                NextRound::Measure { stage, devices, load, number } => {
                    rounds.push(self.round(stage, devices, load, number));
                }
            }
        }
        panic!("the procedure does not end");
    }
}

fn loads(texts: &[&str]) -> Vec<DeviceLoad> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn request(devices: u32) -> EvaluationRequest {
    EvaluationRequest {
        loads: loads(&["1", "2", "4", "8", "16", "32"]),
        gain: 0.05,
        most_rounds: 25,
        devices,
        given_unit: None,
    }
}

#[test]
fn k_equal_devices_are_k_units() {
    for devices in 1..=8 {
        let result = Platform::default().evaluate(&request(devices));
        let unit = result.unit.as_ref().unwrap();
        assert!(unit.proven && unit.steady, "{unit:?}");
        // 8 threads bring all that the device does; 16 only made the queue longer.
        assert_eq!(unit.load.to_string(), "8");
        assert!((unit.throughput_ops_s / 10_000.0 - 1.0).abs() < 0.01);
        let units = result.count.units.unwrap();
        assert!((units / f64::from(devices) - 1.0).abs() < 0.02, "{units} of {devices}");
        assert_eq!(result.count.end, GrowthEnd::Devices, "nothing ended the growth");
        assert_eq!(result.growth.len() as u32, devices);
        if devices > 1 {
            let interval = result.count.interval.unwrap();
            assert!(interval.low <= units && units <= interval.high, "{interval:?}");
        }
        assert!(result.notes.iter().any(|note| note.contains("memory bandwidth (no PMU)")));
    }
}

#[test]
fn a_platform_that_saturates_is_counted_and_the_resource_is_named() {
    let cases = [
        (Platform { cpu: 35_000.0, ..Platform::default() }, Resource::Cpu),
        (Platform { network: 35_000.0, ..Platform::default() }, Resource::Network),
    ];
    for (platform, resource) in cases {
        let result = platform.evaluate(&request(8));
        let units = result.count.units.unwrap();
        assert!((units - 3.5).abs() < 0.07, "{units}");
        assert_eq!(result.count.end, GrowthEnd::Saturated(Bottleneck::Platform(resource)));
        // The fifth device added nothing, so there was no sixth.
        assert_eq!(result.growth.len(), 5);
        assert!(result.conclusion.contains(&resource.to_string()), "{}", result.conclusion);
    }
}

#[test]
fn less_than_one_unit_is_no_unit() {
    let platform = Platform { cpu: 5_000.0, ..Platform::default() };
    let result = platform.evaluate(&request(4));
    let unit = result.unit.as_ref().unwrap();
    assert!(!unit.proven);
    assert_eq!(unit.bottleneck, Bottleneck::Platform(Resource::Cpu));
    assert_eq!(result.count.units, None, "there is nothing to divide by");
    assert!(result.conclusion.contains("at least 5000 ops/s: the CPU throttled one device"));
    assert_eq!(result.growth.len(), 1, "more devices would say nothing");

    // With a unit from elsewhere it is a fraction.
    let result = platform.evaluate(&EvaluationRequest { given_unit: Some(10_000.0), ..request(4) });
    assert!((result.count.units.unwrap() - 0.5).abs() < 1e-9);
    let cpu = Bottleneck::Platform(Resource::Cpu);
    assert_eq!(result.count.end, GrowthEnd::BelowOne(cpu));
}

#[test]
fn a_store_that_leaves_the_device_idle_gives_no_unit() {
    let platform = Platform { busy: 0.6, ..Platform::default() };
    let result = platform.evaluate(&request(2));
    let unit = result.unit.as_ref().unwrap();
    assert!(!unit.proven && unit.bottleneck == Bottleneck::Unknown, "{unit:?}");
    assert!(result.conclusion.contains("nothing that was watched"), "{}", result.conclusion);
    // On CPUs that others keep busy it is those that it waits for.
    let platform = Platform { others_busy: true, ..platform };
    let unit = platform.evaluate(&request(2)).unit.unwrap();
    assert_eq!(unit.bottleneck, Bottleneck::Platform(Resource::Cpu));
}

#[test]
fn more_databases_are_tried_where_one_keeps_the_device_idle() {
    let all = loads(&["1", "4", "8", "16", "4x2", "8x2", "16x2"]);
    let request = EvaluationRequest { loads: all.clone(), ..request(2) };
    let platform = Platform { lock: 6_000.0, ..Platform::default() };
    let result = platform.evaluate(&request);
    let unit = result.unit.as_ref().unwrap();
    assert!(unit.proven && unit.load.to_string() == "8x2", "{unit:?}");
    let tried: Vec<String> = result
        .rounds
        .iter()
        .filter(|r| r.stage == RoundPurpose::Raise)
        .map(|r| r.load.to_string())
        .collect();
    assert_eq!(tried, ["1", "4", "8", "16", "4x2", "8x2", "16x2"]);
    assert!((result.count.units.unwrap() - 2.0).abs() < 0.05);

    // A device that one database keeps busy has no need of another.
    let result = Platform::default().evaluate(&EvaluationRequest { loads: all, ..request });
    assert!(result.rounds.iter().all(|round| round.load.databases == 1));
}

#[test]
fn the_unit_is_of_the_load_with_the_highest_throughput() {
    // A device that does ever a little more with a longer queue, as one with two kinds of tokens.
    let mut rounds = Vec::new();
    let request = EvaluationRequest { loads: loads(&["1", "4", "8", "16"]), ..request(1) };
    let mut seen = Vec::new();
    while let NextRound::Measure { stage, devices, load, number } = next(&request, &rounds) {
        let mut round = Platform::default().round(stage, devices, load, number);
        let n = f64::from(load.threads);
        round.throughput_ops_s = 600.0 * n / (n + 1.0);
        round.uses[0].share = Ok(0.99);
        seen.push((stage, load.threads));
        rounds.push(round);
    }
    // 8 brings 11 % more than 4, 16 brings 6 % more than 8: the list is over, and it says so.
    assert_eq!(seen[..4].iter().map(|(_, n)| *n).collect::<Vec<_>>(), [1, 4, 8, 16]);
    let result = UnitEvaluation::of(&request, &rounds);
    let unit = result.unit.unwrap();
    assert_eq!(unit.load.threads, 16);
    assert!(
        result.notes.iter().any(|note| note.contains("brought 6 % more")),
        "{:?}",
        result.notes
    );
}

#[test]
fn an_unreached_rate_ends_raising_but_not_the_evaluation() {
    let request = EvaluationRequest {
        loads: loads(&["16@4000", "16@8000", "16@9500", "16@12000"]),
        ..request(2)
    };
    let result = Platform::default().evaluate(&request);
    let unit = result.unit.as_ref().unwrap();
    assert!(unit.proven && unit.load.rate == Some(9500.0), "{unit:?}");
    assert!(result.rounds.iter().any(|round| round.rate_not_held));
    assert_eq!(result.count.end, GrowthEnd::Devices);
    // Steps that are too coarse for the device prove nothing.
    let request = EvaluationRequest { loads: loads(&["16@8000", "16@12000"]), ..request };
    let unit = Platform::default().evaluate(&request).unit.unwrap();
    assert!(!unit.proven && unit.bottleneck == Bottleneck::Unknown, "{unit:?}");
}

#[test]
fn rounds_are_in_units_once_the_unit_is_known() {
    let (platform, request) = (Platform::default(), request(2));
    let result = platform.evaluate(&request);
    let first = result.rounds.iter().position(|round| round.stage == RoundPurpose::Growth).unwrap();
    let unit = result.unit.unwrap().throughput_ops_s;
    let told = in_units(&request, &result.rounds[..first], 2.0 * unit).unwrap();
    assert!((told - 2.0).abs() < 1e-12);
    assert_eq!(in_units(&request, &result.rounds[..first - 1], unit), None, "not settled yet");
    let given = EvaluationRequest { given_unit: Some(500.0), ..request };
    assert_eq!(in_units(&given, &[], 1000.0), Some(2.0));
}

#[test]
fn foreign_load_does_not_hide_a_busy_device() {
    let platform = Platform { others_busy: true, ..Platform::default() };
    let result = platform.evaluate(&request(2));
    assert!(result.unit.as_ref().unwrap().proven);
    assert!(result.notes.iter().any(|note| note.contains("other programs")), "{:?}", result.notes);
}

#[test]
fn one_disturbed_round_does_not_decide() {
    let platform = Platform { others_busy: true, ..Platform::default() };
    let load: DeviceLoad = "16".parse().unwrap();
    let of = |slow: u32| -> UnitEvaluation {
        let rounds: Vec<EvaluationRound> = (1..=5)
            .map(|number| {
                let mut round = platform.round(RoundPurpose::Unit, 1, load, number);
                if number <= slow {
                    round.uses[0].share = Ok(0.4);
                }
                round
            })
            .collect();
        UnitEvaluation::of(&request(1), &rounds)
    };
    assert_eq!(of(1).unit.unwrap().bottleneck, Bottleneck::Device);
    assert_eq!(of(2).unit.unwrap().bottleneck, Bottleneck::Device);
    assert_eq!(of(3).unit.unwrap().bottleneck, Bottleneck::Platform(Resource::Cpu));
}

#[test]
fn never_steady_ends_after_the_most_rounds() {
    let platform = Platform { noise: 0.3, ..Platform::default() };
    let result = platform.evaluate(&request(1));
    let unit = result.unit.as_ref().unwrap();
    assert_eq!((unit.rounds, unit.steady, unit.proven), (25, false, false));
    assert!(result.conclusion.contains("not steady"), "{}", result.conclusion);
    assert!(result.notes.iter().any(|note| note.starts_with("not steady: 25 rounds")));
}

#[test]
fn an_invalid_round_ends_the_evaluation() {
    let request = request(2);
    let mut bad = Platform::default().round(RoundPurpose::Raise, 1, loads(&["1"])[0], 1);
    bad.invalid_because = vec!["7 answers failed".to_owned()];
    let NextRound::Done(result) = next(&request, &[bad]) else { panic!("it goes on") };
    assert_eq!(result.count.end, GrowthEnd::Invalid("7 answers failed".to_owned()));
    assert_eq!(result.count.units, None);
}

#[test]
fn a_resumed_evaluation_is_the_same_one() {
    let (platform, request) = (Platform::default(), request(3));
    let whole = platform.evaluate(&request);
    for kept in 0..whole.rounds.len() {
        // The round after those that were kept is the one that came then.
        let NextRound::Measure { stage, devices, load, number } =
            next(&request, &whole.rounds[..kept])
        else {
            panic!("it ends after {kept} rounds");
        };
        let then = &whole.rounds[kept];
        assert_eq!(
            (stage, devices, load, number),
            (then.stage, then.devices, then.load, then.number)
        );
        let part = UnitEvaluation::of(&request, &whole.rounds[..kept]);
        assert_eq!(part.count.end, GrowthEnd::CutShort, "{kept}");
    }
}

#[test]
fn settings_hold_the_request() {
    let request = EvaluationRequest { given_unit: Some(1234.5), ..request(3) };
    let mut settings = Default::default();
    request.settings(&mut settings);
    assert_eq!(EvaluationRequest::of(&settings).unwrap(), request);
    settings.insert("mbwu.gain".to_owned(), "much".to_owned());
    assert!(
        EvaluationRequest::of(&settings).unwrap_err().to_string().contains("`mbwu.gain` is `much`")
    );
    settings.remove("mbwu.loads");
    assert!(
        EvaluationRequest::of(&settings).unwrap_err().to_string().contains("not an evaluation")
    );
}
