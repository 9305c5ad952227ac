//! A trace divided over client threads.

use std::mem;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::thread;
use std::time::Duration;

use model::random::below;

use super::chunk::{RequestChunk, TraceRequest};
use super::{ArrivalSpread, TraceError, TraceReader};
use crate::value::hash;

/// Requests that are handed over together.
const CHUNK: usize = 1024;

/// Chunks that wait for a consumer at most. They must last while a whole second is read.
const AHEAD: usize = 64;

impl TraceReader {
    /// Starts a thread that reads the trace and divides it over `consumers` by the hash of the key:
    /// requests of one key reach the same consumer, in the order of the trace.
    ///
    /// The thread is ahead of each consumer by at most 65,536 requests and waits for the one that
    /// is behind, hence all are to be read at the same pace. It ends with the trace, at an error,
    /// or when all feeds are dropped (where it waits for standard input, once that gives a line);
    /// requests of a dropped feed are skipped.
    ///
    /// # Errors
    /// A thread that cannot be started.
    pub fn feed(
        self,
        consumers: usize,
        spread: ArrivalSpread,
    ) -> Result<Vec<TraceFeed>, TraceError> {
        let file = self.file().clone();
        let (outlets, feeds): (Vec<FeedReceiver>, Vec<TraceFeed>) =
            (0..consumers).map(|_| connected(&file, self.header())).unzip();
        let failed = |source| TraceError::Thread { file, source: Arc::new(source) };
        thread::Builder::new()
            .name("trace".to_owned())
            .spawn(move || run(self, spread, outlets))
            .map_err(failed)?;
        Ok(feeds)
    }
}

enum FeedMessage {
    Chunk(RequestChunk),
    End,
    Failed(TraceError),
}

fn connected(file: &Arc<str>, header: Option<&Arc<str>>) -> (FeedReceiver, TraceFeed) {
    let (to, incoming) = sync_channel(AHEAD);
    let (used, back) = sync_channel(AHEAD + 2);
    let feed = TraceFeed {
        file: file.clone(),
        header: header.cloned(),
        incoming,
        used,
        chunk: RequestChunk::new(),
        next: 0,
        end: None,
    };
    (FeedReceiver { to, back, chunk: RequestChunk::new(), closed: false }, feed)
}

/// The reader thread's end of a feed.
struct FeedReceiver {
    to: SyncSender<FeedMessage>,
    /// Used chunks, to be filled again.
    back: Receiver<RequestChunk>,
    chunk: RequestChunk,
    closed: bool,
}

impl FeedReceiver {
    #[inline]
    fn push(&mut self, request: &TraceRequest<'_>) {
        if !self.closed {
            self.chunk.push_copy(request);
            if self.chunk.len() == CHUNK {
                self.flush();
            }
        }
    }

    fn flush(&mut self) {
        if !self.chunk.is_empty() && !self.closed {
            let mut empty = self.back.try_recv().unwrap_or_default();
            empty.clear();
            let full = mem::replace(&mut self.chunk, empty);
            self.send(FeedMessage::Chunk(full));
        }
    }

    /// Waits until there is room, or the feed is dropped.
    fn send(&mut self, message: FeedMessage) {
        self.closed |= self.to.send(message).is_err();
    }
}

fn run(mut trace: TraceReader, spread: ArrivalSpread, mut outlets: Vec<FeedReceiver>) {
    let mut second = RequestChunk::new();
    while !outlets.iter().all(|outlet| outlet.closed) {
        match trace.next_second(spread, &mut second) {
            Ok(true) => {
                let count = outlets.len() as u64;
                for request in second.iter() {
                    outlets[below(hash(request.key), count) as usize].push(&request);
                }
                outlets.iter_mut().for_each(FeedReceiver::flush);
            }
            Ok(false) => {
                outlets.iter_mut().for_each(|outlet| outlet.send(FeedMessage::End));
                return;
            }
            Err(error) => {
                outlets
                    .iter_mut()
                    .for_each(|outlet| outlet.send(FeedMessage::Failed(error.clone())));
                return;
            }
        }
    }
}

/// One consumer's part of a trace.
#[derive(Debug)]
pub struct TraceFeed {
    file: Arc<str>,
    header: Option<Arc<str>>,
    incoming: Receiver<FeedMessage>,
    used: SyncSender<RequestChunk>,
    chunk: RequestChunk,
    /// The next request of the chunk.
    next: usize,
    /// The end of the trace, or its error.
    end: Option<Result<(), TraceError>>,
}

/// The next item of a [`TraceFeed`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FeedItem<'a> {
    Request(TraceRequest<'a>),
    /// Not read yet.
    NotYet,
    End,
}

impl TraceFeed {
    /// As [`TraceReader::header`].
    pub fn header(&self) -> Option<&Arc<str>> {
        self.header.as_ref()
    }

    /// The next request, which stays the next one until [`TraceFeed::advance`]; waits for it at
    /// most so long. Allocates nothing.
    ///
    /// # Errors
    /// An error of the trace, after all requests before it, and again at every further call.
    #[inline]
    pub fn peek(&mut self, wait: Duration) -> Result<FeedItem<'_>, TraceError> {
        if self.next == self.chunk.len() && !self.receive(wait)? {
            return Ok(if self.end.is_some() { FeedItem::End } else { FeedItem::NotYet });
        }
        Ok(self.chunk.get(self.next).map_or(FeedItem::NotYet, FeedItem::Request))
    }

    /// Goes on to the request after the current one.
    #[inline]
    pub fn advance(&mut self) {
        self.next = (self.next + 1).min(self.chunk.len());
    }

    /// Whether another chunk came.
    fn receive(&mut self, wait: Duration) -> Result<bool, TraceError> {
        if let Some(over) = &self.end {
            return over.clone().map(|()| false);
        }
        let message = match self.incoming.try_recv() {
            Ok(message) => Ok(message),
            Err(TryRecvError::Empty) if wait.is_zero() => return Ok(false),
            Err(_) => self.incoming.recv_timeout(wait),
        };
        let over = match message {
            Ok(FeedMessage::Chunk(chunk)) => {
                let used = mem::replace(&mut self.chunk, chunk);
                self.next = 0;
                // Returned to the reader thread; there is always room.
                let _ = self.used.try_send(used);
                return Ok(true);
            }
            Err(RecvTimeoutError::Timeout) => return Ok(false),
            Ok(FeedMessage::End) => Ok(()),
            Ok(FeedMessage::Failed(error)) => Err(error),
            Err(RecvTimeoutError::Disconnected) => {
                Err(TraceError::ThreadDied { file: self.file.clone() })
            }
        };
        self.end.insert(over).clone().map(|()| false)
    }
}
