//! What a study varied, checked, asked and drew. Kept in the results file, so that it can be
//! interpreted without the study file.
//!
//! The tables `[[checks]]`, `[[questions]]` and `[[figures]]` of a study and its `published.toml`
//! are read into these very types.

mod published;
mod text;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use published::{
    PublishedClaim, PublishedFigures, PublishedFinding, PublishedPoint, PublishedSeries,
};
pub use text::{LevelText, Texts};

use crate::run::RunSettings;

/// The level of each factor, by its name.
pub type FactorLevels = BTreeMap<String, String>;

/// The level of a factor that cannot be set on this machine.
pub const AS_FOUND: &str = "as found";

/// The design of one execution; empty for a measurement without a study, for a study that varies
/// nothing, and in files of older versions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Design {
    pub kind: DesignKind,
    /// In the order in which the study has them.
    pub factors: Vec<Factor>,
    /// The cell around which a design varies one factor at a time; empty otherwise.
    pub baseline: FactorLevels,
    /// Cells of the design that were not run here, each with the reason.
    pub skipped: Vec<SkippedCell>,
    pub adaptive: Option<AdaptiveRepeats>,
    /// The most additional repeats of a cell while fewer of its runs are valid than there are
    /// repeats.
    #[serde(default)]
    pub spare_repeats: u32,
    pub checks: Vec<CheckSpec>,
    pub questions: Vec<Question>,
    pub figures: Vec<FigureSpec>,
    /// Published numbers that the study is compared with.
    pub published: Option<PublishedFigures>,
    /// The smaller (or larger) version of the study that was run instead of the study itself.
    pub scale: Option<ChosenScale>,
    /// A name of `platforms/`: what this machine costs.
    pub platform: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DesignKind {
    /// Every combination of levels.
    #[default]
    Factorial,
    /// The baseline, and each level of each factor varied alone.
    OneAtATime,
    /// The cells that the study lists.
    List,
}

/// Something that a study varies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Factor {
    pub name: String,
    /// The keys of the study that it sets: `knobs.smt`, `measure.rate`.
    pub sets: Vec<String>,
    /// In the order in which the study has them, as they stand in a run's `factor.NAME`; of a
    /// factor that cannot be turned on this machine only [`AS_FOUND`].
    pub levels: Vec<String>,
    /// The conditions under which it varies; everywhere if empty.
    #[serde(default)]
    pub within: Conditions,
    /// Whether its levels are given, as a request rate is, or to be chosen, as a configuration is.
    /// None: derived from what it sets, see [`Factor::is_given`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given: Option<bool>,
}

/// Keys of a study that describe the load and its data, not what serves them.
const GIVEN_KEYS: [&str; 5] = ["measure.rate", "data.", "workloads.", "sequence", "beside."];

impl Factor {
    /// Whether its levels are given and not chosen: answers name the best choice at each of them,
    /// never across them.
    pub fn is_given(&self) -> bool {
        let describes = |key: &String| GIVEN_KEYS.iter().any(|start| key.starts_with(start));
        self.given.unwrap_or_else(|| !self.sets.is_empty() && self.sets.iter().all(describes))
    }

    /// The setting of a run that holds its level. A run outside [`Factor::within`] has none.
    pub fn setting(&self) -> String {
        setting_of(&self.name)
    }
}

/// `factor.NAME`: the setting of a run that holds the level of a factor.
pub fn setting_of(factor: &str) -> String {
    format!("factor.{factor}")
}

impl Design {
    pub fn is_empty(&self) -> bool {
        *self == Design::default()
    }

    pub fn factor(&self, name: &str) -> Option<&Factor> {
        self.factors.iter().find(|factor| factor.name == name)
    }

    /// What is given and not chosen: the workload, and every factor that [`Factor::is_given`].
    pub fn given(&self) -> Vec<&str> {
        let factors = self.factors.iter().filter(|factor| factor.is_given());
        factors.map(|factor| factor.name.as_str()).chain(["workload"]).collect()
    }

    /// The metrics of its questions, figures and published findings, by their names.
    pub fn metrics(&self) -> impl Iterator<Item = &String> {
        let findings = self.published.iter().flat_map(|published| &published.findings);
        let claims = findings.flat_map(|finding| &finding.claims);
        let questions = self.questions.iter().flat_map(Question::metrics);
        let figures = self.figures.iter().map(|figure| &figure.y);
        questions.chain(figures).chain(claims.map(|claim| &claim.metric))
    }

    /// A run's levels of the factors that vary there.
    pub fn levels_of(&self, settings: &RunSettings) -> FactorLevels {
        let level =
            |factor: &Factor| Some((factor.name.clone(), settings.get(&factor.setting())?.clone()));
        self.factors.iter().filter_map(level).collect()
    }
}

/// What must hold, by the name of a factor or of a setting (`store`, `workload`): any of its
/// values. Empty conditions hold everywhere.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Conditions(pub BTreeMap<String, Texts>);

