//! Every source of energy readings, on recorded machines and against stand-ins.

#[cfg(test)]
mod common;
#[cfg(test)]
mod plug;

use std::thread;
use std::time::Duration;

use common::Recorded;
use host::probe::energy::{
    CommandSettings, DcmiSettings, ModelSettings, Quantity, may_be_elsewhere,
};
use host::{
    Context, EnergySettings, PROBES, ProbeChoice, Root, RunWatch, WatchReadings, idle_power,
};
use model::{Origin, Reading, ReadingValue, Scope, Series, Unit};
use plug::Plug;

/// Longer than the shortest window of RAPL.
const WINDOW: Duration = Duration::from_millis(60);

fn context(energy: EnergySettings) -> Context {
    Context { energy, ..Context::default() }
}

/// What is read around a window in which `change` happens.
fn around(root: &Root, energy: EnergySettings, change: impl FnOnce()) -> WatchReadings {
    let watch = RunWatch::begin(root, &context(energy));
    change();
    thread::sleep(WINDOW);
    watch.end()
}

#[track_caller]
fn find<'a>(observed: &'a WatchReadings, signal: &str) -> &'a Reading {
    let reading = observed.readings.iter().find(|reading| reading.signal == signal);
    reading.unwrap_or_else(|| panic!("no reading of {signal}"))
}

#[track_caller]
fn value(observed: &WatchReadings, signal: &str) -> f64 {
    let reading = find(observed, signal);
    reading.value().unwrap_or_else(|| panic!("{reading:?}"))
}

#[track_caller]
fn why<'a>(observed: &'a WatchReadings, signal: &str) -> (&'a str, &'a str) {
    match &find(observed, signal).answer {
        ReadingValue::Unavailable { reason, remedy } => {
            (reason, remedy.as_deref().unwrap_or_default())
        }
        ReadingValue::Value(value) => panic!("{signal} has the value {value}"),
    }
}

#[track_caller]
fn series<'a>(observed: &'a WatchReadings, signal: &str) -> &'a Series {
    let series = observed.series.iter().find(|series| series.signal == signal);
    series.unwrap_or_else(|| panic!("no series of {signal}"))
}

#[track_caller]
fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-6 * expected.abs().max(1.0), "{found}, not {expected}");
}

const ZONES: &str = "/sys/class/powercap";

fn zone(machine: &Recorded, zone: &str, microjoules: u64) {
    machine.write(&format!("{ZONES}/{zone}/energy_uj"), &format!("{microjoules}\n"));
}

/// The energy sensors alone: the whole machine takes long to unpack.
fn xeon() -> Recorded {
    Recorded::named("xeon-4114.energy")
}

fn whole_xeon() -> Recorded {
    Recorded::named("xeon-4114").and("xeon-4114.energy")
}

#[test]
fn rapl_total_is_package_and_memory() {
    let xeon = whole_xeon();
    let observed = around(&xeon.root, EnergySettings::default(), || {
        zone(&xeon, "intel-rapl:0", 103_000_000);
        zone(&xeon, "intel-rapl-mmio:0", 103_000_000);
        zone(&xeon, "intel-rapl:1", 202_000_000);
        // 614 of these 1,000,614 microjoules lie before the wrap.
        zone(&xeon, "intel-rapl:0:0", 1_000_000);
        zone(&xeon, "intel-rapl:1:0", 5_500_000);
    });
    near(value(&observed, "energy.package"), 5.0);
    near(value(&observed, "energy.package.0"), 3.0);
    near(value(&observed, "energy.package.1"), 2.0);
    near(value(&observed, "energy.dram"), 1.500613);
    near(value(&observed, "energy.dram.0"), 1.000613);
    near(value(&observed, "energy.total"), 6.500613);
    let total = find(&observed, "energy.total");
    assert_eq!((total.unit, total.scope), (Unit::Joules, Scope::PackageAndMemory));
    assert!(total.source.contains("/sys/class/powercap/intel-rapl:1:0/energy_uj"), "{total:?}");
    assert!(!total.source.contains("mmio"), "{total:?}");
    assert_eq!(find(&observed, "energy.dram").scope, Scope::Memory);
    assert!(total.window_s >= WINDOW.as_secs_f64() && total.window_s < 30.0);
    for absent in ["energy.core", "energy.psys"] {
        assert!(why(&observed, absent).0.contains("domain"), "{absent}");
    }
    // The mean of the series over its time is the energy of the window.
    let power = series(&observed, "power.package.0");
    assert_eq!((power.unit, power.scope), (Unit::Watts, Scope::Package));
    assert!(!power.values.is_empty() && power.values.iter().any(|watts| *watts > 0.0));
}

