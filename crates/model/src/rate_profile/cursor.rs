use super::{RatePiece, RateProfile};

/// Walks along a profile from arrival to arrival: the inverse of its integral.
///
/// The position is kept within the piece, so that its precision does not depend on the time that
/// has passed.
#[derive(Debug, Clone)]
pub struct ProfileCursor {
    profile: RateProfile,
    /// The piece in which it stands.
    nth: usize,
    from: f64,
    slope: f64,
    seconds: f64,
    area: f64,
    /// When the piece began.
    begin_s: f64,
    /// The integral from there.
    into: f64,
    /// How often the whole profile has passed.
    passes: u64,
}

impl ProfileCursor {
    /// At the beginning.
    pub fn new(profile: RateProfile) -> ProfileCursor {
        let mut new = ProfileCursor {
            profile,
            nth: 0,
            from: 0.0,
            slope: 0.0,
            seconds: 0.0,
            area: 0.0,
            begin_s: 0.0,
            into: 0.0,
            passes: 0,
        };
        new.enter(0);
        new
    }

    /// Moves on until the integral has grown by `by`; returns that instant in seconds. Where the
    /// rate is zero there, it is the end of that pause.
    #[inline]
    pub fn advance(&mut self, by: f64) -> f64 {
        self.into += by;
        if self.into >= self.area {
            self.leave_pieces();
        }
        self.begin_s + self.time_within()
    }

    /// The integral from here to an instant, at most what remains for the future.
    pub fn integral_until(&self, until_s: f64) -> f64 {
        self.profile.integral(until_s) - self.profile.integral(self.begin_s + self.time_within())
    }

    /// The time from the piece's beginning, by the form of the quadratic equation's solution that
    /// loses no digits and covers a slope of zero.
    #[inline]
    fn time_within(&self) -> f64 {
        if self.slope == 0.0 {
            return if self.from > 0.0 { self.into / self.from } else { 0.0 };
        }
        if self.into <= 0.0 {
            return 0.0;
        }
        let root = (self.from * self.from + 2.0 * self.slope * self.into).max(0.0).sqrt();
        (2.0 * self.into / (self.from + root)).min(self.seconds)
    }

    #[cold]
    fn leave_pieces(&mut self) {
        let (_, whole) = self.profile.last_sum();
        // A long gap may skip the profile many times.
        let skipped = (self.into / whole).floor();
        if skipped > 1.0 {
            self.passes += skipped as u64 - 1;
            self.into -= (skipped - 1.0) * whole;
            self.enter(self.nth);
        }
        while self.into >= self.area {
            self.into -= self.area;
            let next = self.nth + 1;
            if next == self.profile.pieces().len() {
                self.passes += 1;
            }
            self.enter(next % self.profile.pieces().len());
        }
    }

    fn enter(&mut self, nth: usize) {
        let piece: RatePiece = self.profile.pieces()[nth];
        self.nth = nth;
        (self.from, self.slope) = (piece.from, piece.slope());
        (self.seconds, self.area) = (piece.seconds, piece.area());
        self.begin_s = self.passes as f64 * self.profile.seconds() + self.profile.0.sums[nth].0;
    }
}
