//! Labels of ticks under a figure.

use super::svg::{Anchor, SMALL, Svg, text_width, within};

/// The least gap between two labels.
const GAP: f64 = 6.0;

/// Writes labels centred at rising positions `x` within `width`. Labels at an edge are moved in;
/// labels without room after the last one are left out.
pub fn below<'a>(
    svg: &mut Svg,
    ticks: impl IntoIterator<Item = (f64, &'a str)>,
    y: f64,
    width: f64,
) {
    let mut free_from = f64::NEG_INFINITY;
    for (x, text) in ticks {
        let half = text_width(text, SMALL) / 2.0;
        let middle = within(x, text, width);
        if middle - half > free_from {
            svg.text("tick", Anchor::Middle, middle, y, text);
            free_from = middle + half + GAP;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_moved_in_from_the_edge_keeps_its_gap() {
        let drawn = |second: f64| {
            let mut svg = Svg::new();
            below(&mut svg, [(0.0, "0 ops/s"), (second, "500 kops/s")], 10.0, 400.0);
            svg.finish(400.0, 20.0, "").matches("class=\"tick\"").count()
        };
        let room = text_width("0 ops/s", SMALL) + text_width("500 kops/s", SMALL) / 2.0;
        assert_eq!(drawn(room), 1, "they would touch");
        assert_eq!(drawn(room + GAP + 1.0), 2);
    }
}
