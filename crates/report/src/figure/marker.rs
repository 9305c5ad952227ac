//! Shapes of points, which distinguish series in addition to colours.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Circle,
    Square,
    Diamond,
    Triangle,
}

impl Shape {
    /// A different shape for each series, as long as there are any.
    pub fn nth(i: usize) -> Shape {
        [Shape::Circle, Shape::Square, Shape::Diamond, Shape::Triangle][i % 4]
    }

    /// Path data around `(x, y)`; `r` is about half its width.
    pub fn path(self, x: f64, y: f64, r: f64) -> String {
        match self {
            Shape::Circle => format!(
                "M{:.1} {y:.1}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0z",
                x - r,
                d = 2.0 * r
            ),
            Shape::Square => {
                let r = r * 0.9;
                format!("M{:.1} {:.1}h{d:.1}v{d:.1}h-{d:.1}z", x - r, y - r, d = 2.0 * r)
            }
            Shape::Diamond => {
                let r = r * 1.25;
                format!("M{:.1} {y:.1}l{r:.1} -{r:.1}l{r:.1} {r:.1}l-{r:.1} {r:.1}z", x - r)
            }
            Shape::Triangle => {
                let r = r * 1.15;
                format!(
                    "M{:.1} {:.1}l{r:.1} -{d:.1}l{r:.1} {d:.1}z",
                    x - r,
                    y + r * 0.85,
                    d = 1.8 * r
                )
            }
        }
    }
}
