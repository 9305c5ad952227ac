//! The shim (`shim/shim.h`).
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_uint};

/// `struct rte_mbuf`, which only DPDK looks into.
#[repr(C)]
pub struct Mbuf {
    _opaque: [u8; 0],
}

/// `struct rte_mempool`.
#[repr(C)]
pub struct Mempool {
    _opaque: [u8; 0],
}

/// `struct kvm_facts`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct RawFacts {
    pub mac: [u8; 6],
    pub mtu: u16,
    pub receive_descriptors: u16,
    pub send_descriptors: u16,
}

/// `struct kvm_counts`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct RawCounts {
    pub received: u64,
    pub sent: u64,
    pub missed: u64,
    pub receive_errors: u64,
    pub send_errors: u64,
    pub no_frames: u64,
}

unsafe extern "C" {
    pub fn kvm_eal_init(argc: c_int, argv: *mut *mut c_char) -> c_int;
    pub fn kvm_errno() -> c_int;
    pub fn kvm_error_text(number: c_int) -> *const c_char;
    pub fn kvm_thread_register() -> c_int;
    pub fn kvm_thread_unregister();
    pub fn kvm_port_count() -> u16;
    pub fn kvm_port_name(index: u16, name: *mut c_char) -> c_int;
    pub fn kvm_port_find(name: *const c_char, port: *mut u16) -> c_int;
    pub fn kvm_ring_pair(entries: c_uint, ports: *mut u16) -> c_int;
    pub fn kvm_pool(frames: c_uint, room: c_uint) -> *mut Mempool;
    pub fn kvm_port_limits(port: u16, least: *mut u16, most: *mut u16) -> c_int;
    pub fn kvm_port_start(port: u16, pool: *mut Mempool, mtu: u16, facts: *mut RawFacts) -> c_int;
    pub fn kvm_port_is_up(port: u16) -> c_int;
    pub fn kvm_port_close(port: u16);
    pub fn kvm_port_counts(port: u16, counts: *mut RawCounts) -> c_int;
    pub fn kvm_frame(pool: *mut Mempool, length: u16, data: *mut *mut u8) -> *mut Mbuf;
    pub fn kvm_free(frame: *mut Mbuf);
    pub fn kvm_receive(
        port: u16,
        frames: *mut *mut Mbuf,
        data: *mut *mut u8,
        length: *mut u32,
        most: u16,
    ) -> u16;
    pub fn kvm_send(port: u16, frames: *mut *mut Mbuf, count: u16) -> u16;
}
