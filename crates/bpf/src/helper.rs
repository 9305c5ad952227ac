//! Numbers of the kernel's helper functions, `include/uapi/linux/bpf.h`.

pub const MAP_LOOKUP_ELEM: i32 = 1;
pub const MAP_UPDATE_ELEM: i32 = 2;
pub const MAP_DELETE_ELEM: i32 = 3;
pub const KTIME_GET_NS: i32 = 5;
pub const GET_SMP_PROCESSOR_ID: i32 = 8;
pub const GET_CURRENT_PID_TGID: i32 = 14;
pub const PROBE_READ_USER: i32 = 112;
pub const GET_NS_CURRENT_PID_TGID: i32 = 120;
pub const RINGBUF_OUTPUT: i32 = 130;
