//! What is wrong with a scenario file, where, and what was expected there.

use crate::wrap::{misleads, visible, wrapped};
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A mistake in a file whose text is at hand, by the bytes that it covers.
#[derive(Debug, Clone)]
pub(super) struct Mistake {
    pub(super) span: Range<usize>,
    pub(super) found: String,
    pub(super) expected: String,
    pub(super) nearest: Option<String>,
}

impl Mistake {
    pub(super) fn new(
        span: Range<usize>,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> Self {
        Mistake { span, found: found.into(), expected: expected.into(), nearest: None }
    }

    pub(super) fn or(mut self, nearest: Option<impl Into<String>>) -> Self {
        self.nearest = nearest.map(Into::into);
        self
    }

    /// The mistake with its place in the file.
    pub(super) fn in_file(self, file: &Path, text: &str) -> ScenarioError {
        ScenarioError {
            file: file.to_owned(),
            place: Some(Box::new(Place::of(text, self.span))),
            found: self.found,
            expected: self.expected,
            nearest: self.nearest,
        }
    }
}

/// One mistake in a scenario file.
///
/// `Display` gives one line, as editors and CI logs understand it; [`render`](Self::render) gives the form for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioError {
    file: PathBuf,
    place: Option<Box<Place>>,
    found: String,
    expected: String,
    nearest: Option<String>,
}

/// Where in a file, with the source line. Lines and columns count from 1, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    line: usize,
    column: usize,
    /// How many characters of the line are meant, at least 1.
    length: usize,
    source: String,
}

impl Place {
    fn of(text: &str, span: Range<usize>) -> Place {
        let start = text.floor_char_boundary(span.start.min(text.len()));
        let end = text.floor_char_boundary(span.end.clamp(start, text.len()));
        let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let source = text[line_start..].lines().next().unwrap_or_default();
        let before = text[line_start..start].chars().count();
        let rest = source.chars().count().saturating_sub(before);
        Place {
            line: text[..start].matches('\n').count() + 1,
            column: before + 1,
            length: text[start..end].chars().count().min(rest).max(1),
            source: source.to_owned(),
        }
    }
}

impl ScenarioError {
    /// A mistake that has no line: the file or folder itself.
    pub(super) fn whole(
        file: &Path,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> Self {
        ScenarioError {
            file: file.to_owned(),
            place: None,
            found: found.into(),
            expected: expected.into(),
            nearest: None,
        }
    }

    /// The file, or the folder that should have held one.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The line, from 1; `None` where the file as a whole is meant.
    pub fn line(&self) -> Option<usize> {
        self.place.as_ref().map(|place| place.line)
    }

    /// The column, from 1, in characters; `None` where the file as a whole is meant.
    pub fn column(&self) -> Option<usize> {
        self.place.as_ref().map(|place| place.column)
    }

    /// What was found.
    pub fn found(&self) -> &str {
        &self.found
    }

    /// What was expected instead.
    pub fn expected(&self) -> &str {
        &self.expected
    }

    /// The nearest right name, where there is one.
    pub fn nearest(&self) -> Option<&str> {
        self.nearest.as_deref()
    }

    /// The mistake with its source line, a caret below it and a line feed at the end, for a terminal of `columns`.
    pub fn render(&self, columns: usize) -> String {
        let mut out = wrapped("error: ", &visible(&self.found), columns);
        let gutter = self.place.as_ref().map_or(0, |place| place.line.to_string().len());
        match &self.place {
            None => out += &format!("  --> {}\n", self.shown_file()),
            Some(place) => {
                let (source, caret) = place.window(columns.saturating_sub(gutter + 4));
                out += &format!(
                    "{:gutter$}--> {}:{}:{}\n",
                    "",
                    self.shown_file(),
                    place.line,
                    place.column
                );
                out += &format!("{:gutter$} |\n{} | {source}\n", "", place.line);
                out += &format!("{:gutter$} | {caret}\n", "");
            }
        }
        let expected = visible(&self.expected);
        out += &wrapped(&format!("{:gutter$} = expected: ", ""), &expected, columns);
        if let Some(nearest) = &self.nearest {
            out += &wrapped(
                &format!("{:gutter$} = did you mean ", ""),
                &format!("`{}`?", visible(nearest)),
                columns,
            );
        }
        out
    }

    fn shown_file(&self) -> String {
        visible(&self.file.to_string_lossy())
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown_file())?;
        if let Some(place) = &self.place {
            write!(f, ":{}:{}", place.line, place.column)?;
        }
        write!(f, ": {}; expected {}", visible(&self.found), visible(&self.expected))?;
        match &self.nearest {
            Some(nearest) => write!(f, "; did you mean `{}`?", visible(nearest)),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ScenarioError {}

impl Place {
    /// The part of the source line that fits, and the line of carets below it.
    fn window(&self, columns: usize) -> (String, String) {
        const CONTEXT: usize = 12;
        let characters: Vec<char> = self.source.chars().collect();
        let start = match self.column - 1 + self.length.min(CONTEXT) {
            end if end <= columns => 0,
            _ => (self.column - 1).saturating_sub(CONTEXT),
        };
        let shown: String = characters
            .iter()
            .skip(start)
            .take(columns)
            .map(|&character| if misleads(character) { ' ' } else { character })
            .collect();
        let indent = self.column - 1 - start;
        let carets = self.length.min(columns.saturating_sub(indent)).max(1);
        (shown.trim_end().to_owned(), " ".repeat(indent) + &"^".repeat(carets))
    }
}
