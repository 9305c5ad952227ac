//! A tiny server of every protocol, written independently of the codecs after the protocols'
//! documents.

use std::collections::HashMap;

use store::wire::Protocol;

#[derive(Default)]
pub struct ModelServer {
    pub values: HashMap<Vec<u8>, Vec<u8>>,
}

/// The requests still to be read.
struct Requests<'a>(&'a [u8]);

impl<'a> Requests<'a> {
    fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest;
        taken
    }

    fn line(&mut self) -> &'a [u8] {
        let end = self.0.windows(2).position(|two| two == b"\r\n").expect("a whole line");
        let line = self.take(end);
        self.take(2);
        line
    }

    fn value(&mut self, length: usize) -> &'a [u8] {
        let value = self.take(length);
        assert_eq!(self.take(2), b"\r\n", "a value ends with a line end");
        value
    }
}

impl ModelServer {
    /// Answers every request in `bytes`, one answer an element.
    pub fn serve(&mut self, protocol: Protocol, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut requests = Requests(bytes);
        let mut answers = Vec::new();
        while !requests.0.is_empty() {
            answers.push(match protocol {
                Protocol::MemcachedText => self.text(&mut requests),
                Protocol::MemcachedMeta => self.meta(&mut requests),
                Protocol::MemcachedBinary => self.binary(&mut requests),
                Protocol::Resp2 => self.resp(&mut requests, b"$-1\r\n"),
                Protocol::Resp3 => self.resp(&mut requests, b"_\r\n"),
            });
        }
        answers
    }

    fn text(&mut self, requests: &mut Requests<'_>) -> Vec<u8> {
        let line = requests.line();
        let mut words = line.split(|&byte| byte == b' ');
        match words.next().expect("a command") {
            b"get" => {
                let mut answer = Vec::new();
                for key in words {
                    if let Some(value) = self.values.get(key) {
                        answer.extend_from_slice(b"VALUE ");
                        answer.extend_from_slice(key);
                        answer.extend_from_slice(format!(" 0 {}\r\n", value.len()).as_bytes());
                        answer.extend_from_slice(value);
                        answer.extend_from_slice(b"\r\n");
                    }
                }
                answer.extend_from_slice(b"END\r\n");
                answer
            }
            b"set" => {
                let words: Vec<&[u8]> = words.collect();
                let [key, b"0", b"0", length] = words[..] else { panic!("bad set: {line:?}") };
                let value = requests.value(number(length));
                self.values.insert(key.to_vec(), value.to_vec());
                b"STORED\r\n".to_vec()
            }
            b"delete" => match self.values.remove(words.next().expect("a key")) {
                Some(_) => b"DELETED\r\n".to_vec(),
                None => b"NOT_FOUND\r\n".to_vec(),
            },
            other => panic!("no command of the text protocol: {other:?}"),
        }
    }

    fn meta(&mut self, requests: &mut Requests<'_>) -> Vec<u8> {
        let line = requests.line();
        let words: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
        let sent_key = words[1];
        let encoded = words[2..].contains(&&b"b"[..]);
        let key = if encoded { from_base64(sent_key) } else { sent_key.to_vec() };
        assert!(sent_key.len() <= 250, "a key as memcached takes it");
        let mut flags = Vec::new();
        for flag in &words[2..] {
            match flag[0] {
                b'k' => flags.extend_from_slice(&[b" k", sent_key].concat()),
                b'O' | b'b' => flags.extend_from_slice(&[b" ", *flag].concat()),
                _ => {}
            }
        }
        let answer = |head: &[u8]| [head, &flags, b"\r\n"].concat();
        match words[0] {
            b"mg" => match self.values.get(&key) {
                Some(value) => {
                    let head = answer(format!("VA {}", value.len()).as_bytes());
                    [&head, value.as_slice(), b"\r\n"].concat()
                }
                // As versions before 1.6.18 do, for half of the keys.
                None if key.len() % 2 == 0 => b"EN\r\n".to_vec(),
                None => answer(b"EN"),
            },
            b"ms" => {
                let value = requests.value(number(words[2]));
                self.values.insert(key, value.to_vec());
                answer(b"HD")
            }
            b"md" => match self.values.remove(&key) {
                Some(_) => answer(b"HD"),
                None => answer(b"NF"),
            },
            other => panic!("no command of the meta protocol: {other:?}"),
        }
    }

