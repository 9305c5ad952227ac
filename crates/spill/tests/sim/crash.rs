//! A long run, cut at each file system call. The reopened store must equal the result of some
//! prefix of the writes, at least as long as the durability mode promises.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use spill::{Durability, Options, Snapshot};

use crate::disk::{Call, End, Kind, Loss, Sim, State};
use crate::history::{History, Model, Traffic, Write};
use crate::random::Random;
use crate::settings;
use crate::target::Target;

const KEYS: usize = 120;

fn traffic(seed: u64) -> Traffic {
    Traffic { seed, keys: KEYS, max_value_len: 12_000 }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The write with this number.
    Write(usize),
    Sync,
    Flush,
    Settle,
    Reopen,
    Read,
    TakeSnapshot,
    CheckSnapshot,
}

/// The steps, and the writes among them.
fn plan(seed: u64, count: usize) -> (Vec<Step>, Vec<Write>) {
    let mut random = Random::of(seed, u64::MAX);
    let traffic = traffic(seed);
    let (mut steps, mut writes) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let step = match random.below(1000) {
            0..12 => Step::Sync,
            12..18 => Step::Flush,
            18..20 => Step::Settle,
            20..24 => Step::Reopen,
            24..40 => Step::Read,
            40..46 => Step::TakeSnapshot,
            46..54 => Step::CheckSnapshot,
            54..56 => {
                writes.push(Write::DropTable(random.below(3)));
                Step::Write(writes.len() - 1)
            }
            _ => {
                writes.push(traffic.write(writes.len()));
                Step::Write(writes.len() - 1)
            }
        };
        steps.push(step);
    }
    (steps, writes)
}

/// Numbers of started, acknowledged and certainly durable writes.
#[derive(Default)]
struct Progress {
    started: AtomicUsize,
    acknowledged: AtomicUsize,
    durable: AtomicUsize,
}

impl Progress {
    fn acknowledge(&self, options: &Options) {
        let count = self.acknowledged.fetch_add(1, Ordering::SeqCst) + 1;
        if options.durability == Durability::Sync {
            self.durable.store(count, Ordering::SeqCst);
        }
    }

    fn all_is_durable(&self) {
        self.durable.store(self.acknowledged.load(Ordering::SeqCst), Ordering::SeqCst);
    }

    fn promise(&self) -> Promise {
        let acknowledged = self.acknowledged.load(Ordering::SeqCst);
        Promise {
            durable: self.durable.load(Ordering::SeqCst),
            acknowledged,
            started: self.started.load(Ordering::SeqCst),
            reported: acknowledged,
        }
    }
}

/// Bounds for the number of writes that may be found.
#[derive(Debug, Clone, Copy)]
struct Promise {
    durable: usize,
    acknowledged: usize,
    started: usize,
    /// Acknowledged before the end, durable or not.
    reported: usize,
}

impl Promise {
    fn least(&self, end: End) -> usize {
        match end {
            End::Kill => self.acknowledged,
            End::PowerCut(_) => self.durable,
        }
    }

    /// The promise to a process that finds the disk after this end.
    fn after(self, end: End) -> Promise {
        Promise { acknowledged: self.least(end), ..self }
    }
}

/// A disk as the next process finds it.
struct DiskImage {
    sim: Sim,
    /// For that process.
    promise: Promise,
    /// How it came about.
    story: String,
}

/// Takes images of a disk at some calls.
struct CutPlan {
    seed: u64,
    stride: u64,
    ends: Vec<End>,
    /// All kinds of power cut at each call, rather than one in turn.
    all: bool,
}

/// The writes of a run, and their effects.
struct Workload {
    writes: Vec<Write>,
    history: History,
    options: Options,
}

impl CutPlan {
    /// For a second crash at some calls; over many first crashes every call is hit.
    fn some(stride: u64, random: &mut Random) -> CutPlan {
        CutPlan { seed: random.next() >> 1, stride, ends: all_ends(), all: false }
    }

    fn hits(&self, number: u64) -> bool {
        number.wrapping_add(self.seed).is_multiple_of(self.stride)
    }

