//! What the page must hold, without a browser.

#[allow(dead_code)]
mod sample;

use report::html;

#[test]
fn user_text_is_escaped() {
    let nasty = "<script>alert(1)</script>\"'&<img src=x onerror=alert(2)>";
    let mut study = sample::study();
    let (execution, runs) = &mut study[0];
    execution.question = Some(nasty.to_owned());
    execution.study = nasty.to_owned();
    execution.spec = nasty.to_owned();
    execution.command.push(nasty.to_owned());
    execution.machine.id = nasty.to_owned();
    for fact in &mut execution.machine.facts {
        fact.name = format!("{nasty}.{nasty}");
        fact.value = Ok(nasty.to_owned());
        fact.source = nasty.to_owned();
    }
    for run in runs.iter_mut() {
        run.label = nasty.to_owned();
        run.store_version = nasty.to_owned();
        run.warnings.push(nasty.to_owned());
        run.invalid_because.push(nasty.to_owned());
        for value in run.settings.values_mut() {
            *value = nasty.to_owned();
        }
        run.stream.insert(nasty.to_owned(), nasty.to_owned());
        for reading in &mut run.readings {
            reading.source = nasty.to_owned();
        }
    }
    let page = html::page(&study);
    assert!(page.contains("&lt;script&gt;alert(1)"));
    // The page's own script is the only one, and no image was made.
    assert_eq!(page.matches("<script").count(), 1);
    assert!(!page.contains("<img"));
    // An identifier that a link or a file name is made of holds nothing but plain characters.
    for id in page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'), "{id}");
    }
}

#[test]
fn a_profile_is_written_and_drawn() {
    let study = sample::profiled();
    let page = html::page(&study);
    assert_eq!(page.matches("class=\"flame\"").count(), 2);
    assert!(page.contains("&lt;script&gt;: 100.00 %") && !page.contains("<title><script>"));
    // A histogram of each quantity, at either width, with its values.
    for (title, tip) in [
        ("Waits for a CPU", "memcached, server: 68.0 % from 8.192 µs to 16.384 µs"),
        ("Block device: latency", "&lt;vda&gt;, reads: 1.00 % from"),
        ("Block device: size", "&lt;vda&gt;, reads: 100 % from 16.0 KiB to 32.0 KiB"),
    ] {
        assert!(page.contains(&format!("<h3>{title}</h3>")), "{title}");
        assert!(page.contains(tip), "{tip}");
    }
    let slots = "memcached, server: backend bound 44.0 % (memory bound 36.0 %, core bound 8.00 %)";
    assert!(page.contains("<h3>Where the pipeline&#39;s slots go</h3>") && page.contains(slots));
    assert!(!page.contains("<h3>Softirqs</h3>") && !page.contains("<vda>"));
    let runs: Vec<_> =
        study.iter().flat_map(|(e, runs)| runs.iter().map(move |run| (e, run))).collect();
    let style = report::terminal::Style { width: 1000, ..Default::default() };
    for text in [page, report::terminal::runs(&runs, &style), report::markdown::runs(&runs)] {
        for words in [
            "It used 0.40 CPUs (400 samples): 50 % in its own code and libraries, 50 % inside the \
             kernel. The kernel works for: sendmsg 50 %.",
            "It lacked CPUs: 50 % of the time in which its threads could run",
            "no other figure includes it",
            "Its threads waited 1000 times for a CPU, 70.1 ms in all: 14.0 µs at the median, 3.00 ms",
            "The whole machine: ",
            "100 reads, 10.0/s: half waited ",
            "half took 80.0 µs or more, 99 % at most 80.0 µs; 160 KiB/s in",
            "No figures of softirqs: this kernel has no tracepoint softirq_entry.",
            "Of its pipeline slots 31 % retire operations, 44 % wait for the back end (36 % for memory, 8.0 % \
             for the core), 17 % wait",
            "Slots were counted in a further pass, 10.0 s long",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }
}

#[test]
fn the_page_makes_no_network_requests() {
    let page = html::page(&sample::study());
    for needle in ["src=\"http", "href=\"http", "@import", "url(", "<link rel=\"stylesheet"] {
        assert!(!page.contains(needle), "{needle}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn every_link_has_a_unique_target() {
    let page = html::page(&sample::study());
    let ids: Vec<&str> =
        page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    for target in page.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(ids.contains(&target), "{target}");
    }
    let mut once = ids.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), ids.len());
}

