//! Runs one server for a coordinator on another machine, until it is signalled.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueHint};
use model::Address;
use server::launch::{
    LaunchError, LaunchRequest, Launched, Launcher, LocalLauncher, ServerSettings,
};

use crate::exit::{ExitOutcome, request};
use crate::hosts::ServerReport;
use crate::interrupt::stop_flag;
use crate::output::Output;

const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How long the server may take to end by itself.
const END_LIMIT: Duration = Duration::from_secs(10);
/// Larger settings are none.
const MAX_BYTES: u64 = 1 << 20;

#[derive(Debug, Args)]
pub struct ServerArgs {
    /// memcached, redis or valkey
    pub program: String,
    /// JSON file of its settings
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub settings: PathBuf,
}

pub fn run(args: &ServerArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    let text = safe_file::read_text(&args.settings, MAX_BYTES)?;
    let settings: ServerSettings = serde_json::from_str(&text)
        .map_err(|error| request(format!("{}: {error}", args.settings.display())))?;
    let program = server::launch::program(&args.program).map_err(of_launch)?;
    let stop = stop_flag()?;
    let launch = LaunchRequest { stop: Arc::clone(&stop), ..LaunchRequest::new(program, settings) };
    let server = LocalLauncher.start(&launch).map_err(of_launch)?;
    show.json_line(&report(&server)?)?;
    while !stop.load(Ordering::Relaxed) {
        server.still_running()?;
        thread::sleep(POLL_INTERVAL);
    }
    server.end(END_LIMIT)?;
    Ok(ExitOutcome::Done)
}

fn report(server: &Launched) -> anyhow::Result<ServerReport> {
    let port = server.addresses.iter().find_map(|address| match address {
        Address::Tcp { port, .. } => Some(*port),
        Address::Unix(_) => None,
    });
    Ok(ServerReport {
        port: port.context("the server has no port")?,
        pid: server.pid,
        version: server.version.clone(),
        build: server.build.clone(),
        binary: server.binary.clone(),
        arguments: server.arguments.clone(),
        environment: server.environment.clone(),
        cpus: server.cpus.clone(),
    })
}

fn of_launch(error: LaunchError) -> anyhow::Error {
    if error.is_request() { request(error.to_string()) } else { error.into() }
}