    fn ends(&self, number: u64) -> Vec<End> {
        if self.all {
            return self.ends.clone();
        }
        let (kills, cuts): (Vec<End>, Vec<End>) =
            self.ends.iter().partition(|end| **end == End::Kill);
        let turn = number.wrapping_add(self.seed) / self.stride;
        let cut = cuts[turn as usize % cuts.len()];
        kills.into_iter().chain(std::iter::once(cut)).collect()
    }
}

fn all_ends() -> Vec<End> {
    std::iter::once(End::Kill).chain(power_cuts()).collect()
}

fn power_cuts() -> Vec<End> {
    Loss::ALL.map(End::PowerCut).to_vec()
}

/// Watches a disk with `progress`; `found` receives what each cut leaves.
fn cut_at_each_call(
    sim: &Sim,
    cuts: CutPlan,
    story: String,
    progress: impl Fn() -> Promise + Send + 'static,
    mut found: impl FnMut(DiskImage) + Send + 'static,
) {
    let mut stores = None;
    sim.watch(move |call: &Call, state: &State| {
        let promise = progress();
        if let Some((number, before, then)) = stores.take()
            && call.number == number + 1
        {
            let torn = DiskImage {
                sim: state.torn_image(&before, cuts.seed),
                promise: Promise { acknowledged: then, ..promise },
                story: format!("{story}; killed during its stores at {call}"),
            };
            found(torn);
        }
        if call.kind == Kind::Pause && cuts.hits(call.number + 1) {
            stores = Some((call.number, state.stores(), promise.acknowledged));
        }
        if cuts.hits(call.number) {
            for end in cuts.ends(call.number) {
                let sim = state.image(end, cuts.seed);
                // Other threads may have continued meanwhile.
                let promise = Promise { started: progress().started, ..promise };
                found(DiskImage {
                    sim,
                    promise: promise.after(end),
                    story: format!("{story}; {end:?} at {call}"),
                });
            }
        }
    });
}

/// Counters, so that a run that shows nothing fails.
#[derive(Debug, Default)]
struct CrashStats {
    images: usize,
    /// Power cuts that lost something acknowledged.
    lost: usize,
    second: usize,
}

/// Opens an image and compares; then continues there, and cuts that too.
fn examine(
    images: DiskImage,
    history: &History,
    workload: &Workload,
    deep: Option<u64>,
) -> CrashStats {
    let DiskImage { sim, promise, story } = images;
    let options = &workload.options;
    let mut seen = CrashStats { images: 1, ..CrashStats::default() };
    let seconds: Arc<Mutex<Vec<DiskImage>>> = Arc::default();
    if let Some(seed) = deep {
        // The opening itself may be cut.
        let mut random = Random::of(seed, 5);
        let cuts = CutPlan::some(25, &mut random);
        let seconds = Arc::clone(&seconds);
        let found = move |images| seconds.lock().unwrap().push(images);
        cut_at_each_call(&sim, cuts, format!("{story}; then opening"), move || promise, found);
    }
    let opened = Target::open(&sim, options);
    sim.unwatch();
    let mut target = opened.unwrap_or_else(|error| panic!("{story}: {error}"));
    for second in seconds.lock().unwrap().drain(..) {
        seen.second += examine(second, history, workload, None).images;
    }

    let mut random = Random::of(deep.unwrap_or(9), 6);
    let found = Model::read(&target.store, random.chance(1, 2))
        .unwrap_or_else(|error| panic!("{story}: {error}"));
    let may_be = promise.acknowledged..=promise.started;
    let count = history.find(&found, may_be.clone()).unwrap_or_else(|| {
        let elsewhere = history.find(&found, 0..=history.len());
        panic!("{story}: the content is not of {may_be:?} writes, but of {elsewhere:?}");
    });
    seen.lost += usize::from(count < promise.reported);
    target
        .check_some(&found, traffic(0), &mut random)
        .unwrap_or_else(|error| panic!("{story}: {error}"));
    target.store.scrub().unwrap_or_else(|error| panic!("{story}: scrub: {error}"));

    if let Some(seed) = deep {
        let promise = Promise {
            acknowledged: count,
            started: count,
            reported: count,
            durable: promise.durable,
        };
        let mut history = history.clone();
        history.cut(count);
        for second in
            continue_after(&sim, target, found, &mut history, promise, (workload, seed, &story))
        {
            seen.second += examine(second, &history, workload, None).images;
        }
    }
    seen
}

