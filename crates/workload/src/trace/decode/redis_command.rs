//! Which requests the commands of Redis are, for logs of `MONITOR` and captured traffic.
//!
//! kvmeter's stores have keys and values. Commands of other types are reads and writes of their
//! key; what they write is as long as their arguments together.

use model::Expiry;

use super::super::error::RecordProblem;
use super::super::operation::TraceOp;
use super::super::record::{RecordBatch, RecordFields, SECOND, TraceKey};

/// Where the keys of a command are, and what it does with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// The first argument is the key; the others are written, if it writes.
    One(TraceOp),
    /// Every argument is a key.
    All(TraceOp),
    /// Keys and values in turn.
    Pairs(TraceOp),
    /// `SET key value [EX s | PX ms | EXAT s | PXAT ms ...]`.
    Set,
    /// `SETEX key time value`, with the time in so many milliseconds.
    SetExpiring { unit_ms: u64 },
}

use Shape::{All, One, Pairs};
use TraceOp::{Add, Append, Decr, Delete, Get, Incr};

/// A command's name is at most so long.
const LONGEST_NAME: usize = 24;

/// Commands that request values, in lower case. What is not here is no request: administration,
/// transactions, scripts (their commands are logged by themselves), messages.
fn shape(name: &[u8]) -> Option<Shape> {
    let mut lower = [0; LONGEST_NAME];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    Some(match &*lower {
        b"get" | b"getex" | b"strlen" | b"getrange" | b"substr" | b"getbit" | b"bitcount"
        | b"bitpos" | b"ttl" | b"pttl" | b"type" | b"dump" | b"hget" | b"hmget" | b"hgetall"
        | b"hlen" | b"hexists" | b"hkeys" | b"hvals" | b"hstrlen" | b"hscan" | b"hrandfield"
        | b"lrange" | b"lindex" | b"llen" | b"lpos" | b"smembers" | b"sismember"
        | b"smismember" | b"scard" | b"srandmember" | b"sscan" | b"zrange" | b"zrevrange"
        | b"zrangebyscore" | b"zrevrangebyscore" | b"zrangebylex" | b"zrevrangebylex"
        | b"zrank" | b"zrevrank" | b"zscore" | b"zmscore" | b"zcard" | b"zcount" | b"zlexcount"
        | b"zscan" | b"zrandmember" | b"pfcount" | b"geopos" | b"geodist" | b"geosearch"
        | b"georadius_ro" | b"xrange" | b"xrevrange" | b"xlen" => One(Get),
        b"mget" | b"exists" | b"touch" => All(Get),
        b"set" => Shape::Set,
        b"setex" => Shape::SetExpiring { unit_ms: 1000 },
        b"psetex" => Shape::SetExpiring { unit_ms: 1 },
        b"mset" => Pairs(TraceOp::Set),
        b"msetnx" => Pairs(Add),
        b"setnx" => One(Add),
        b"append" => One(Append),
        b"incr" | b"incrby" | b"incrbyfloat" => One(Incr),
        b"decr" | b"decrby" => One(Decr),
        b"getset" | b"setrange" | b"setbit" | b"bitfield" | b"hset" | b"hmset" | b"hsetnx"
        | b"hincrby" | b"hincrbyfloat" | b"hdel" | b"lpush" | b"rpush" | b"lpushx" | b"rpushx"
        | b"lpop" | b"rpop" | b"lset" | b"linsert" | b"lrem" | b"ltrim" | b"sadd" | b"srem"
        | b"spop" | b"zadd" | b"zincrby" | b"zrem" | b"zpopmin" | b"zpopmax"
        | b"zremrangebyrank" | b"zremrangebyscore" | b"zremrangebylex" | b"pfadd" | b"geoadd"
        | b"xadd" | b"xtrim" | b"xdel" => One(TraceOp::Set),
        b"del" | b"unlink" => All(Delete),
        b"getdel" => One(Delete),
        _ => return None,
    })
}

/// Commands that request no value, in upper case, as connections begin with them.
const OTHER: [&str; 14] = [
    "AUTH", "CLIENT", "CLUSTER", "COMMAND", "CONFIG", "ECHO", "EVAL", "EVALSHA", "HELLO", "INFO",
    "MULTI", "PING", "READONLY", "SELECT",
];

/// Whether it is the name of a command.
pub(super) fn is_command(name: &[u8]) -> bool {
    shape(name).is_some() || OTHER.iter().any(|other| name.eq_ignore_ascii_case(other.as_bytes()))
}