#[test]
fn the_page_states_validity_and_method() {
    let page = html::page(&sample::study());
    for text in [
        "How fast does RocksDB serve YCSB on this machine?",
        // Reasons and warnings, whole.
        "11.3 % of the CPU time was stolen",
        "the store was saturated; lower <code>--rate</code>",
        "throughput fell by 45 % at 7 s",
        // What is missing, and why.
        "holds no intel-rapl zone",
        "run on the physical machine, as root",
        "unknown: no cpufreq here",
        // What is no measurement.
        "4.50×, modelled",
        // Which clock.
        "Closed loop: latency is service time",
        "Open loop at 40 kops/s (poisson arrivals)",
        "update, response, from due",
        "update, service, from sent",
        // Asked again with the same words.
        "store.rocksdb.cache=1GiB &amp; more&#39;",
        "[store.rocksdb]",
    ] {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn at_a_glance_begins_with_the_answer_in_a_sentence() {
    let glance = |runs: &[(model::Execution, Vec<model::Run>)]| {
        let page = html::page(runs);
        let (_, rest) = page.split_once("<h2>At a glance</h2><p class=\"sentence\">").unwrap();
        rest.split_once("</p>").unwrap().0.to_owned()
    };
    let study = sample::study();
    assert_eq!(
        glance(&study),
        "lmdb, closed has the highest throughput under all 3 workloads, 1.18× to 2.28× as much as \
         the next one, each in one run."
    );
    assert_eq!(
        glance(&study[1..]),
        "lmdb reaches 203.3 kops/s under ycsb-a and 684.0 kops/s under ycsb-c, the lowest and the \
         highest of 3 configurations."
    );
    let mut one = study[1..].to_vec();
    one[0].1.retain(|run| run.label == "lmdb ycsb-c");
    assert_eq!(
        glance(&one),
        "lmdb reaches 684.0 kops/s under ycsb-c, 99 % of each read within 13.6 µs."
    );
    one[0].1[0].invalid_because.push("the client was busy".to_owned());
    assert_eq!(glance(&one), "No run is valid: nothing can be concluded.");
    one[0].1.clear();
    assert_eq!(glance(&one), "No run is finished yet.");
    let sweep = glance(&sample::sweep());
    assert!(sweep.starts_with("The highest rate that was held is "), "{sweep}");
    assert!(sweep.contains("memcached, open 110k/s: read p99 "), "{sweep}");
    // A study's own question comes first.
    let factorial = glance(&sample::factorial());
    assert!(
        factorial.starts_with("What do SMT and the idle states do to the tail, and together? "),
        "{factorial}"
    );
    // The first that has an answer: what cannot be measured here is none.
    let mut study = sample::factorial();
    study[0].0.design.questions.reverse();
    let first = &study[0].0.design.questions[0];
    assert_eq!(first.metric.as_deref(), Some("residency.C6"));
    let reversed = glance(&study);
    assert!(!reversed.contains("Not measurable here"), "{reversed}");
}

#[test]
fn a_sweep_is_a_curve_with_limit_and_server_side() {
    let page = html::page(&sample::sweep());
    for text in [
        "href=\"#rates-section\"",
        "Latency against rate: etc",
        // One line a store, the points that do not count beside it and joined to nothing.
        "memcached, 100.0 kops/s of 100 kops/s: p99 = ",
        "redis, 91.54 kops/s of 120 kops/s, INVALID: p99 = ",
        // The limit is on the panel that it is about.
        ">p99&lt;1ms</text>",
        // The server's side.
        "server CPU-s/Mop</text>",
        "<td class=\"plain\">arrival (kernel)</td>",
        // The check that does not hold, with both numbers.
        "the server&#39;s p99, 450 µs, is above the client&#39;s p99, ",
        "13 of 14 runs",
    ] {
        assert!(page.contains(text), "{text}");
    }
    let figure = page.split_once("id=\"rates-etc\"").unwrap().1.split_once("</figure>").unwrap().0;
    let wide = figure.split_once("</svg>").unwrap().0;
    // Three percentiles and the server's CPU, two stores.
    assert_eq!(wide.matches("class=\"line c0\" d").count(), 4);
    assert_eq!(wide.matches("class=\"line c1\" d").count(), 4);
    assert_eq!(wide.matches("line cn dash").count(), 1);
    // Without a curve there is no such section.
    assert!(!html::page(&sample::study()).contains("rates-section"));
}

#[test]
fn many_executions_have_one_heading_and_a_folded_list() {
    let mut study = sample::study();
    let (template, runs) = study.remove(1);
    study.clear();
    for i in 0..40 {
        let mut execution = template.clone();
        execution.id = format!("bench-{i}");
        execution.command = ["kvmeter", "bench", &format!("lmdb:/d/{i}")].map(str::to_owned).into();
        if i == 7 {
            execution.finished_at = None;
        }
        study.push((execution, if i == 0 { runs.clone() } else { Vec::new() }));
    }
    let page = html::page(&study);
    assert_eq!(page.matches("<h1>").count(), 1);
    assert!(page.contains("<title>bench – kvmeter</title>"));
    assert!(page.contains("<h1>bench: LMDB 0.9.33</h1>"));
    let header = page.split_once("</h1>").unwrap().1.split_once("</header>").unwrap().0;
    let (before, list) = header.split_once("<details").unwrap();
    assert_eq!(before, "");
    assert!(list.contains("40 executions of bench") && list.contains(">1 not finished<"), "{list}");
    let list = list.split_once("</details>").unwrap().0;
    assert_eq!(list.matches("<li>").count(), 40);
    for i in 0..40 {
        assert!(list.contains(&format!("<code>kvmeter bench lmdb:/d/{i}</code>")), "{i}");
    }
    assert_eq!(list.matches("finished 2026-03-01 10:02 UTC").count(), 39);
    assert!(list.contains("not finished</b>: 0 of 4 runs are here"));
    // One execution needs no list.
    let page = html::page(&sample::study()[..1]);
    assert!(page.contains("<h1>How fast") && !page.contains("class=\"executions\""));
}

#[test]
fn names_in_a_figure_are_distinct() {
    let mut study = sample::study();
    let runs = &mut study[0].1;
    let template = runs[10].clone();
    runs.clear();
    for (i, (cache, arrivals)) in
        [("1GiB", "poisson"), ("2GiB", "poisson"), ("2GiB", "constant")].into_iter().enumerate()
    {
        let mut run = template.clone();
        run.id = format!("run {i}");
        let more = [
            ("store.a_very_long_option_of_a_block_cache_in_a_store", cache),
            ("workload.is", if i == 0 { "1M records" } else { "2M records of many words" }),
            ("zeal", cache),
        ];
        run.settings.extend(more.map(|(key, value)| (key.to_owned(), value.to_owned())));
        run.pacing = model::LoopKind::Open { rate_ops_s: 40_000.0, arrivals: arrivals.to_owned() };
        runs.push(run);
    }
    let page = html::page(&study);
    // Only as many settings as tell the series apart.
    let option = "a_very_long_option_of_a_block_cache_in_a_store";
    for (arrivals, cache) in [("poisson", "1GiB"), ("poisson", "2GiB"), ("constant", "2GiB")] {
        let name = format!("rocksdb, open 40k/s, {arrivals}, {option} {cache}");
        assert!(page.contains(&format!("ycsb-a on {name}: 39.98 kops/s")), "{name}");
    }
    assert!(!page.contains("zeal 1GiB") && !page.contains("is 1M records,"));
    // No name in a figure is cut.
    let mut names = 0;
    for class in ["label", "key"] {
        for text in page.split(&format!("<text class=\"{class}\"")).skip(1) {
            assert!(!text.split_once("</text>").unwrap().0.contains('…'), "{text:.200}");
            names += 1;
        }
    }
    assert!(names > 20, "{names}");
}

#[test]
fn an_invalid_repeat_is_in_no_median() {
    let page = html::page(&sample::study());
    // Of 301.2, 297.9 and the invalid 212.0.
    assert!(page.contains("ycsb-c on rocksdb, closed: 299.6 kops/s, median of 2 valid runs"));
    assert!(page.contains("ycsb-c on rocksdb, closed, run 3: 212.0 kops/s, INVALID"));
}

#[test]
fn an_empty_page_is_valid() {
    let mut study = sample::study();
    study.truncate(1);
    study[0].1.clear();
    let page = html::page(&study);
    assert!(page.contains("No runs are finished yet.") && page.ends_with("</html>\n"));
    assert!(html::page(&[]).contains("</html>"));
}

#[test]
fn a_study_page_answers_questions_without_nan() {
    let mut study = sample::factorial();
    let page = html::page(&study);
    for text in [
        "What does SMT cost in watts?",
        "Against SMT on, power is 4.8 % lower with SMT off",
        "Not measurable here",
        "no difference shown",
        "Run at the scale `small`",
        "published, text of 4.3",
        "this processor has no C1E",
        "the budget of 20 min left out 1 of 90 runs",
        "1 of 90 planned runs",
        "what a server needs is part of what its client waits for",
        "Holm",
    ] {
        assert!(page.contains(text), "{text}");
    }
    // Whatever is missing: no cell, one cell, one run, no valid run.
    for keep in [study[0].1.len(), 20, 1, 0] {
        study[0].1.truncate(keep);
        let mut uncounted = study.clone();
        for run in &mut uncounted[0].1 {
            run.invalid_because.push("none counts".to_owned());
        }
        assert_no_nan(&html::page(&study));
        assert_no_nan(&html::page(&uncounted));
    }
}

fn assert_no_nan(page: &str) {
    // The page's own script may name them.
    let body = page.split("<script>").next().expect("a page has a body");
    for word in ["NaN", ">inf", " inf ", "inf ×", "-inf"] {
        assert!(
            !body.contains(word),
            "{word}: {:?}",
            body.split(word).next().map(|b| &b[b.len().saturating_sub(120)..])
        );
    }
}

#[test]
fn figures_are_files_with_their_numbers() {
    let study = sample::factorial();
    let executions = study.iter().map(|(execution, _)| execution);
    let studies = report::study::studies(executions, &sample::pairs(&study));
    let files = studies[0].files();
    let ids: Vec<&str> = files.iter().map(|file| file.id.as_str()).collect();
    assert_eq!(ids, ["figure-graph-1", "figure-graph-2"], "the third has no data");
    for file in &files {
        assert!(file.svg.starts_with("<?xml") && file.svg.contains("<style>"), "{}", file.id);
        assert!(!file.svg.contains("var(") && !file.svg.contains("NaN"));
        let mut lines = file.csv.lines();
        let columns = lines.next().map_or(0, |head| head.split(',').count());
        assert_eq!(columns, 17);
    }
    // 18 cells and 2 published points; 3 x 3 cells and 2 published.
    let rows: Vec<usize> = files.iter().map(|file| file.csv.lines().count() - 1).collect();
    assert_eq!(rows, [20, 11]);
    let published = files[0].csv.lines().find(|line| line.starts_with("published")).expect("one");
    assert_eq!(published, "published,smt = on,none,10k,,71,,,,,,,,,,us,table 5.2");
}