#[test]
fn memory_mapped_counters_are_read_where_there_are_no_others() {
    let xeon = xeon();
    for closed_plug in ["intel-rapl:0:0", "intel-rapl:0", "intel-rapl:1:0", "intel-rapl:1"] {
        std::fs::remove_dir_all(xeon.path(&format!("{ZONES}/{closed_plug}"))).unwrap();
    }
    let observed = around(&xeon.root, EnergySettings::default(), || {
        zone(&xeon, "intel-rapl-mmio:0", 101_000_000);
    });
    near(value(&observed, "energy.package"), 1.0);
    assert!(find(&observed, "energy.package").source.contains("intel-rapl-mmio:0"));
}

#[test]
fn rapl_of_amd_has_no_memory_and_no_sum_of_cores() {
    let epyc = Recorded::named("epyc").and("epyc.energy");
    let observed = around(&epyc.root, EnergySettings::default(), || {
        zone(&epyc, "intel-rapl:0", 1_389_013);
        zone(&epyc, "intel-rapl:0:0", 700_900_000);
    });
    near(value(&observed, "energy.package"), 2.0);
    assert!(why(&observed, "energy.dram").0.contains("no DRAM domain"));
    assert!(why(&observed, "energy.core").0.contains("a single one"));
    // The total says that it is the package's alone.
    near(value(&observed, "energy.total"), 2.0);
    assert_eq!(find(&observed, "energy.total").scope, Scope::Package);
}

#[test]
fn a_counter_that_went_back_is_no_energy() {
    let xeon = xeon();
    let observed = around(&xeon.root, EnergySettings::default(), || {
        zone(&xeon, "intel-rapl:0", 90_000_000);
        zone(&xeon, "intel-rapl:1", 201_000_000);
    });
    for signal in ["energy.package", "energy.package.0", "energy.total"] {
        assert!(why(&observed, signal).0.contains("intel-rapl:0/energy_uj went back"), "{signal}");
    }
    near(value(&observed, "energy.package.1"), 1.0);
}

#[test]
fn a_counter_that_stands_still_is_no_energy() {
    let xeon = xeon();
    let observed = around(&xeon.root, EnergySettings::default(), || {
        zone(&xeon, "intel-rapl:0:0", 1_000_000);
    });
    near(value(&observed, "energy.dram.0"), 1.000613);
    // A sum that lacks one of its parts is not the sum.
    let still =
        ["energy.package", "energy.package.0", "energy.dram", "energy.dram.1", "energy.total"];
    for signal in still {
        assert!(why(&observed, signal).0.contains("stood still"), "{signal}");
    }
    let powers: Vec<&str> = observed.series.iter().map(|one| one.signal.as_str()).collect();
    assert!(powers.contains(&"power.dram.0") && !powers.contains(&"power.package.0"), "{powers:?}");
}

/// The memory of the other socket would be counted as if it drew nothing.
#[test]
fn a_domain_of_one_of_two_sockets_does_not_stand_for_both() {
    let xeon = whole_xeon();
    std::fs::remove_dir_all(xeon.path(&format!("{ZONES}/intel-rapl:1:0"))).unwrap();
    let observed = around(&xeon.root, EnergySettings::default(), || {
        zone(&xeon, "intel-rapl:0", 103_000_000);
        zone(&xeon, "intel-rapl:1", 202_000_000);
        zone(&xeon, "intel-rapl:0:0", 1_000_000);
    });
    let (reason, remedy) = why(&observed, "energy.dram");
    assert!(reason.contains("package 0 only, not of 1"), "{reason}");
    assert!(remedy.contains("meter"), "{remedy}");
    near(value(&observed, "energy.dram.0"), 1.000613);
    // The total is of the packages alone, and says so.
    near(value(&observed, "energy.total"), 5.0);
    let total = find(&observed, "energy.total");
    assert_eq!(total.scope, Scope::Package);
    assert!(!total.source.contains("intel-rapl:0:0"), "{total:?}");

    // A socket without any counter: the kernel tells that it is there.
    std::fs::remove_dir_all(xeon.path(&format!("{ZONES}/intel-rapl:1"))).unwrap();
    let observed = around(&xeon.root, EnergySettings::default(), || {
        zone(&xeon, "intel-rapl:0", 104_000_000);
    });
    for signal in ["energy.package", "energy.total"] {
        assert!(why(&observed, signal).0.contains("not of 1"), "{signal}");
    }
    near(value(&observed, "energy.package.0"), 1.0);
}

