//! The stream of one viewer: server-sent events, made when the viewer has taken the one before.

use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame, SizeHint};
use tokio::sync::{Notify, mpsc};
use tokio::time::{sleep, timeout};

use crate::board::Cursor;
use crate::server::Shared;

/// More viewers are refused.
pub(crate) const MAX_VIEWERS: usize = 32;
/// A viewer that takes nothing for so long is dropped.
const STALL_LIMIT: Duration = Duration::from_secs(30);
/// Frames come no faster, however short the runs are.
const LEAST_GAP: Duration = Duration::from_millis(250);
/// Without news a comment is sent, so that a viewer that left is noticed.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// The body of an answer.
pub(crate) enum LiveBody {
    Whole(Option<Bytes>),
    Stream(mpsc::Receiver<Bytes>),
}

impl Body for LiveBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            LiveBody::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            LiveBody::Stream(frames) => {
                frames.poll_recv(cx).map(|frame| frame.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, LiveBody::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            LiveBody::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            LiveBody::Stream(_) => SizeHint::default(),
        }
    }
}

/// Begins a stream; `hung` ends the connection of a viewer that takes nothing. None where there are
/// too many viewers.
pub(crate) fn stream(shared: &Rc<Shared>, hung: &Rc<Notify>) -> Option<LiveBody> {
    if shared.viewers.get() >= MAX_VIEWERS {
        return None;
    }
    shared.viewers.set(shared.viewers.get() + 1);
    let (sender, frames) = mpsc::channel(1);
    let (shared, hung) = (Rc::clone(shared), Rc::clone(hung));
    tokio::task::spawn_local(async move {
        if feed(&shared, &sender).await == Viewer::Hung {
            hung.notify_one();
        }
        shared.viewers.set(shared.viewers.get() - 1);
    });
    Some(LiveBody::Stream(frames))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Viewer {
    /// It left, or has everything.
    Done,
    Hung,
}

async fn feed(shared: &Rc<Shared>, sender: &mpsc::Sender<Bytes>) -> Viewer {
    let mut version = shared.version.subscribe();
    let mut cursor = Cursor::default();
    let mut news = true;
    loop {
        // The frame is made when there is room for it: a slow viewer skips what came in between.
        let permit = match timeout(STALL_LIMIT, sender.reserve()).await {
            Ok(Ok(permit)) => permit,
            Ok(Err(_)) => return Viewer::Done,
            Err(_) => return Viewer::Hung,
        };
        version.borrow_and_update();
        permit.send(match news {
            true => format!("data: {}\n\n", shared.board.borrow().frame(&mut cursor)).into(),
            false => Bytes::from_static(b":\n\n"),
        });
        if shared.board.borrow().has_ended() {
            return Viewer::Done;
        }
        tokio::select! {
            () = sender.closed() => return Viewer::Done,
            () = sleep(LEAST_GAP) => {}
        }
        news = tokio::select! {
            () = sender.closed() => return Viewer::Done,
            changed = version.changed() => match changed {
                Ok(()) => true,
                Err(_) => return Viewer::Done,
            },
            () = sleep(HEARTBEAT) => false,
        };
    }
}
