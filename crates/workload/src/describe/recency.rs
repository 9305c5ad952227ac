//! Which keys were requested after a key, in items and in bytes: the stack of an LRU cache.

/// Sums over a growing order of places, each with a number and a prefix sum in O(log n).
#[derive(Debug)]
struct Fenwick(Vec<u64>);

impl Fenwick {
    fn add(&mut self, place: usize, number: u64) {
        let mut at = place + 1;
        while at < self.0.len() {
            self.0[at] = self.0[at].wrapping_add(number);
            at += at & at.wrapping_neg();
        }
    }

    /// The sum of the places before this one.
    fn before(&self, place: usize) -> u64 {
        let (mut at, mut sum) = (place, 0u64);
        while at > 0 {
            sum = sum.wrapping_add(self.0[at]);
            at &= at - 1;
        }
        sum
    }
}

/// The place of a key in the order of last requests.
pub(super) type Place = u32;

/// Keys in the order of their last request.
#[derive(Debug)]
pub(super) struct Recency {
    items: Fenwick,
    bytes: Fenwick,
    /// Bytes of the item at each place; `None` where the key has moved on.
    places: Vec<Option<u64>>,
    count: u64,
    sum: u64,
}

impl Recency {
    /// Room for twice as many places as there are keys, so that they are renumbered seldom.
    pub fn new(most_keys: usize) -> Recency {
        let places = 2 * most_keys.max(8);
        let fenwick = || Fenwick(vec![0; places + 1]);
        let (items, bytes) = (fenwick(), fenwick());
        Recency { items, bytes, places: Vec::with_capacity(places), count: 0, sum: 0 }
    }

    /// Whether the keys must be renumbered before another one is put on top.
    pub fn is_full(&self) -> bool {
        self.places.len() + 1 >= self.items.0.len()
    }

    /// Renumbers the places without gaps and returns, for each old place, the new one.
    pub fn renumber(&mut self) -> Vec<Place> {
        self.items.0.fill(0);
        self.bytes.0.fill(0);
        (self.count, self.sum) = (0, 0);
        let old = std::mem::take(&mut self.places);
        self.places.reserve(self.items.0.len());
        let mut new = Vec::with_capacity(old.len());
        for bytes in old {
            new.push(self.places.len() as Place);
            if let Some(bytes) = bytes {
                self.push(bytes);
            }
        }
        new
    }

    /// Puts an item on top.
    pub fn push(&mut self, bytes: u64) -> Place {
        let place = self.places.len();
        self.places.push(Some(bytes));
        self.items.add(place, 1);
        self.bytes.add(place, bytes);
        self.count += 1;
        self.sum = self.sum.wrapping_add(bytes);
        place as Place
    }

    /// Takes an item out. Returns the items and bytes above it.
    pub fn remove(&mut self, place: Place) -> (u64, u64) {
        let place = place as usize;
        let Some(bytes) = self.places[place].take() else { return (0, 0) };
        let items = self.count - self.items.before(place + 1);
        let above = self.sum.wrapping_sub(self.bytes.before(place + 1));
        self.items.add(place, u64::MAX);
        self.bytes.add(place, bytes.wrapping_neg());
        self.count -= 1;
        self.sum = self.sum.wrapping_sub(bytes);
        (items, above)
    }

    #[cfg(test)]
    pub fn places_len(&self) -> usize {
        self.places.len()
    }
}
