/// Points of a server on the ring, as ketama places them.
const POINTS: usize = 160;

/// Each digest gives four.
const DIGESTS: usize = POINTS / 4;

/// Which server a key belongs to, so that few keys move when a server is added: the ketama ring as
/// its authors and libmemcached's weighted mode lay it out. A server's points are the four
/// little-endian words of the MD5 digests of `NAME-0` to `NAME-39`; a key belongs to the first
/// point at or above the first word of its own digest. Other clients agree if they use the same
/// names, which for libmemcached are `HOST` at port 11211 and `HOST:PORT` elsewhere, and equal
/// weights.
#[derive(Debug, Clone)]
pub struct Ring {
    /// In ascending order; `servers` has the server of each.
    points: Vec<u32>,
    servers: Vec<u32>,
}

impl Ring {
    /// A ring of the servers with these names, whose order gives their numbers.
    pub fn new(names: &[String]) -> Ring {
        let mut placed = Vec::with_capacity(names.len() * POINTS);
        for (server, name) in (0..).zip(names) {
            for digest in 0..DIGESTS {
                let digest = md5::compute(format!("{name}-{digest}")).0;
                let words = digest.as_chunks::<4>().0;
                placed.extend(words.iter().map(|&word| (u32::from_le_bytes(word), server)));
            }
        }
        placed.sort_unstable();
        let (points, servers) = placed.into_iter().unzip();
        Ring { points, servers }
    }

    /// The number of the server that a key belongs to; 0 if there is none or one.
    #[inline]
    pub fn server_of(&self, key: &[u8]) -> usize {
        if self.points.len() <= POINTS {
            return 0;
        }
        // The ring wraps around.
        self.servers[self.point_of(key) % self.servers.len()] as usize
    }

    /// The number of the first server from there on that is not `out`, as if the others had no
    /// points; the owner where all are.
    #[cold]
    pub fn server_among(&self, key: &[u8], out: &[bool]) -> usize {
        let from = self.point_of(key);
        let all = self.servers.len();
        let mut next = (from..from + all).map(|point| self.servers[point % all] as usize);
        next.find(|server| !out[*server]).unwrap_or_else(|| self.server_of(key))
    }

    /// The share of all hashes, and so about of the keys, that belongs to a server.
    pub fn share(&self, server: usize) -> f64 {
        let Some(last) = self.points.last() else { return 0.0 };
        let before = std::iter::once(last).chain(&self.points);
        let arcs = before.zip(&self.points).map(|(from, to)| to.wrapping_sub(*from));
        let own = arcs.zip(&self.servers).filter(|(_, owner)| **owner as usize == server);
        own.map(|(arc, _)| f64::from(arc)).sum::<f64>() / 2f64.powi(32)
    }

    /// The place of the first point at or above a key's hash; beyond the last it is their number.
    #[inline]
    fn point_of(&self, key: &[u8]) -> usize {
        let digest = md5::compute(key).0;
        let hash = u32::from_le_bytes([digest[0], digest[1], digest[2], digest[3]]);
        self.points.partition_point(|&point| point < hash)
    }
}