#[test]
fn a_sensor_that_disappears_is_reported() {
    let xeon = xeon();
    let observed = around(&xeon.root, EnergySettings::default(), || {
        xeon.remove("/sys/class/powercap/intel-rapl:1:0/energy_uj");
        xeon.remove("/sys/class/hwmon/hwmon3/power1_average");
    });
    assert!(why(&observed, "energy.dram").0.contains("intel-rapl:1:0/energy_uj does not exist"));
    assert!(why(&observed, "energy.total").0.contains("does not exist"));
    assert!(why(&observed, "power.hwmon").0.contains("power1_average does not exist"));
    assert!(why(&observed, "energy.package").0.contains("stood still"));
    near(value(&observed, "power.hwmon.ina226.vdd_12v"), 12.5);
}

#[test]
fn a_window_too_short_for_rapl_is_no_number() {
    let xeon = xeon();
    let watch = RunWatch::begin(&xeon.root, &Context::default());
    let observed = watch.end();
    let window = find(&observed, "energy.package").window_s;
    // A machine that is busy elsewhere may take its time between the two calls.
    if window < 0.05 {
        assert!(why(&observed, "energy.package").0.contains("too short"));
    }
}

#[test]
fn hwmon_sensors_are_never_added() {
    let xeon = xeon();
    let observed = around(&xeon.root, EnergySettings::default(), || ());
    let power = find(&observed, "power.hwmon");
    assert_eq!(
        (power.value(), power.unit, power.scope),
        (Some(182.0), Unit::Watts, Scope::Component)
    );
    assert!(power.source.contains("power_meter"), "{power:?}");
    near(value(&observed, "energy.hwmon"), 182.0 * series_span(&observed, "energy.hwmon"));
    near(value(&observed, "power.hwmon.ina226.vdd_12v"), 12.5);
    // Without a meter of the platform, the user has to choose.
    xeon.write("/sys/class/hwmon/hwmon3/name", "ina226");
    let observed = around(&xeon.root, EnergySettings::default(), || ());
    let (reason, remedy) = why(&observed, "power.hwmon");
    assert!(reason.contains("several") && remedy.contains("ina226.vdd_12v"), "{reason}; {remedy}");
    let mut chosen = EnergySettings::default();
    assert_eq!(chosen.set("hwmon=ina226.vdd_12v"), Ok(true));
    let observed = around(&xeon.root, chosen, || ());
    near(value(&observed, "power.hwmon"), 12.5);
    let wrong = EnergySettings { hwmon: Some("ina226.none".into()), ..EnergySettings::default() };
    let observed = around(&xeon.root, wrong, || ());
    assert!(why(&observed, "energy.hwmon").0.contains("no sensor ina226.none"));
}

/// The time between the two looks at a sampled probe: within a few microseconds its window.
#[track_caller]
fn series_span(observed: &WatchReadings, energy: &str) -> f64 {
    let power = energy.replace("energy.", "power.");
    value(observed, energy) / value(observed, &power)
}

/// A chip of the driver amdgpu.
fn amd_gpu(machine: &Recorded, number: u32, file: &str, microwatts: u64) {
    let chip = format!("/sys/class/hwmon/hwmon{number}");
    machine.write(&format!("{chip}/name"), "amdgpu\n");
    machine.write(&format!("{chip}/{file}"), &format!("{microwatts}\n"));
    let device = machine.path(&format!("{chip}/device"));
    std::os::unix::fs::symlink(format!("../../../0000:0{number}:00.0"), device).expect("a link");
}

