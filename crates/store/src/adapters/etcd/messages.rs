//! The messages of etcd's API v3 that are needed, written by hand with the field numbers of its
//! public `rpc.proto`, `kv.proto`. Fields that are not read are left out; a decoder skips them.

use bytes::Bytes;
use prost::Message;

/// A method: its path, its request and its answer.
pub(super) trait Method: Message + Default + Clone + 'static {
    const PATH: &'static str;
    type Answer: Message + Default + Headed + 'static;
}

/// An answer that names the cluster that gave it.
pub(super) trait Headed {
    fn header(&self) -> Option<&Header>;
}

macro_rules! methods {
    ($($request:ty => $answer:ty, $path:literal;)*) => {
        $(
            impl Method for $request {
                const PATH: &'static str = concat!("/etcdserverpb.", $path);
                type Answer = $answer;
            }
            impl Headed for $answer {
                fn header(&self) -> Option<&Header> {
                    self.header.as_ref()
                }
            }
        )*
    };
}

methods! {
    RangeRequest => RangeResponse, "KV/Range";
    PutRequest => PutResponse, "KV/Put";
    DeleteRangeRequest => DeleteRangeResponse, "KV/DeleteRange";
    AuthenticateRequest => AuthenticateResponse, "Auth/Authenticate";
    StatusRequest => StatusResponse, "Maintenance/Status";
    MemberListRequest => MemberListResponse, "Cluster/MemberList";
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Header {
    #[prost(uint64, tag = "1")]
    pub cluster_id: u64,
    /// Counts every change of the keys.
    #[prost(int64, tag = "3")]
    pub revision: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RangeRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub key: Bytes,
    /// Empty: the key alone; otherwise all keys from it and below this one.
    #[prost(bytes = "bytes", tag = "2")]
    pub range_end: Bytes,
    /// 0: without a limit.
    #[prost(int64, tag = "3")]
    pub limit: i64,
    /// Answered by the member alone, perhaps with an old value.
    #[prost(bool, tag = "7")]
    pub serializable: bool,
    #[prost(bool, tag = "8")]
    pub keys_only: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RangeResponse {
    #[prost(message, optional, tag = "1")]
    pub header: Option<Header>,
    /// In the order of keys.
    #[prost(message, repeated, tag = "2")]
    pub kvs: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct KeyValue {
    #[prost(bytes = "bytes", tag = "1")]
    pub key: Bytes,
    #[prost(bytes = "bytes", tag = "5")]
    pub value: Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PutRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub value: Bytes,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct PutResponse {
    #[prost(message, optional, tag = "1")]
    pub header: Option<Header>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DeleteRangeRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub key: Bytes,
    /// As of a [`RangeRequest`].
    #[prost(bytes = "bytes", tag = "2")]
    pub range_end: Bytes,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct DeleteRangeResponse {
    #[prost(message, optional, tag = "1")]
    pub header: Option<Header>,
}

/// Without `Debug` of its fields: it holds the password.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(super) struct AuthenticateRequest {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub password: String,
}

impl std::fmt::Debug for AuthenticateRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AuthenticateRequest(not shown)")
    }
}

#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
pub(super) struct AuthenticateResponse {
    #[prost(message, optional, tag = "1")]
    pub header: Option<Header>,
    /// Goes with each request as the metadata `token`.
    #[prost(string, tag = "2")]
    pub token: String,
}

impl std::fmt::Debug for AuthenticateResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AuthenticateResponse(not shown)")
    }
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct StatusRequest {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StatusResponse {
    #[prost(message, optional, tag = "1")]
    pub header: Option<Header>,
    #[prost(string, tag = "2")]
    pub version: String,
    #[prost(int64, tag = "3")]
    pub db_size: i64,
    /// 0: the member knows of none.
    #[prost(uint64, tag = "4")]
    pub leader: u64,
    #[prost(uint64, tag = "5")]
    pub raft_index: u64,
    /// Counts elections.
    #[prost(uint64, tag = "6")]
    pub raft_term: u64,
    #[prost(uint64, tag = "7")]
    pub raft_applied_index: u64,
    #[prost(int64, tag = "9")]
    pub db_size_in_use: i64,
    #[prost(bool, tag = "10")]
    pub is_learner: bool,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct MemberListRequest {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct MemberListResponse {
    #[prost(message, optional, tag = "1")]
    pub header: Option<Header>,
    #[prost(message, repeated, tag = "2")]
    pub members: Vec<Member>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Member {
    #[prost(uint64, tag = "1")]
    pub id: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_the_numbers_of_the_proto() {
        let put = PutRequest { key: Bytes::from_static(b"k"), value: Bytes::from_static(b"v") };
        assert_eq!(put.encode_to_vec(), [0x0a, 1, b'k', 0x12, 1, b'v']);
        let range = RangeRequest {
            key: Bytes::from_static(b"a"),
            range_end: Bytes::from_static(b"b"),
            limit: 3,
            serializable: true,
            keys_only: true,
        };
        let bytes = [0x0a, 1, b'a', 0x12, 1, b'b', 0x18, 3, 0x38, 1, 0x40, 1];
        assert_eq!(range.encode_to_vec(), bytes);
        assert_eq!(PutRequest::PATH, "/etcdserverpb.KV/Put");
        // With fields that are skipped: revisions and a lease of the pair, `more` and `count`.
        let answer = [
            0x0a, 8, 0x08, 7, 0x10, 9, 0x18, 5, 0x20, 2, 0x12, 10, 0x0a, 1, b'k', 0x10, 1, 0x20, 2,
            0x2a, 1, b'v', 0x18, 1, 0x20, 1,
        ];
        let answer = RangeResponse::decode(&answer[..]).unwrap();
        assert_eq!(answer.header, Some(Header { cluster_id: 7, revision: 5 }));
        assert_eq!((&answer.kvs[0].key[..], &answer.kvs[0].value[..]), (&b"k"[..], &b"v"[..]));
    }

    #[test]
    fn secrets_are_not_shown() {
        let request = AuthenticateRequest { name: "n".to_owned(), password: "s3".to_owned() };
        assert!(!format!("{request:?}").contains("s3"));
    }
}