impl Conditions {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether they hold in a run with these settings; a name is a factor's first.
    pub fn hold(&self, settings: &RunSettings) -> bool {
        self.hold_by(|name| value_of(settings, name))
    }

    /// Whether they hold where a name has this value.
    pub fn hold_by<'a>(&self, value: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.0.iter().all(|(name, wanted)| value(name).is_some_and(|value| wanted.contains(value)))
    }
}

/// The level of a factor of this name in a run, else its setting of this name.
pub fn value_of<'a>(settings: &'a RunSettings, name: &str) -> Option<&'a str> {
    settings.get(&setting_of(name)).or_else(|| settings.get(name)).map(String::as_str)
}

/// A cell that was not run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkippedCell {
    pub levels: FactorLevels,
    pub why: String,
}

/// `adaptive`: repeats until the 95 % interval of the median is narrow enough.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdaptiveRepeats {
    /// A name of `--json`.
    pub metric: String,
    /// Half the interval's width as a share of the median.
    pub width: f64,
    /// The most repeats of a cell.
    pub most: u32,
}

/// `[[checks]]`: a relation that must hold in every run; a breach is a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckSpec {
    /// `latency_us.server.any.p99 <= latency_us.service.read.p99`
    pub that: String,
    /// The runs in which it must hold; all if it is not given.
    #[serde(default)]
    pub when: Option<String>,
    #[serde(default)]
    pub why: Option<String>,
}

/// `[[questions]]`: each is answered in a sentence with its confidence.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Question {
    pub ask: String,
    pub metric: Option<String>,
    /// Its main effect.
    pub factor: Option<String>,
    /// Their main effects and interactions.
    pub factors: Vec<String>,
    /// The metrics of a Pareto front.
    pub pareto: Vec<String>,
    /// The metric by which one choice is the best at each level of what is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best: Option<String>,
    /// What makes the answer of a question after an effect a yes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub yes_if: Option<YesIf>,
    /// The factor, or setting, whose levels graduate the load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graduated: Option<String>,
    /// The runs from which it is answered.
    #[serde(rename = "where")]
    pub within: Conditions,
}

impl Question {
    /// The metrics that it is answered from, by their names.
    pub fn metrics(&self) -> impl Iterator<Item = &String> {
        self.metric.iter().chain(&self.pareto).chain(&self.best)
    }
}

/// The significant difference that answers a question by yes: of the levels of one factor against
/// its first, or of several factors an interaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum YesIf {
    /// In any direction.
    Differs,
    /// Of one factor: a level is better than the first.
    Better,
    /// Of one factor: a level is worse than the first.
    Worse,
}

/// `[[figures]]`: one figure of the study's own layout.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FigureSpec {
    pub id: String,
    pub title: String,
    pub kind: FigureKind,
    /// A factor, or a setting such as `workload`, `store` or `threads`.
    pub x: String,
    /// A metric by its name of `--json`.
    pub y: String,
    /// One colour for each of its values.
    pub series: Option<String>,
    /// One small figure for each of its values.
    pub panels: Option<String>,
    /// The runs that it shows.
    #[serde(rename = "where")]
    pub within: Conditions,
    /// [`PublishedSeries::id`] of the published points that are drawn with it.
    pub published: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FigureKind {
    #[default]
    Bars,
    Lines,
}

/// `[scale.NAME]` as it was chosen: what was substituted, and what that means for the results.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChosenScale {
    pub name: String,
    pub note: String,
    /// Key and value, as text.
    pub set: BTreeMap<String, String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> RunSettings {
        [("factor.smt", "on"), ("smt", "other"), ("store", "memcached")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into()
    }

    fn conditions(pairs: &[(&str, &[&str])]) -> Conditions {
        let texts = |values: &[&str]| Texts(values.iter().map(|v| (*v).to_owned()).collect());
        Conditions(pairs.iter().map(|(k, v)| ((*k).to_owned(), texts(v))).collect())
    }

    #[test]
    fn a_factor_takes_precedence_over_a_setting_of_its_name() {
        assert_eq!(value_of(&settings(), "smt"), Some("on"));
        assert_eq!(value_of(&settings(), "store"), Some("memcached"));
        assert_eq!(value_of(&settings(), "idle"), None);
    }

    #[test]
    fn conditions_hold_if_each_has_one_of_its_values() {
        assert!(Conditions::default().hold(&settings()));
        assert!(
            conditions(&[("smt", &["off", "on"]), ("store", &["memcached"])]).hold(&settings())
        );
        assert!(!conditions(&[("smt", &["on"]), ("store", &["redis"])]).hold(&settings()));
        assert!(!conditions(&[("idle", &["c1"])]).hold(&settings()), "a run without the factor");
    }

    #[test]
    fn an_empty_design_reads_as_one() {
        let design: Design = serde_json::from_str("{}").unwrap();
        assert!(design.is_empty());
        let text = serde_json::to_string(&design).unwrap();
        assert_eq!(serde_json::from_str::<Design>(&text).unwrap(), design);
    }
}