#[test]
fn gpus_of_amd_are_added_and_are_no_sensor_of_the_board() {
    let xeon = xeon();
    amd_gpu(&xeon, 5, "power1_average", 90_000_000);
    xeon.write("/sys/class/hwmon/hwmon5/power1_input", "70000000\n");
    let observed = around(&xeon.root, EnergySettings::default(), || ());
    let power = find(&observed, "power.amdgpu");
    // The average is taken where the present power is there, too.
    assert_eq!((power.value(), power.scope), (Some(90.0), Scope::Accelerator));
    assert!(power.source.contains("hwmon5/power1_average of 0000:05:00.0"), "{power:?}");
    near(value(&observed, "energy.amdgpu"), 90.0 * series_span(&observed, "energy.amdgpu"));
    assert!(observed.readings.iter().all(|one| one.signal != "power.amdgpu.0"));
    // hwmon has the board's meter and not the GPU.
    near(value(&observed, "power.hwmon"), 182.0);
    assert!(observed.readings.iter().all(|one| !one.signal.starts_with("power.hwmon.amdgpu")));

    amd_gpu(&xeon, 6, "power1_input", 40_000_000);
    let observed = around(&xeon.root, EnergySettings::default(), || ());
    near(value(&observed, "power.amdgpu"), 130.0);
    near(value(&observed, "power.amdgpu.0"), 90.0);
    near(value(&observed, "power.amdgpu.1"), 40.0);
    // Without one of them there is no sum.
    xeon.remove("/sys/class/hwmon/hwmon6/power1_input");
    let observed = around(&xeon.root, EnergySettings::default(), || ());
    assert!(why(&observed, "power.amdgpu").0.contains("hwmon6/power1_average does not exist"));
}

#[test]
fn a_gpu_inside_the_processor_is_left_to_rapl() {
    let machine = Recorded::empty();
    let observed = around(&machine.root, EnergySettings::default(), || ());
    assert!(why(&observed, "energy.amdgpu").0.contains("no chip under /sys/class/hwmon"));
    amd_gpu(&machine, 1, "power1_average", 15_000_000);
    machine.write("/sys/class/hwmon/hwmon1/in1_label", "vddnb\n");
    let observed = around(&machine.root, EnergySettings::default(), || ());
    let (reason, remedy) = why(&observed, "energy.amdgpu");
    assert!(reason.contains("includes the CPU's cores") && remedy.contains("energy.package"));
    // A card beside it is read alone.
    amd_gpu(&machine, 2, "power1_average", 100_000_000);
    let observed = around(&machine.root, EnergySettings::default(), || ());
    near(value(&observed, "power.amdgpu"), 100.0);
    assert!(why(&observed, "power.hwmon").0.contains("no chip under"));
}

#[test]
fn a_counter_of_hwmon_is_joules() {
    let arm = Recorded::named("neoverse");
    arm.write("/sys/class/hwmon/hwmon9/name", "board");
    arm.write("/sys/class/hwmon/hwmon9/energy1_input", "5000000");
    let settings = EnergySettings { hwmon: Some("board.energy1".into()), ..Default::default() };
    let observed = around(&arm.root, settings, || {
        arm.write("/sys/class/hwmon/hwmon9/energy1_input", "9000000");
    });
    near(value(&observed, "energy.hwmon"), 4.0);
    near(value(&observed, "power.hwmon"), 4.0 / series_span(&observed, "energy.hwmon"));
    assert!(value(&observed, "power.hwmon") > 0.1);
    near(value(&observed, "power.hwmon.apm_xgene.cpu_power"), 35.0);
}

#[test]
fn a_battery_counts_only_while_it_feeds_the_machine() {
    let machine = Recorded::empty();
    let file = |name: &str, text: &str| {
        machine.write(&format!("/sys/class/power_supply/BAT0/{name}"), text);
    };
    file("type", "Battery");
    file("status", "Discharging");
    file("current_now", "-1500000");
    file("voltage_now", "12000000");
    machine.write("/sys/class/power_supply/AC/type", "Mains");
    let observed = around(&machine.root, EnergySettings::default(), || ());
    near(value(&observed, "power.battery"), 18.0);
    assert!(find(&observed, "power.battery").source.ends_with("BAT0"));
    let observed = around(&machine.root, EnergySettings::default(), || file("status", "Charging"));
    assert!(why(&observed, "energy.battery").0.contains("mains"));
    file("power_now", "21000000");
    file("status", "Discharging");
    near(value(&around(&machine.root, EnergySettings::default(), || ()), "power.battery"), 21.0);
}