/// Writes more after a survived crash; returns what further cuts leave of it.
fn continue_after(
    sim: &Sim,
    mut target: Target,
    mut model: Model,
    history: &mut History,
    promise: Promise,
    (workload, seed, story): (&Workload, u64, &str),
) -> Vec<DiskImage> {
    let mut random = Random::of(seed, 7);
    let progress = Arc::new(Progress::default());
    progress.started.store(promise.started, Ordering::SeqCst);
    progress.acknowledged.store(promise.acknowledged, Ordering::SeqCst);
    progress.durable.store(promise.durable, Ordering::SeqCst);
    let images: Arc<Mutex<Vec<DiskImage>>> = Arc::default();
    let cuts = CutPlan::some(31, &mut random);
    let (watched, kept) = (Arc::clone(&progress), Arc::clone(&images));
    let story = format!("{story}; then writing");
    cut_at_each_call(
        sim,
        cuts,
        story.clone(),
        move || watched.promise(),
        move |images| kept.lock().unwrap().push(images),
    );
    let fails = |error: spill::Error| -> ! { panic!("{story}: {error}") };
    let traffic = traffic(seed ^ 0x5eed);
    // New records in exactly the place of lost ones must not bring back those behind them.
    let likenesses = if random.chance(1, 2) { random.below(4) } else { 0 };
    let lost = workload.writes.iter().skip(promise.acknowledged).take(likenesses);
    let writes = lost.map(Write::lookalike).chain((0..24).map(|number| traffic.write(number)));
    for write in writes.take(24) {
        sim.pause();
        model.apply(&write);
        history.push(&model);
        progress.started.fetch_add(1, Ordering::SeqCst);
        target.write(&write).unwrap_or_else(|error| fails(error));
        progress.acknowledge(&workload.options);
        if random.chance(1, 12) {
            target.store.sync().unwrap_or_else(|error| fails(error));
            progress.all_is_durable();
        }
        if random.chance(1, 20) {
            target.store.flush().unwrap_or_else(|error| fails(error));
            progress.all_is_durable();
        }
    }
    target.check_some(&model, traffic, &mut random).unwrap_or_else(|error| fails(error));
    let found = Model::read(&target.store, false).unwrap_or_else(|error| fails(error));
    assert_eq!(found.digest(), model.digest(), "{story}: {}", found.difference(&model));
    sim.pause();
    sim.unwatch();
    images.lock().unwrap().drain(..).collect()
}

/// Runs all steps; everything on the way must be right too.
fn run(sim: &Sim, options: &Options, steps: &[Step], writes: &[Write], progress: &Progress) {
    let mut random = Random::new(3);
    let mut target = Target::open(sim, options).unwrap();
    let mut model = Model::default();
    let mut snapshot: Option<(Snapshot, Model)> = None;
    for step in steps {
        sim.pause();
        match step {
            Step::Write(number) => {
                progress.started.fetch_add(1, Ordering::SeqCst);
                if matches!(writes[*number], Write::DropTable(_)) {
                    // A snapshot is read through existing tables.
                    snapshot = None;
                }
                target.write(&writes[*number]).unwrap();
                progress.acknowledge(options);
                model.apply(&writes[*number]);
            }
            Step::Sync => {
                target.store.sync().unwrap();
                progress.all_is_durable();
            }
            Step::Flush => {
                target.store.flush().unwrap();
                progress.all_is_durable();
            }
            Step::Settle => assert!(target.settle().unwrap()),
            Step::Reopen => {
                snapshot = None;
                drop(target);
                target = Target::open(sim, options).unwrap();
            }
            Step::Read => target.check_some(&model, traffic(0), &mut random).unwrap(),
            Step::TakeSnapshot => snapshot = Some((target.store.snapshot(), model.clone())),
            Step::CheckSnapshot => {
                if let Some((snapshot, then)) = &snapshot {
                    target.check_snapshot(snapshot, then).unwrap();
                }
            }
        }
    }
    let found = Model::read(&target.store, false).unwrap();
    assert_eq!(found.digest(), model.digest(), "{}", found.difference(&model));
}

