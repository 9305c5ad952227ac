//! A long run, cut at each call of the file system: what is opened afterwards is what some number
//! of the writes, in their order, had left there, and at least those that the durability mode
//! promises.

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
    Traffic { seed, keys: KEYS, largest: 12_000 }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The write of this number.
    Write(usize),
    Sync,
    Flush,
    Settle,
    Reopen,
    Read,
    TakeSnapshot,
    CheckSnapshot,
}

/// What is done, and what is written by it.
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

/// How many writes have begun, are acknowledged, and are on the device for certain.
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
            said: acknowledged,
        }
    }
}

/// Between which numbers of writes a store may be found.
#[derive(Debug, Clone, Copy)]
struct Promise {
    durable: usize,
    acknowledged: usize,
    started: usize,
    /// Acknowledged before the end, whatever that may take.
    said: usize,
}

impl Promise {
    fn least(&self, end: End) -> usize {
        match end {
            End::Kill => self.acknowledged,
            End::PowerCut(_) => self.durable,
        }
    }

    /// What it is for the process that finds the disk.
    fn after(self, end: End) -> Promise {
        Promise { acknowledged: self.least(end), ..self }
    }
}

/// A disk as the next process finds it.
struct Remains {
    sim: Sim,
    /// For that process.
    promise: Promise,
    /// How it came to it.
    story: String,
}

/// Takes images at some calls of a disk.
struct Cuts {
    seed: u64,
    stride: u64,
    ends: Vec<End>,
    /// Each of them at each call, not one kind of power cut in turn.
    all: bool,
}

/// What was to be written, and what it comes to.
struct Course {
    writes: Vec<Write>,
    history: History,
    options: Options,
}