    fn binary(&mut self, requests: &mut Requests<'_>) -> Vec<u8> {
        let header = requests.take(24);
        assert_eq!(header[0], 0x80, "the magic of a request");
        let key_length = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let body = u32::from_be_bytes([header[8], header[9], header[10], header[11]]) as usize;
        let extras = usize::from(header[4]);
        let body = requests.take(body);
        let (key, value) = body[extras..].split_at(key_length);
        let opcode = header[1];
        let answer = |status: u8, extras: &[u8], key: &[u8], value: &[u8]| {
            let mut answer = vec![0x81, opcode];
            answer.extend_from_slice(&(key.len() as u16).to_be_bytes());
            answer.extend_from_slice(&[extras.len() as u8, 0, 0, status]);
            let body = extras.len() + key.len() + value.len();
            answer.extend_from_slice(&(body as u32).to_be_bytes());
            answer.extend_from_slice(&header[12..16]);
            answer.extend_from_slice(&[0; 8]);
            [&answer, extras, key, value].concat()
        };
        match opcode {
            0x0c => match self.values.get(key) {
                Some(value) => answer(0, &[0; 4], key, value),
                None => answer(1, b"", key, b""),
            },
            0x01 => {
                assert_eq!(extras, 8, "flags and expiry");
                self.values.insert(key.to_vec(), value.to_vec());
                answer(0, b"", b"", b"")
            }
            0x04 => match self.values.remove(key) {
                Some(_) => answer(0, b"", b"", b""),
                None => answer(1, b"", b"", b"Not found"),
            },
            other => panic!("an opcode that is not expected: {other:#x}"),
        }
    }

    fn resp(&mut self, requests: &mut Requests<'_>, none: &[u8]) -> Vec<u8> {
        let count = number(requests.line().strip_prefix(b"*").expect("an array"));
        let words: Vec<&[u8]> = (0..count)
            .map(|_| {
                let length = number(requests.line().strip_prefix(b"$").expect("a bulk string"));
                requests.value(length)
            })
            .collect();
        let bulk = |key: &[u8]| match self.values.get(key) {
            Some(value) => [format!("${}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat(),
            None => none.to_vec(),
        };
        match words[..] {
            [b"GET", key] => bulk(key),
            [b"MGET", ref keys @ ..] => {
                let values: Vec<u8> = keys.iter().flat_map(|key| bulk(key)).collect();
                [format!("*{}\r\n", keys.len()).as_bytes(), &values].concat()
            }
            [b"SET", key, value] => {
                self.values.insert(key.to_vec(), value.to_vec());
                b"+OK\r\n".to_vec()
            }
            [b"DEL", key] => {
                format!(":{}\r\n", u8::from(self.values.remove(key).is_some())).into_bytes()
            }
            _ => panic!("no command that is expected: {words:?}"),
        }
    }
}

fn number(digits: &[u8]) -> usize {
    std::str::from_utf8(digits).expect("digits").parse().expect("a number")
}

fn from_base64(text: &[u8]) -> Vec<u8> {
    assert_eq!(text.len() % 4, 0, "whole groups");
    let mut bytes = Vec::new();
    for group in text.chunks(4) {
        let bits = group.iter().fold(0_u32, |bits, letter| {
            bits << 6
                | match letter {
                    b'A'..=b'Z' => u32::from(letter - b'A'),
                    b'a'..=b'z' => u32::from(letter - b'a') + 26,
                    b'0'..=b'9' => u32::from(letter - b'0') + 52,
                    b'+' => 62,
                    b'/' => 63,
                    b'=' => 0,
                    other => panic!("no letter of base64: {other}"),
                }
        });
        let padding = group.iter().filter(|&&letter| letter == b'=').count();
        bytes.extend_from_slice(&bits.to_be_bytes()[1..4 - padding]);
    }
    bytes
}
