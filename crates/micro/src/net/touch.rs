//! Touches received data of a flow: which bytes are read, and when.

use std::collections::VecDeque;

use super::clock::now_ns;
use super::content::MessageContent;
use super::job::NetJob;
use super::outcome::EndOutcome;

/// Smallest and largest buffer of one receiving call.
const MIN_CHUNK: u64 = 64 << 10;
const MAX_CHUNK: u64 = 1 << 20;
/// Shorter datagrams hold too little of their number to tell a late one from one after a long gap.
const MIN_NUMBERED: u64 = 4;

/// Allocates memory and touches its pages: a first touch takes longer than later ones.
fn prefaulted(bytes: usize) -> Vec<u8> {
    let mut memory = vec![0; bytes];
    for page in memory.chunks_mut(4096) {
        std::hint::black_box(page)[0] = 1;
    }
    memory
}

/// Reads the byte at each multiple of the stride in the stream of a connection's messages, and
/// checks it. `bytes` are those of message `number` from `at` on.
pub fn touch(
    content: &MessageContent,
    job: &NetJob,
    number: u64,
    at: usize,
    bytes: &[u8],
    end: &mut EndOutcome,
) {
    match job.stride {
        0 => {}
        // Eight bytes are read as one word.
        1..=8 => {
            end.touched += bytes.len() as u64 / job.stride;
            end.corrupt += u64::from(!content.matches(number, at, bytes));
        }
        stride => {
            let from = number.wrapping_mul(job.size).wrapping_add(at as u64);
            let first = from.next_multiple_of(stride) - from;
            let mut right = true;
            let mut place = first as usize;
            while let Some(byte) = bytes.get(place) {
                right &= content.matches_byte(number, at + place, *byte);
                end.touched += 1;
                place += stride as usize;
            }
            end.corrupt += u64::from(!right);
        }
    }
}

/// One-way delays of the messages that hold a time stamp.
#[derive(Debug)]
pub struct Delays {
    every: u64,
    /// The stamp of the current message.
    stamp: Option<u64>,
    clocks_agree: bool,
}

impl Delays {
    /// `shared`: whether both ends read the same clock.
    pub fn new(job: &NetJob, shared: bool) -> Delays {
        Delays { every: job.stamp_every(), stamp: None, clocks_agree: shared }
    }

    pub fn begin(&mut self, bytes: &[u8]) {
        let mut stamp = [0; 8];
        stamp.copy_from_slice(&bytes[..8]);
        self.stamp = Some(u64::from_le_bytes(stamp));
    }

    /// The message is whole.
    pub fn complete(&mut self, now: u64, end: &mut EndOutcome) {
        let Some(stamp) = self.stamp.take() else { return };
        match now.checked_sub(stamp) {
            Some(delay) if self.clocks_agree => end.latency.record(delay),
            _ => self.clocks_agree = false,
        }
    }

    pub fn is_due(&self, number: u64) -> bool {
        self.clocks_agree && number.is_multiple_of(self.every)
    }

    /// Records the reason where there are no delays.
    pub fn explain(&self, content: &MessageContent, end: &mut EndOutcome) {
        if !self.clocks_agree {
            end.latency.0 = Err("the two ends read different clocks: a one-way delay needs both \
                                 on one machine"
                .to_owned());
        } else if !content.stamped() {
            end.latency.0 =
                Err("messages of less than 16 B have no room for a time stamp".to_owned());
        }
    }
}

/// A ring of the bytes of a stream that are not touched yet.
pub struct StreamTouch {
    ring: Vec<u8>,
    received: u64,
    touched: u64,
    content: MessageContent,
    delays: Delays,
    /// The message whose stamp or end is next.
    stamped: u64,
}

impl StreamTouch {
    pub fn new(content: MessageContent, job: &NetJob, delays: Delays) -> StreamTouch {
        let chunk = job.size.clamp(MIN_CHUNK, MAX_CHUNK);
        let ring = prefaulted((job.reuse + chunk) as usize);
        StreamTouch { ring, received: 0, touched: 0, content, delays, stamped: 0 }
    }

    pub fn received(&self) -> u64 {
        self.received
    }

    /// The buffer for the next bytes.
    pub fn space(&mut self) -> &mut [u8] {
        let length = self.ring.len() as u64;
        let from = self.received % length;
        let free = length - (self.received - self.touched);
        let to = length.min(from + free);
        &mut self.ring[from as usize..to as usize]
    }