fn examiner(
    images: Receiver<DiskImage>,
    workload: Workload,
    seed: u64,
) -> std::thread::JoinHandle<CrashStats> {
    std::thread::spawn(move || {
        let mut seen = CrashStats::default();
        for (number, one) in images.into_iter().enumerate() {
            let deep = Some(Random::of(seed, number as u64).next());
            let more = examine(one, &workload.history, &workload, deep);
            seen.images += more.images;
            seen.lost += more.lost;
            seen.second += more.second;
        }
        seen
    })
}

fn crashes(durability: Durability, steps: usize, cuts: u64) {
    let seed = settings::seed();
    println!("SPILL_TEST_SEED={seed}");
    let options = settings::tiny(durability);
    let (steps, writes) = plan(seed, steps);
    // Once without a cut: counts the calls, and checks that the run covers what it should.
    let sim = Sim::new(seed);
    sim.start_trace();
    run(&sim, &options, &steps, &writes, &Progress::default());
    let trace = sim.take_trace();
    check_run_coverage(&trace);

    let stride = if settings::every() { 1 } else { (trace.len() as u64 / cuts).max(1) };
    let seen = run_and_cut(seed, &options, (&steps, &writes), stride, all_ends());
    println!("{} calls, {seen:?}", trace.len());
    assert!(seen.images as u64 >= cuts && seen.second > seen.images, "{seen:?}");
    assert_eq!(seen.lost == 0, durability == Durability::Sync, "{seen:?}");
}