#[test]
fn modelled_power_has_modelled_origin() {
    let vm = Recorded::named("vm");
    let model = ModelSettings { idle_w: 40.0, full_w: 140.0 };
    let settings = EnergySettings { model: Some(model), ..Default::default() };
    let observed = around(&vm.root, settings, || {
        // Of 200 ticks, 50 busy.
        vm.change("/proc/stat", "cpu  10000 0 2000 85000", "cpu  10050 0 2000 85150");
    });
    let power = find(&observed, "power.model");
    assert_eq!((power.value(), power.origin), (Some(65.0), Origin::Modelled));
    let energy = find(&observed, "energy.model");
    near(energy.value().unwrap(), 65.0 * energy.window_s);
    assert!(energy.source.contains("40 W and 140 W"), "{energy:?}");
    assert_eq!(series(&observed, "power.model").origin, Origin::Modelled);
    let measured = |reading: &&Reading| !reading.signal.ends_with(".model");
    assert!(observed.readings.iter().filter(measured).all(|r| r.origin == Origin::Measured));
    // A tick has not passed: no share, no power.
    let settings = EnergySettings { model: Some(model), ..Default::default() };
    let observed = around(&vm.root, settings, || ());
    assert!(why(&observed, "power.model").0.contains("shorter than a tick"));
}

fn shell(script: &str) -> Vec<String> {
    ["sh", "-c", script].map(str::to_owned).to_vec()
}

fn command(script: &str, answers: Quantity) -> EnergySettings {
    let command = CommandSettings { run: shell(script), answers, limit_s: 1.0 };
    EnergySettings { command: Some(command), ..Default::default() }
}

#[test]
fn any_program_can_be_the_sensor() {
    let machine = Recorded::empty();
    let observed = around(&machine.root, command("echo 75.5", Quantity::Watts), || ());
    near(value(&observed, "power.command"), 75.5);
    assert!(value(&observed, "energy.command") > 75.5 * 0.05);
    assert_eq!(find(&observed, "energy.command").scope, Scope::External);
    assert!(find(&observed, "power.command").source.contains("echo 75.5"));
    machine.write("/joules", "1000");
    let read = format!("cat {}", machine.path("/joules").display());
    let observed = around(&machine.root, command(&read, Quantity::Joules), || {
        machine.write("/joules", "1012.5");
    });
    near(value(&observed, "energy.command"), 12.5);
    let observed = around(&machine.root, command(&read, Quantity::Joules), || {
        machine.write("/joules", "3");
    });
    assert!(why(&observed, "energy.command").0.contains("went back"));
}

