//! The part of the page for a study with a design: answers first, then its own figures.

use analyse::answer::Confidence;

use super::markup::Markup;
use super::{figures, table};
use crate::study::{self, StudyReport, UnansweredQuestions};
use crate::table::Table;

/// The sections of a study with a design, before all others.
pub const SECTIONS: [(&str, &str); 6] = [
    ("answers", "Answers"),
    ("study-figures", "Figures of the study"),
    ("checks", "Checks"),
    ("published", "Compared with published values"),
    ("missing", "What is missing here"),
    ("cells", "Every cell"),
];

/// Whether a section has content.
pub fn has_content(id: &str, studies: &[StudyReport]) -> bool {
    studies.iter().any(|study| match id {
        "answers" => !study.design.questions.is_empty() || study.scale_note().is_some(),
        "study-figures" => {
            let graduated =
                study.design.questions.iter().any(|question| question.graduated.is_some());
            !study.design.figures.is_empty() || graduated
        }
        "checks" => !study.design.checks.is_empty(),
        "published" => study.design.published.is_some(),
        "missing" => study::gaps(study).is_some(),
        "cells" => !study::cells(study).is_empty(),
        _ => false,
    })
}

/// Writes the section; nothing for other ids.
pub fn section(out: &mut Markup, id: &str, studies: &[StudyReport]) {
    for study in studies {
        if studies.len() > 1 {
            out.raw("<h3>").text(study.name).raw("</h3>");
        }
        match id {
            "answers" => answers(out, study),
            "study-figures" => figures_of(out, study),
            "checks" => optional_table(out, study::checks_table(study)),
            "published" => titled_tables(out, &study::published(study)),
            "missing" => optional_table(out, study::gaps(study)),
            "cells" => titled_tables(out, study::cells(study)),
            _ => {}
        }
    }
}

fn answers(out: &mut Markup, study: &StudyReport) {
    if let Some(note) = study.scale_note() {
        out.raw("<p class=\"banner scale\">").text(note).raw("</p>");
        let settings = study.scale_settings();
        if !settings.is_empty() {
            out.raw("<details><summary>What this scale sets</summary><ul>");
            for setting in &settings {
                out.raw("<li><code>").text(setting).raw("</code></li>");
            }
            out.raw("</ul></details>");
        }
    }
    if let Some(note) = study.unasked_note() {
        out.raw("<p class=\"muted\">").text(note).raw("</p>");
    }
    for (answer, question) in study::answered(study) {
        let tone = match answer.confidence {
            Confidence::High | Confidence::Good => "good",
            Confidence::Fair => "strong",
            Confidence::NotShown => "muted",
            Confidence::NoData | Confidence::NotMeasurable => "warn",
        };
        out.raw("<article class=\"answer\"><h3>").text(&answer.ask).raw("</h3><p>");
        out.text(&answer.verdict).raw("</p>");
        if !answer.details.is_empty() {
            out.raw("<ul>");
            for detail in &answer.details {
                out.raw("<li>").text(detail).raw("</li>");
            }
            out.raw("</ul>");
        }
        for sentence in study::beside(study, question) {
            out.raw("<p class=\"note\">").text(sentence).raw("</p>");
        }
        out.raw("<p class=\"note\">Confidence: <b class=\"");
        out.raw(tone).raw("\">").text(answer.confidence).raw("</b>");
        out.text(study::counted(answer)).raw("</p></article>");
    }
    if let Some(note) = study.correction_note() {
        out.raw("<p class=\"note\">").text(note).raw("</p>");
    }
    for UnansweredQuestions { heading, why, asks } in study::unanswered(study) {
        out.raw("<article class=\"answer\"><h3 class=\"warn\">").text(heading).raw("</h3><p>");
        out.text(why).raw("</p><ul>");
        for ask in asks {
            out.raw("<li>").text(ask).raw("</li>");
        }
        out.raw("</ul></article>");
    }
    let best = study::best_choices(study);
    if !best.is_empty() {
        folded_tables(out, "The best choice at each level of what is given", &best);
    }
    if let Some(effects) = study::effects(study) {
        folded_tables(out, "Every comparison, with sizes and intervals", &[effects]);
    }
    let fronts = study::fronts(study);
    if !fronts.is_empty() {
        folded_tables(out, "The cells on and behind the fronts", &fronts);
    }
    let loads = study::graduated_tables(study);
    if !loads.is_empty() {
        folded_tables(out, "Every level of the graduated load", &loads);
    }
}

fn figures_of(out: &mut Markup, study: &StudyReport) {
    let shown = study.figures();
    if shown.is_empty() {
        out.raw("<p class=\"note\">No run has what the figures show; see ");
        out.raw("<a href=\"#missing\">what is missing</a>.</p>");
    }
    for one in &shown {
        figures::figure(out, one);
    }
}

fn optional_table(out: &mut Markup, own: Option<Table>) {
    if let Some(own) = own {
        table::table(out, &own);
    }
}

fn titled_tables(out: &mut Markup, tables: &[Table]) {
    for own in tables {
        out.raw("<h4>").text(&own.title).raw("</h4>");
        table::table(out, own);
    }
}

fn folded_tables(out: &mut Markup, summary: &'static str, tables: &[Table]) {
    out.raw("<details open><summary>").raw(summary).raw("</summary>");
    for own in tables {
        if tables.len() > 1 {
            out.raw("<h4>").text(&own.title).raw("</h4>");
        }
        table::table(out, own);
    }
    out.raw("</details>");
}
