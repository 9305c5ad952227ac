//! Stands in for Kubernetes in a build without it, and refuses it.

use crate::error::FleetError;
use crate::fleet_file::FleetFile;
use crate::host_request::HostRequest;
use crate::target::request;

/// Read, and not understood.
pub(crate) type PodGroup = toml::Value;
pub(crate) type ClusterPlace = Option<toml::Value>;

const LACKING: &str = "kubernetes: this kvmeter is built without it; take a released one (`make \
                       dist` builds it), or build it with `cargo build --release --features \
                       kubernetes`";

pub(crate) fn parse(_list: Option<&str>) -> Result<FleetFile, FleetError> {
    Err(request(LACKING.to_owned()))
}

pub(crate) fn scheduled(_file: &mut FleetFile) -> Result<Box<dyn HostRequest>, FleetError> {
    Err(request(LACKING.to_owned()))
}
