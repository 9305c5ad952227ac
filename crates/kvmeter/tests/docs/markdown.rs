//! What a document consists of, as far as the checks need it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

pub struct Document {
    /// Relative to the workspace.
    pub path: PathBuf,
    pub text: String,
}

/// A heading, a paragraph, an item of a list or a cell of a table: what a reader takes in as one text.
pub struct Block {
    pub line: usize,
    /// Its level, where it is a heading.
    pub heading: Option<usize>,
    /// Without markup; each code span is one word that holds no letter.
    pub prose: String,
    /// With what the code spans say.
    pub literal: String,
    pub code: Vec<String>,
}

pub struct Link {
    pub line: usize,
    pub target: String,
}

/// What stands for a code span in prose.
pub const CODE: &str = "\u{25a1}";

impl Document {
    pub fn read(root: &Path, path: PathBuf) -> Document {
        let text = fs::read_to_string(root.join(&path))
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Document { path, text }
    }

    fn parse(&self) -> impl Iterator<Item = (Event<'_>, usize)> {
        let parser = Parser::new_ext(&self.text, Options::ENABLE_TABLES).into_offset_iter();
        parser.map(|(event, range)| (event, self.line(range.start)))
    }

    fn line(&self, offset: usize) -> usize {
        self.text[..offset].matches('\n').count() + 1
    }

    pub fn links(&self) -> Vec<Link> {
        self.parse()
            .filter_map(|(event, line)| match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    Some(Link { line, target: dest_url.into_string() })
                }
                _ => None,
            })
            .collect()
    }

    /// Its blocks of Rust, each line with its number.
    pub fn rust(&self) -> Vec<(usize, String)> {
        let mut lines = Vec::new();
        let mut is_rust = false;
        for (event, line) in self.parse() {
            match event {
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => {
                    is_rust = &*language == "rust";
                }
                Event::Text(text) if is_rust => {
                    let numbered = text.lines().enumerate();
                    lines.extend(numbered.map(|(after, text)| (line + after, text.to_owned())));
                }
                Event::End(TagEnd::CodeBlock) => is_rust = false,
                _ => {}
            }
        }
        lines
    }

    /// The text of all its code blocks.
    pub fn code_blocks(&self) -> String {
        let mut text = String::new();
        let mut in_code = false;
        for (event, _) in self.parse() {
            match event {
                Event::Start(Tag::CodeBlock(_)) => in_code = true,
                Event::End(TagEnd::CodeBlock) => in_code = false,
                Event::Text(code) if in_code => text.push_str(&code),
                _ => {}
            }
        }
        text
    }

    pub fn blocks(&self) -> Vec<Block> {
        let mut blocks: Vec<Block> = Vec::new();
        let mut fresh = true;
        let mut heading = None;
        let mut in_code = false;
        for (event, line) in self.parse() {
            match event {
                Event::Start(Tag::CodeBlock(_)) => in_code = true,
                Event::End(TagEnd::CodeBlock) => in_code = false,
                Event::Start(Tag::Heading { level, .. }) => {
                    heading = Some(level as usize);
                    fresh = true;
                }
                Event::End(TagEnd::Heading(_)) => {
                    heading = None;
                    fresh = true;
                }
                Event::Start(Tag::Paragraph | Tag::Item | Tag::TableCell)
                | Event::End(TagEnd::Paragraph | TagEnd::Item | TagEnd::TableCell) => fresh = true,
                Event::Text(_) | Event::Code(_) | Event::SoftBreak | Event::HardBreak
                    if !in_code =>
                {
                    if fresh {
                        let (prose, literal) = (String::new(), String::new());
                        blocks.push(Block { line, heading, prose, literal, code: Vec::new() });
                        fresh = false;
                    }
                    add(blocks.last_mut().unwrap(), event);
                }
                _ => {}
            }
        }
        blocks
    }

    /// The anchors of its headings, as GitHub and mdbook make them.
    pub fn anchors(&self) -> Vec<String> {
        let mut seen = BTreeMap::<String, usize>::new();
        let headings = self.blocks().into_iter().filter(|block| block.heading.is_some());
        headings
            .map(|block| {
                let anchor = anchor(&block.literal);
                let times = seen.entry(anchor.clone()).or_default();
                *times += 1;
                if *times == 1 { anchor } else { format!("{anchor}-{}", *times - 1) }
            })
            .collect()
    }

    /// The blocks below the heading of this name, up to the next one of its level.
    pub fn section(&self, name: &str) -> Vec<Block> {
        let mut blocks = self.blocks().into_iter().skip_while(|block| !block.is_heading(name));
        let level = blocks.next().and_then(|block| block.heading).unwrap_or_else(|| {
            panic!("{} has no heading {name:?}", self.path.display());
        });
        blocks.take_while(|block| block.heading.is_none_or(|other| other > level)).collect()
    }
}

impl Block {
    fn is_heading(&self, name: &str) -> bool {
        self.heading.is_some() && self.literal == name
    }
}

fn add(block: &mut Block, event: Event) {
    match event {
        Event::Text(text) => {
            block.prose.push_str(&text);
            block.literal.push_str(&text);
        }
        Event::Code(code) => {
            block.prose.push_str(CODE);
            block.literal.push_str(&code);
            block.code.push(code.into_string());
        }
        _ => {
            block.prose.push(' ');
            block.literal.push(' ');
        }
    }
}

fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect::<String>().to_lowercase()
}