/// No machine that runs draws nothing, whatever the source is that says so.
#[test]
fn a_source_that_shows_nothing_all_the_time_is_none() {
    let machine = Recorded::empty();
    let plug = Plug::answering("200 OK", r#"{"apower":0.0}"#);
    let board = Recorded::empty();
    board.write("/sys/class/hwmon/hwmon9/name", "board");
    board.write("/sys/class/hwmon/hwmon9/power1_input", "0");
    machine.write("/joules", "1000");
    let joules = format!("cat {}", machine.path("/joules").display());
    let none = EnergySettings::default;
    for (root, settings, name, words) in [
        (&machine.root, plug.settings(), "wall", "/apower showed 0 W for all of"),
        (&machine.root, command("echo 0", Quantity::Watts), "command", "showed 0 W"),
        (&machine.root, command(&joules, Quantity::Joules), "command", "stood still"),
        (&board.root, none(), "hwmon", "power1_input (board.power1) showed 0 W"),
    ] {
        let observed = around(root, settings.clone(), || ());
        for signal in [format!("power.{name}"), format!("energy.{name}")] {
            let (reason, remedy) = why(&observed, &signal);
            assert!(reason.contains(words) && reason.contains("no running machine"), "{reason}");
            assert!(remedy.contains("another sensor"), "{remedy}");
        }
        let prefix = format!("power.{name}");
        assert!(observed.series.iter().all(|one| !one.signal.starts_with(&prefix)), "{observed:?}");
        // That is found out before the idle machine is watched, and nothing is waited for.
        let hour = Duration::from_secs(3600);
        let idle = idle_power(root, &context(settings), hour, || panic!("it waits"));
        assert!(idle.readings.iter().all(|reading| reading.value().is_none()), "{idle:?}");
    }
    // A part of the time without a load is no fault of the source.
    machine.write("/watts", "0");
    let watts = format!("cat {}", machine.path("/watts").display());
    let observed = around(&machine.root, command(&watts, Quantity::Watts), || {
        machine.write("/watts", "8");
    });
    assert!(value(&observed, "power.command") > 0.0);
}

#[test]
fn a_counter_that_stands_still_is_not_waited_for() {
    let xeon = xeon();
    std::fs::remove_dir_all(xeon.path("/sys/class/hwmon")).unwrap();
    let hour = Duration::from_secs(3600);
    let idle = idle_power(&xeon.root, &Context::default(), hour, || panic!("it waits"));
    let package = idle.readings.iter().find(|r| r.signal == "power.idle.package").unwrap();
    let ReadingValue::Unavailable { reason, .. } = &package.answer else { panic!("{package:?}") };
    assert!(reason.contains("stood still"), "{reason}");
}

#[test]
fn a_program_that_fails_is_no_sensor() {
    let machine = Recorded::empty();
    for (script, expected) in [
        ("echo 75 W", "which is not a power"),
        ("echo nan", "which is not a power"),
        ("echo -3", "which is not a power"),
        ("echo broken >&2; exit 4", "said: broken"),
        ("sleep 30", "not end within 1s"),
    ] {
        let observed = around(&machine.root, command(script, Quantity::Watts), || ());
        assert!(why(&observed, "power.command").0.contains(expected), "{script}: {observed:?}");
    }
}

#[test]
fn reads_the_management_controller_by_ipmitool() {
    let machine = Recorded::empty();
    let printed =
        "'\n  Instantaneous power reading:    216 Watts\n  Power reading state is:   activated\n'";
    let dcmi = |script: &str| EnergySettings {
        dcmi: Some(DcmiSettings { run: shell(script) }),
        ..EnergySettings::default()
    };
    let observed = around(&machine.root, dcmi(&format!("printf {printed}")), || ());
    let power = find(&observed, "power.dcmi");
    assert_eq!((power.value(), power.scope), (Some(216.0), Scope::Node));
    let observed = around(&machine.root, dcmi("echo Could not open device >&2; exit 1"), || ());
    assert!(why(&observed, "power.dcmi").0.contains("Could not open device"));
    let observed = around(&machine.root, EnergySettings::default(), || ());
    assert!(why(&observed, "energy.dcmi").0.contains("/dev/ipmi0"));
}

#[test]
fn reads_a_smart_plug_over_http() {
    let machine = Recorded::empty();
    let plug = Plug::answering("200 OK", r#"{"id":0,"apower":61.5}"#);
    let observed = around(&machine.root, plug.settings(), || ());
    let power = find(&observed, "power.wall");
    near(power.value().unwrap(), 61.5);
    assert_eq!(power.scope, Scope::Wall);
    assert!(power.source.ends_with("/status at /apower"), "{power:?}");
    assert!(value(&observed, "energy.wall") > 61.5 * 0.05);
    assert!(value(&observed, "probe.plug.cost") > 0.0);
}

#[test]
fn a_bad_answer_of_a_plug_is_reported() {
    let machine = Recorded::empty();
    for (status, body, expected) in [
        ("200 OK", r#"{"power":61.5}"#, "no watts at `/apower`"),
        ("200 OK", "<html>", "no watts"),
        ("401 Unauthorized", "", "401"),
        ("", "", "did not answer"),
    ] {
        let plug = Plug::answering(status, body);
        let observed = around(&machine.root, plug.settings(), || ());
        assert!(why(&observed, "energy.wall").0.contains(expected), "{body}: {observed:?}");
    }
    let closed_plug = Plug::answering("200 OK", r#"{"apower":1}"#);
    let settings = closed_plug.settings();
    let observed = around(&machine.root, settings, || drop(closed_plug));
    assert!(why(&observed, "energy.wall").0.contains("did not answer"), "{observed:?}");
}

#[test]
fn samples_come_with_their_time_and_cost() {
    let xeon = xeon();
    let often = Context { every: Some(Duration::from_millis(20)), ..Context::default() };
    let watch = RunWatch::prepare(&xeon.root, &often).begin();
    thread::sleep(Duration::from_millis(300));
    xeon.write("/sys/class/hwmon/hwmon3/power1_average", "282000000");
    thread::sleep(Duration::from_millis(300));
    let observed = watch.end();
    let power = series(&observed, "power.hwmon.power_meter.power1");
    assert!(power.values.len() >= 4 && power.values.len() == power.at_s.len(), "{power:?}");
    assert!(power.at_s.is_sorted() && power.at_s[0] <= 0.0, "{power:?}");
    assert_eq!((power.values[0], *power.values.last().unwrap()), (182.0, 282.0));
    let mean = value(&observed, "power.hwmon");
    assert!(mean > 182.0 && mean < 282.0, "{mean}");
    let cost = find(&observed, "probe.sampler.cost");
    assert!(cost.value().unwrap() > 0.0 && cost.scope == Scope::Harness, "{cost:?}");
}

#[test]
fn idle_power_uses_the_energy_probes_of_a_run() {
    let xeon = whole_xeon();
    let mut stop_calls = 0;
    let idle = idle_power(&xeon.root, &Context::default(), Duration::from_secs(3), || {
        stop_calls += 1;
        if stop_calls == 2 {
            zone(&xeon, "intel-rapl:0", 101_000_000);
            zone(&xeon, "intel-rapl:1", 201_000_000);
            xeon.change("/proc/stat", "cpu  ", "cpu  1");
        }
        stop_calls == 3
    });
    let watts = idle.readings.iter().find(|r| r.signal == "power.idle.package").unwrap();
    assert_eq!((watts.unit, watts.scope), (Unit::Watts, Scope::Package));
    near(watts.value().unwrap(), 2.0 / watts.window_s);
    assert!(watts.window_s < 2.5, "it was told to stop");
    let busy = idle.readings.iter().find(|r| r.signal == "idle.machine.busy").unwrap();
    assert!(busy.value().unwrap() > 0.9, "{busy:?}");
    assert!(idle.readings.iter().any(|r| r.signal == "power.idle.psys" && r.value().is_none()));
}

#[test]
fn a_machine_without_a_sensor_is_not_waited_for() {
    let vm = Recorded::named("vm");
    let hour = Duration::from_secs(3600);
    let idle = idle_power(&vm.root, &Context::default(), hour, || panic!("it waits"));
    assert!(idle.readings.iter().all(|reading| reading.value().is_none()), "{idle:?}");
    let model = ModelSettings { idle_w: 40.0, full_w: 140.0 };
    let modelled = context(EnergySettings { model: Some(model), ..Default::default() });
    let idle = idle_power(&vm.root, &modelled, hour, || panic!("it waits"));
    let watts = idle.readings.iter().find(|r| r.signal == "power.idle.model").unwrap();
    assert_eq!((watts.value(), watts.origin), (Some(40.0), Origin::Modelled));
}

/// A level is integrated over the window of the run, which is shorter than the probe's own.
#[test]
fn energy_is_of_exactly_the_window() {
    let xeon = xeon();
    let observed = around(&xeon.root, EnergySettings::default(), || ());
    let (energy, power) = (find(&observed, "energy.hwmon"), find(&observed, "power.hwmon"));
    near(energy.value().unwrap(), power.value().unwrap() * energy.window_s);
    let innermost = find(&observed, "cpu.user").window_s;
    assert!(energy.window_s <= innermost, "{} {innermost}", energy.window_s);
}

#[test]
fn reads_only_chosen_sources() {
    let xeon = xeon();
    let mut choice = ProbeChoice::Auto;
    choice.take("hwmon").unwrap();
    let watch = RunWatch::begin(&xeon.root, &Context { choice, ..Context::default() });
    thread::sleep(WINDOW);
    let observed = watch.end();
    assert!(value(&observed, "power.hwmon") > 0.0);
    assert!(why(&observed, "energy.package").1.contains("--probes rapl"));
    let model = ModelSettings { idle_w: 140.0, full_w: 40.0 };
    let broken = EnergySettings { model: Some(model), ..Default::default() };
    let observed = around(&xeon.root, broken, || ());
    assert!(why(&observed, "energy.package").0.contains("model.full_w"));
}

#[test]
fn only_sources_outside_of_the_machine_may_speak_of_another_one() {
    let energy = PROBES.iter().flat_map(|spec| spec.signals).map(|signal| signal.name);
    let elsewhere: Vec<&str> =
        energy.filter(|name| name.starts_with("energy.") && may_be_elsewhere(name)).collect();
    let expected = [
        "energy.meter",
        "energy.wall",
        "energy.snmp",
        "energy.command",
        "energy.dcmi",
        "energy.redfish",
    ];
    assert_eq!(elsewhere, expected);
}
