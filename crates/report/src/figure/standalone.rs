//! A drawing as a file of its own, with colours and fonts, on white.

use super::{COLORS, Chart};

/// The light colours of the page, in the order of the series.
const SERIES: [&str; COLORS] =
    ["#0072b2", "#d55e00", "#00876a", "#b0568f", "#2f6f9f", "#e0992b", "#6b7785", "#7a5ea8"];
const NEUTRAL: &str = "#4d5560";
/// Without CSS variables, which print tools do not support.
const STYLE: &str = "\
text{font:12px system-ui,'Liberation Sans',Arial,sans-serif;fill:#4d5560}\
.tick,.axis-label,.panel{fill:#626b76}.group{font-size:13px;font-weight:600;fill:#1a1d21}\
.level{paint-order:stroke;stroke:#ffffff;stroke-width:3px;stroke-linejoin:round}\
.label,.key{fill:#1a1d21}.grid{stroke:#e9ebed;stroke-width:1}.axis{stroke:#626b76;stroke-width:1}\
.line{stroke-width:1.75;fill:none;stroke-linejoin:round}.dash{stroke-dasharray:5 4}\
.whisker{stroke:#1a1d21;stroke-width:1.25}.span{stroke:#626b76;stroke-width:1.5;opacity:.55}\
.dot{stroke:#ffffff;stroke-width:1}.hollow{fill:#ffffff;stroke-width:1.5}.q{opacity:0}";

/// A whole SVG file of the chart.
pub fn standalone(chart: &Chart, width: f64, alt: &str) -> String {
    let drawing = chart.draw(width, alt);
    let mut style = STYLE.to_owned();
    let colors = SERIES.iter().enumerate().map(|(i, color)| (format!("c{i}"), *color));
    for (class, color) in colors.chain([("cn".to_owned(), NEUTRAL)]) {
        style += &format!(
            ".line.{class},.hollow.{class}{{stroke:{color}}}\
             .bar.{class},.fill.{class},.dot.{class}{{fill:{color}}}"
        );
    }
    // A mark on its own column would be invisible in the column's colour.
    style += ".bar~.dot,.hollow.spot.m{fill:#ffffff;stroke:#1a1d21}";
    let inside =
        format!("<style>{style}</style><rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>");
    let head = drawing.find('>').map_or(0, |end| end + 1);
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}{inside}{}\n",
        &drawing[..head],
        &drawing[head..]
    )
}