/// Whether arguments beyond the first may be keys.
pub(super) fn has_many_keys(name: &[u8]) -> bool {
    matches!(shape(name), Some(All(_) | Pairs(_)))
}

/// Appends the requests of one command. `word` gives an argument from 0, the name, on, and `size`
/// its length, which is known for those that are not kept.
pub(super) struct Command<'a> {
    pub words: &'a [Word],
    /// The bytes of those words that are kept.
    pub bytes: &'a [u8],
    pub at_ns: u64,
}

/// An argument of a command.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Word {
    /// Where its kept bytes begin, how many they are, and how many it has.
    pub begin: u32,
    pub kept: u32,
    pub size: u64,
}

impl Command<'_> {
    fn word(&self, index: usize) -> Option<&[u8]> {
        let word = self.words.get(index)?;
        Some(&self.bytes[word.begin as usize..][..word.kept as usize])
    }

    fn size(&self, index: usize) -> Option<u32> {
        u32::try_from(self.words.get(index)?.size).ok()
    }

    /// Appends its requests; none for what requests no value.
    pub fn push(&self, out: &mut RecordBatch) -> Result<(), RecordProblem> {
        let Some(shape) = self.word(0).and_then(shape) else {
            out.ignored += 1;
            return Ok(());
        };
        let count = self.words.len();
        let needed = match shape {
            Shape::All(_) | Shape::One(Get | Delete | Incr | Decr) => 2,
            Shape::Pairs(_) | Shape::Set => 3,
            Shape::One(_) => 2,
            Shape::SetExpiring { .. } => 4,
        };
        if count < needed {
            return Err(RecordProblem::Arguments);
        }
        match shape {
            Shape::All(operation) => {
                (1..count).try_for_each(|index| self.one(out, operation, index, None, None))
            }
            Shape::Pairs(operation) => (1..count.saturating_sub(1))
                .step_by(2)
                .try_for_each(|index| self.one(out, operation, index, self.size(index + 1), None)),
            Shape::One(operation @ (Get | Delete | Incr | Decr)) => {
                self.one(out, operation, 1, None, None)
            }
            Shape::One(operation) => {
                let sum: u64 = self.words[2..].iter().map(|word| word.size).sum();
                self.one(out, operation, 1, u32::try_from(sum).ok(), None)
            }
            Shape::Set => self.one(out, TraceOp::Set, 1, self.size(2), Some(self.expiry())),
            Shape::SetExpiring { unit_ms } => {
                let time = self.number(2).ok_or(RecordProblem::Arguments)?;
                let expiry = Self::after_ms(time.saturating_mul(unit_ms));
                self.one(out, TraceOp::Set, 1, self.size(3), Some(expiry))
            }
        }
    }

    fn one(
        &self,
        out: &mut RecordBatch,
        operation: TraceOp,
        key: usize,
        value_size: Option<u32>,
        expiry: Option<Expiry>,
    ) -> Result<(), RecordProblem> {
        let key = self.word(key).unwrap_or_default();
        if key.is_empty() {
            return Err(RecordProblem::EmptyKey);
        }
        let fields = RecordFields::new(self.at_ns, operation);
        out.push(RecordFields { value_size, expiry, ..fields }, TraceKey::Bytes(key))
    }

    fn number(&self, index: usize) -> Option<u64> {
        std::str::from_utf8(self.word(index)?).ok()?.parse().ok()
    }

    fn after_ms(ms: u64) -> Expiry {
        match ms {
            0 => Expiry::AtOnce,
            ms => Expiry::After(u32::try_from(ms.div_ceil(1000)).unwrap_or(u32::MAX)),
        }
    }

    /// The expiry of a `SET`.
    fn expiry(&self) -> Expiry {
        let now_ms = self.at_ns / (SECOND / 1000);
        for index in 3..self.words.len() {
            let name = self.word(index).unwrap_or_default();
            let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
            let number = || self.number(index + 1).unwrap_or(0);
            if is("ex") {
                return Self::after_ms(number().saturating_mul(1000));
            } else if is("px") {
                return Self::after_ms(number());
            } else if is("exat") {
                return Self::after_ms(number().saturating_mul(1000).saturating_sub(now_ms));
            } else if is("pxat") {
                return Self::after_ms(number().saturating_sub(now_ms));
            }
        }
        Expiry::Never
    }
}
