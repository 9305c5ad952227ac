//! Requests and their answers: the page, its events, the metrics. Nothing can be changed.

use std::rc::Rc;

use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue,
    REFERRER_POLICY, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};
use tokio::sync::Notify;

use crate::access::{self, Refusal};
use crate::board::Cursor;
use crate::server::Shared;
use crate::viewers::{self, LiveBody, MAX_VIEWERS};
use crate::{metrics, page};

const TEXT: &str = "text/plain; charset=utf-8";

/// The answer to a request.
pub(crate) fn answer(
    shared: &Rc<Shared>,
    request: &Request<Incoming>,
    hung: &Rc<Notify>,
) -> Response<LiveBody> {
    let head = request.method() == Method::HEAD;
    if !head && request.method() != Method::GET {
        let mut answer = whole(StatusCode::METHOD_NOT_ALLOWED, TEXT, "read only: GET or HEAD\n");
        answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return answer;
    }
    match access::check(request.headers(), shared.listen, shared.token.as_ref()) {
        Ok(()) => {}
        Err(Refusal::Host) => {
            let words = "the Host header names another machine; open the address that kvmeter \
                         printed\n";
            return whole(StatusCode::MISDIRECTED_REQUEST, TEXT, words);
        }
        Err(Refusal::Token) => {
            let words = "a token is needed: as password with any user name, or as bearer token\n";
            let mut answer = whole(StatusCode::UNAUTHORIZED, TEXT, words);
            let scheme = HeaderValue::from_static("Basic realm=\"kvmeter\", charset=\"UTF-8\"");
            answer.headers_mut().insert(WWW_AUTHENTICATE, scheme);
            return answer;
        }
    }
    match request.uri().path() {
        "/" => page_of(shared),
        "/metrics" => {
            let text = metrics::text(&shared.board.borrow().totals);
            whole(StatusCode::OK, metrics::CONTENT_TYPE, text)
        }
        "/events" if head => whole(StatusCode::OK, "text/event-stream", ""),
        "/events" => match viewers::stream(shared, hung) {
            Some(body) => with_headers(StatusCode::OK, "text/event-stream", body),
            None => {
                let words = format!("{MAX_VIEWERS} viewers watch already; close one\n");
                whole(StatusCode::SERVICE_UNAVAILABLE, TEXT, words)
            }
        },
        _ => whole(StatusCode::NOT_FOUND, TEXT, "there are /, /events and /metrics\n"),
    }
}

fn page_of(shared: &Shared) -> Response<LiveBody> {
    let Some(nonce) = page::nonce() else {
        return whole(StatusCode::INTERNAL_SERVER_ERROR, TEXT, "no random numbers here\n");
    };
    let state = shared.board.borrow().frame(&mut Cursor::default());
    let mut answer =
        whole(StatusCode::OK, "text/html; charset=utf-8", shared.page.html(&nonce, &state));
    if let Ok(policy) = HeaderValue::from_str(&page::policy(&nonce)) {
        answer.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    }
    answer
}

fn whole(
    status: StatusCode,
    content_type: &'static str,
    text: impl Into<Bytes>,
) -> Response<LiveBody> {
    with_headers(status, content_type, LiveBody::Whole(Some(text.into())))
}

/// With what every answer forbids: to be kept, framed, guessed at, or read by other origins.
fn with_headers(
    status: StatusCode,
    content_type: &'static str,
    body: LiveBody,
) -> Response<LiveBody> {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    for (name, value) in [
        (CONTENT_TYPE, content_type),
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    answer
}