    /// Takes `count` bytes that were received into the space.
    pub fn take(&mut self, count: usize, job: &NetJob, end: &mut EndOutcome) {
        self.received += count as u64;
        end.messages = self.received / job.size;
        if self.content.stamped() && self.delays.clocks_agree {
            self.stamps(job, end);
        }
        self.touch_up_to(self.received.saturating_sub(job.reuse), job, end);
    }

    /// Touches the rest at the end of the stream.
    pub fn finish(&mut self, job: &NetJob, end: &mut EndOutcome) {
        self.touch_up_to(self.received, job, end);
        self.delays.explain(&self.content, end);
    }

    fn stamps(&mut self, job: &NetJob, end: &mut EndOutcome) {
        let mut now = None;
        loop {
            let from = self.stamped * job.size;
            if self.delays.stamp.is_none() {
                if from + 16 > self.received {
                    return;
                }
                let bytes: [u8; 8] = std::array::from_fn(|at| {
                    self.ring[((from + 8 + at as u64) % self.ring.len() as u64) as usize]
                });
                self.delays.begin(&bytes);
            }
            if from + job.size > self.received {
                return;
            }
            let now = *now.get_or_insert_with(now_ns);
            self.delays.complete(now, end);
            self.stamped += self.delays.every;
        }
    }

    fn touch_up_to(&mut self, to: u64, job: &NetJob, end: &mut EndOutcome) {
        let length = self.ring.len() as u64;
        while self.touched < to {
            let (number, at) = (self.touched / job.size, self.touched % job.size);
            let place = self.touched % length;
            let count = (to - self.touched).min(job.size - at).min(length - place);
            let bytes = &self.ring[place as usize..(place + count) as usize];
            touch(&self.content, job, number, at as usize, bytes, end);
            self.touched += count;
        }
    }
}

/// Received datagrams that are not touched yet.
pub struct DatagramTouch {
    slots: Vec<u8>,
    /// Numbers and lengths of the datagrams in the slots, the oldest first.
    waiting: VecDeque<(u64, usize)>,
    arrived: u64,
    /// One more than the highest number so far.
    next: u64,
    content: MessageContent,
    delays: Delays,
}

impl DatagramTouch {
    pub fn new(content: MessageContent, job: &NetJob, delays: Delays) -> DatagramTouch {
        let datagrams = job.reuse.div_ceil(job.size);
        DatagramTouch {
            slots: prefaulted(((datagrams + 1) * job.size) as usize),
            waiting: VecDeque::with_capacity(datagrams as usize + 1),
            arrived: 0,
            next: 0,
            content,
            delays,
        }
    }

    pub fn arrived(&self) -> u64 {
        self.arrived
    }

    pub fn space(&mut self, job: &NetJob) -> &mut [u8] {
        let from = self.slot(self.arrived, job);
        &mut self.slots[from..from + job.size as usize]
    }

    fn slot(&self, arrival: u64, job: &NetJob) -> usize {
        (arrival * job.size) as usize % self.slots.len()
    }

    /// Takes a datagram of `count` bytes that was received into the space.
    pub fn take(&mut self, count: usize, job: &NetJob, end: &mut EndOutcome) {
        let from = self.slot(self.arrived, job);
        let bytes = &self.slots[from..from + count];
        let number = self.content.message_number(bytes, self.next);
        if number >= self.next || job.size < MIN_NUMBERED {
            self.next = number + 1;
        } else {
            end.late += 1;
        }
        if self.content.stamped() && count >= 16 && self.delays.is_due(number) {
            self.delays.begin(&bytes[8..16]);
            self.delays.complete(now_ns(), end);
        }
        if count as u64 != job.size {
            end.corrupt += 1;
        }
        end.messages += 1;
        self.arrived += 1;
        self.waiting.push_back((number, count));
        if self.waiting.len() as u64 > job.reuse.div_ceil(job.size) {
            self.touch_oldest(job, end);
        }
    }

    pub fn finish(&mut self, job: &NetJob, end: &mut EndOutcome) {
        while !self.waiting.is_empty() {
            self.touch_oldest(job, end);
        }
        self.delays.explain(&self.content, end);
    }

    fn touch_oldest(&mut self, job: &NetJob, end: &mut EndOutcome) {
        let arrival = self.arrived - self.waiting.len() as u64;
        let Some((number, count)) = self.waiting.pop_front() else { return };
        let from = self.slot(arrival, job);
        touch(&self.content, job, number, 0, &self.slots[from..from + count], end);
    }
}