fn run_and_cut(
    seed: u64,
    options: &Options,
    (steps, writes): (&[Step], &[Write]),
    stride: u64,
    ends: Vec<End>,
) -> CrashStats {
    let sim = Sim::new(seed);
    let progress = Arc::new(Progress::default());
    let (send, receive): (SyncSender<DiskImage>, _) = sync_channel(8);
    let workload = Workload {
        writes: writes.to_vec(),
        history: History::of(writes),
        options: Options { background: false, ..options.clone() },
    };
    let examiner = examiner(receive, workload, seed);
    let watched = Arc::clone(&progress);
    cut_at_each_call(
        &sim,
        CutPlan { seed, stride, ends, all: settings::every() },
        format!("SPILL_TEST_SEED={seed}, {:?}", options.durability),
        move || watched.promise(),
        // Its end is seen when it is joined.
        move |images| drop(send.send(images)),
    );
    run(&sim, options, steps, writes, &progress);
    sim.unwatch();
    examiner.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Segments are filled and collected, indexes created and replaced.
fn check_run_coverage(trace: &[Call]) {
    let count = |kind: Kind, folder: &str| {
        trace
            .iter()
            .filter(|call| call.kind == kind && call.path.to_string_lossy().contains(folder))
            .count()
    };
    for (kind, folder) in [
        (Kind::OpenNew, "/log/"),
        (Kind::Remove, "/log/"),
        (Kind::OpenNew, "/index/"),
        (Kind::Remove, "/index/"),
    ] {
        assert!(count(kind, folder) >= 3, "the run is too short: {kind:?} of {folder}");
    }
}

#[test]
fn crash_without_syncs_leaves_a_prefix() {
    crashes(Durability::None, 2500, 100);
}

#[test]
fn crash_with_interval_syncs_leaves_a_prefix() {
    crashes(settings::MODES[1], 1500, 60);
}

/// What was written an interval ago is durable: the sync thread, or without threads the next write,
/// has synced it.
#[test]
fn crash_keeps_writes_older_than_the_interval() {
    const INTERVAL: Duration = Duration::from_millis(100);
    let options = settings::tiny(Durability::Interval(INTERVAL));
    for background in [true, false] {
        let sim = Sim::new(settings::seed());
        let options = Options { background, ..options.clone() };
        let target = Target::open(&sim, &options).unwrap();
        let table = target.store.table("t").unwrap();
        table.put(b"old", b"value").unwrap();
        // Long enough for a thread on a busy machine.
        std::thread::sleep(if background { 15 * INTERVAL } else { INTERVAL });
        if !background {
            table.put(b"new", b"value").unwrap();
        }
        let left = sim.image(End::PowerCut(Loss::Everything), 0);
        let left = Target::open(&left, &options).unwrap();
        let found = left.store.table("t").unwrap().get(b"old").unwrap();
        assert_eq!(found.as_deref(), Some(&b"value"[..]), "with threads: {background}");
    }
}

#[test]
fn crash_with_syncs_keeps_acknowledged_writes() {
    crashes(Durability::Sync, 1500, 100);
}

/// Compaction and collection in threads, with power cuts at any of their calls. Stores during an
/// image may be missing from it, as after a power cut, though not after a kill.
#[test]
fn crash_with_background_threads_leaves_a_prefix() {
    let seed = settings::seed();
    println!("SPILL_TEST_SEED={seed}");
    for durability in [Durability::None, Durability::Sync] {
        let options = Options { background: true, ..settings::tiny(durability) };
        let (steps, writes) = plan(seed, 1200);
        let stride = if settings::every() { 1 } else { 40 };
        let seen = run_and_cut(seed, &options, (&steps, &writes), stride, power_cuts());
        println!("{seen:?}");
        assert!(seen.images > 20 && seen.second > seen.images, "{seen:?}");
        assert_eq!(seen.lost == 0, durability == Durability::Sync, "{seen:?}");
    }
}

/// What some cuts leave of an opening.
fn images_of_opening(sim: &Sim, cuts: CutPlan) -> Vec<(String, Sim)> {
    let left: Arc<Mutex<Vec<(String, Sim)>>> = Arc::default();
    let all = Arc::clone(&left);
    sim.watch(move |call: &Call, state: &State| {
        if cuts.hits(call.number) {
            let image = |end| (format!("{end:?} at {call}"), state.image(end, cuts.seed));
            all.lock().unwrap().extend(cuts.ends(call.number).into_iter().map(image));
        }
    });
    Target::open(sim, &settings::tiny(Durability::None)).unwrap();
    sim.unwatch();
    std::mem::take(&mut *left.lock().unwrap())
}

/// Power fails while a store is opened whose creator was killed before everything was durable.
#[test]
fn interrupted_creation_and_recovery_can_be_retried() {
    let seed = settings::seed();
    println!("SPILL_TEST_SEED={seed}");
    let mut openings = 0;
    let kills = CutPlan { seed, stride: 1, ends: vec![End::Kill], all: true };
    for (number, (killed, sim)) in (0..).zip(images_of_opening(&Sim::new(seed), kills)) {
        let stride = if settings::every() { 1 } else { 9 };
        let cuts = CutPlan { seed: seed ^ number, stride, ends: power_cuts(), all: true };
        for (cut, sim) in images_of_opening(&sim, cuts) {
            Target::open(&sim, &settings::tiny(Durability::None))
                .unwrap_or_else(|error| panic!("{killed}; then {cut}: {error}"));
            openings += 1;
        }
    }
    assert!(openings > 500, "{openings}");
}

/// Failure seeds rely on repeatable calls.
#[test]
fn runs_without_threads_are_deterministic() {
    let (steps, writes) = plan(1, 800);
    let traces: Vec<Vec<Call>> = (0..2)
        .map(|_| {
            let sim = Sim::new(1);
            sim.start_trace();
            run(&sim, &settings::tiny(Durability::None), &steps, &writes, &Progress::default());
            sim.take_trace()
        })
        .collect();
    let differs = traces[0].iter().zip(&traces[1]).find(|(one, two)| one != two);
    assert_eq!(differs, None);
    assert_eq!(traces[0].len(), traces[1].len());
}

/// A closed store is durable in every mode.
#[test]
fn closing_makes_everything_durable() {
    for durability in [Durability::None, Durability::Interval(Duration::from_secs(3600))] {
        let sim = Sim::new(settings::seed());
        // No compaction, which would sync.
        let options = Options { memory: 1 << 20, ..settings::tiny(durability) };
        let mut target = Target::open(&sim, &options).unwrap();
        for number in 0..100_u32 {
            target.table(0).unwrap().put(&number.to_be_bytes(), &[7; 500]).unwrap();
        }
        drop(target);
        let left = sim.image(End::PowerCut(Loss::Everything), 0);
        let mut target = Target::open(&left, &options).unwrap();
        for number in 0..100_u32 {
            let found = target.get(0, &number.to_be_bytes()).unwrap();
            assert_eq!(found, Some(vec![7; 500]), "{durability:?}: {number}");
        }
    }
}