impl Cuts {
    /// Of a second crash, at some calls: over many first ones, at every one.
    fn some(stride: u64, random: &mut Random) -> Cuts {
        Cuts { seed: random.next() >> 1, stride, ends: all_ends(), all: false }
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

/// Watches a disk on which `progress` is made; `found` gets what each cut leaves.
fn cut_at_each_call(
    sim: &Sim,
    cuts: Cuts,
    story: String,
    progress: impl Fn() -> Promise + Send + 'static,
    mut found: impl FnMut(Remains) + Send + 'static,
) {
    let mut stores = None;
    sim.watch(move |call: &Call, state: &State| {
        let promise = progress();
        if let Some((number, before, then)) = stores.take()
            && call.number == number + 1
        {
            let torn = Remains {
                sim: state.torn_image(&before, cuts.seed),
                promise: Promise { acknowledged: then, ..promise },
                story: format!("{story}; killed amid its stores at {call}"),
            };
            found(torn);
        }
        if call.kind == Kind::Pause && cuts.hits(call.number + 1) {
            stores = Some((call.number, state.stores(), promise.acknowledged));
        }
        if cuts.hits(call.number) {
            for end in cuts.ends(call.number) {
                let sim = state.image(end, cuts.seed);
                // Other threads may have gone on meanwhile.
                let promise = Promise { started: progress().started, ..promise };
                found(Remains {
                    sim,
                    promise: promise.after(end),
                    story: format!("{story}; {end:?} at {call}"),
                });
            }
        }
    });
}

/// What was seen, so that a run that shows nothing fails.
#[derive(Debug, Default)]
struct Seen {
    remains: usize,
    /// Power cuts that took something acknowledged.
    lost: usize,
    second: usize,
}

/// Opens what is left and compares; then goes on there, and ends that too.
fn examine(remains: Remains, history: &History, course: &Course, deep: Option<u64>) -> Seen {
    let Remains { sim, promise, story } = remains;
    let options = &course.options;
    let mut seen = Seen { remains: 1, ..Seen::default() };
    let seconds: Arc<Mutex<Vec<Remains>>> = Arc::default();
    if let Some(seed) = deep {
        // The opening itself may be cut.
        let mut random = Random::of(seed, 5);
        let cuts = Cuts::some(25, &mut random);
        let seconds = Arc::clone(&seconds);
        let found = move |remains| seconds.lock().unwrap().push(remains);
        cut_at_each_call(&sim, cuts, format!("{story}; then opening"), move || promise, found);
    }
    let opened = Target::open(&sim, options);
    sim.unwatch();
    let mut target = opened.unwrap_or_else(|error| panic!("{story}: {error}"));
    for second in seconds.lock().unwrap().drain(..) {
        seen.second += examine(second, history, course, None).remains;
    }

    let mut random = Random::of(deep.unwrap_or(9), 6);
    let found = Model::read(&target.store, random.chance(1, 2))
        .unwrap_or_else(|error| panic!("{story}: {error}"));
    let may_be = promise.acknowledged..=promise.started;
    let count = history.find(&found, may_be.clone()).unwrap_or_else(|| {
        let elsewhere = history.find(&found, 0..=history.len());
        panic!("{story}: what is found is not of {may_be:?} writes, but of {elsewhere:?}");
    });
    seen.lost += usize::from(count < promise.said);
    target
        .check_some(&found, traffic(0), &mut random)
        .unwrap_or_else(|error| panic!("{story}: {error}"));
    target.store.scrub().unwrap_or_else(|error| panic!("{story}: scrub: {error}"));

    if let Some(seed) = deep {
        let promise =
            Promise { acknowledged: count, started: count, said: count, durable: promise.durable };
        let mut history = history.clone();
        history.cut(count);
        for second in go_on(&sim, target, found, &mut history, promise, (course, seed, &story)) {
            seen.second += examine(second, &history, course, None).remains;
        }
    }
    seen
}

/// Writes more where a crash was survived; what further cuts leave of it.
fn go_on(
    sim: &Sim,
    mut target: Target,
    mut model: Model,
    history: &mut History,
    promise: Promise,
    (course, seed, story): (&Course, u64, &str),
) -> Vec<Remains> {
    let mut random = Random::of(seed, 7);
    let progress = Arc::new(Progress::default());
    progress.started.store(promise.started, Ordering::SeqCst);
    progress.acknowledged.store(promise.acknowledged, Ordering::SeqCst);
    progress.durable.store(promise.durable, Ordering::SeqCst);
    let remains: Arc<Mutex<Vec<Remains>>> = Arc::default();
    let cuts = Cuts::some(31, &mut random);
    let (watched, kept) = (Arc::clone(&progress), Arc::clone(&remains));
    let story = format!("{story}; then writing");
    cut_at_each_call(
        sim,
        cuts,
        story.clone(),
        move || watched.promise(),
        move |remains| kept.lock().unwrap().push(remains),
    );
    let fails = |error: spill::Error| -> ! { panic!("{story}: {error}") };
    let traffic = traffic(seed ^ 0x5eed);
    // What takes the very place of what was lost must not bring back what was lost behind it.
    let likenesses = if random.chance(1, 2) { random.below(4) } else { 0 };
    let lost = course.writes.iter().skip(promise.acknowledged).take(likenesses);
    let writes = lost.map(Write::likeness).chain((0..24).map(|number| traffic.write(number)));
    for write in writes.take(24) {
        sim.pause();
        model.apply(&write);
        history.push(&model);
        progress.started.fetch_add(1, Ordering::SeqCst);
        target.write(&write).unwrap_or_else(|error| fails(error));
        progress.acknowledge(&course.options);
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
    remains.lock().unwrap().drain(..).collect()
}

/// Does all steps; everything on the way has to be right too.
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
                    // A snapshot is asked through tables that are there.
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
    remains: Receiver<Remains>,
    course: Course,
    seed: u64,
) -> std::thread::JoinHandle<Seen> {
    std::thread::spawn(move || {
        let mut seen = Seen::default();
        for (number, one) in remains.into_iter().enumerate() {
            let deep = Some(Random::of(seed, number as u64).next());
            let more = examine(one, &course.history, &course, deep);
            seen.remains += more.remains;
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
    // Once without a cut: how many calls there are, and that it does what it is there for.
    let sim = Sim::new(seed);
    sim.start_trace();
    run(&sim, &options, &steps, &writes, &Progress::default());
    let trace = sim.take_trace();
    must_do_everything(&trace);

    let stride = if settings::every() { 1 } else { (trace.len() as u64 / cuts).max(1) };
    let seen = run_and_cut(seed, &options, (&steps, &writes), stride, all_ends());
    println!("{} calls, {seen:?}", trace.len());
    assert!(seen.remains as u64 >= cuts && seen.second > seen.remains, "{seen:?}");
    assert_eq!(seen.lost == 0, durability == Durability::Sync, "{seen:?}");
}

fn run_and_cut(
    seed: u64,
    options: &Options,
    (steps, writes): (&[Step], &[Write]),
    stride: u64,
    ends: Vec<End>,
) -> Seen {
    let sim = Sim::new(seed);
    let progress = Arc::new(Progress::default());
    let (send, receive): (SyncSender<Remains>, _) = sync_channel(8);
    let course = Course {
        writes: writes.to_vec(),
        history: History::of(writes),
        options: Options { background: false, ..options.clone() },
    };
    let examiner = examiner(receive, course, seed);
    let watched = Arc::clone(&progress);
    cut_at_each_call(
        &sim,
        Cuts { seed, stride, ends, all: settings::every() },
        format!("SPILL_TEST_SEED={seed}, {:?}", options.durability),
        move || watched.promise(),
        // Its end is seen when it is joined.
        move |remains| drop(send.send(remains)),
    );
    run(&sim, options, steps, writes, &progress);
    sim.unwatch();
    examiner.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Segments are filled and collected, indexes made and replaced.
fn must_do_everything(trace: &[Call]) {
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

/// What was written an interval ago is on the device: the thread that syncs has seen to it, and without
/// threads the next write.
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

/// Merges and collections in threads of their own, with power cuts at any of their calls. What is
/// stored while an image is taken may be missing from it, as after a power cut; after a kill it
/// could not.
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
        assert!(seen.remains > 20 && seen.second > seen.remains, "{seen:?}");
        assert_eq!(seen.lost == 0, durability == Durability::Sync, "{seen:?}");
    }
}

/// What some ends leave of an opening.
fn left_of_an_opening(sim: &Sim, cuts: Cuts) -> Vec<(String, Sim)> {
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

/// The power goes while a store is opened whose maker was killed before all of it was durable.
#[test]
fn interrupted_creation_and_recovery_can_be_retried() {
    let seed = settings::seed();
    println!("SPILL_TEST_SEED={seed}");
    let mut openings = 0;
    let kills = Cuts { seed, stride: 1, ends: vec![End::Kill], all: true };
    for (number, (killed, sim)) in (0..).zip(left_of_an_opening(&Sim::new(seed), kills)) {
        let stride = if settings::every() { 1 } else { 9 };
        let cuts = Cuts { seed: seed ^ number, stride, ends: power_cuts(), all: true };
        for (cut, sim) in left_of_an_opening(&sim, cuts) {
            Target::open(&sim, &settings::tiny(Durability::None))
                .unwrap_or_else(|error| panic!("{killed}; then {cut}: {error}"));
            openings += 1;
        }
    }
    assert!(openings > 500, "{openings}");
}

/// The same calls come again, which the seed of a failure relies on.
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

/// In no mode is what a closed store holds left to chance.
#[test]
fn closing_makes_everything_durable() {
    for durability in [Durability::None, Durability::Interval(Duration::from_secs(3600))] {
        let sim = Sim::new(settings::seed());
        // Nothing is merged, which would sync.
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
