//! The corpus: a folder of Markdown files, cut into numbered sections that can be cited.
//!
//! A section begins with a line `## N. Title` and is cited as `file#N`, where `file` is the file's name without `.md`. What stands before
//! the first section belongs to section 1; a file without any section is section 1 as a whole. Files are in the order of their names.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::{builtin, digest, files};

/// One section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// The file's name without `.md`.
    pub file: String,
    /// The number in its heading.
    pub number: u32,
    /// The title in its heading.
    pub title: String,
    /// Everything below the heading, without blank lines at either end.
    pub text: String,
}

impl Section {
    /// The label by which it is cited: `file#N`.
    pub fn cite(&self) -> String {
        format!("{}#{}", self.file, self.number)
    }

    /// SHA-256 of the title, a line feed and the text, in lower-case hexadecimal.
    pub fn sha256(&self) -> String {
        digest::sha256(format!("{}\n{}", self.title, self.text).as_bytes())
    }
}

/// All sections, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Corpus {
    sections: Vec<Section>,
}

/// Why there is no corpus.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// The folder or a file in it cannot be read.
    #[error("{}: cannot read the corpus: {source}", path.display())]
    Read {
        /// The folder or file.
        path: PathBuf,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// A file is not UTF-8.
    #[error("{}: not UTF-8 text; save the file as UTF-8", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// The folder holds no Markdown.
    #[error("{}: no Markdown file (`*.md`) in this folder", path.display())]
    Empty {
        /// The folder.
        path: PathBuf,
    },
    /// A citation of this section would be ambiguous.
    #[error(
        "{}, line {line}: section {number} is there twice; each number may stand once in a file", path.display()
    )]
    Twice {
        /// The file.
        path: PathBuf,
        /// Line of the second heading, from 1.
        line: usize,
        /// The number.
        number: u32,
    },
}

impl CorpusError {
    /// The same error, for a file that is in `folder`.
    fn within(mut self, folder: &Path) -> Self {
        if let CorpusError::Twice { path, .. } = &mut self {
            *path = folder.join(&*path);
        }
        self
    }
}

impl Corpus {
    /// The corpus that is compiled in.
    ///
    /// # Errors
    ///
    /// None in a released build: a test reads it.
    pub fn built_in() -> Result<Self, CorpusError> {
        Self::from_files(builtin::CORPUS.iter().copied())
    }

    /// The corpus in a folder; folders within it are not searched.
    ///
    /// # Errors
    ///
    /// [`CorpusError`].
    pub fn load(folder: &Path) -> Result<Self, CorpusError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| CorpusError::Read { path, source }
        };
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(failed(folder))? {
            let path = entry.map_err(failed(folder))?.path();
            if path.extension() == Some(OsStr::new("md")) && !path.is_dir() {
                paths.push(path);
            }
        }
        if paths.is_empty() {
            return Err(CorpusError::Empty { path: folder.into() });
        }
        paths.sort();
        let mut texts = Vec::new();
        for path in paths {
            // What cannot be read must be heard of, a link that leads to nothing as well: answers would miss it in silence.
            let bytes = files::read(&path).map_err(failed(&path))?;
            let stem = path.file_stem().and_then(OsStr::to_str).map(str::to_owned);
            match (stem, String::from_utf8(bytes)) {
                (Some(stem), Ok(text)) => texts.push((stem, text)),
                _ => return Err(CorpusError::NotText { path }),
            }
        }
        Self::from_files(texts.iter().map(|(stem, text)| (stem.as_str(), text.as_str())))
            .map_err(|error| error.within(folder))
    }

    /// A corpus of `(file name without .md, content)`, in the order given.
    ///
    /// # Errors
    ///
    /// [`CorpusError::Twice`].
    pub fn from_files<'a>(
        files: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, CorpusError> {
        let mut sections = Vec::new();
        for (file, content) in files {
            sections.extend(parse(file, content)?);
        }
        Ok(Corpus { sections })
    }

    /// All sections, in order.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// The section with this label.
    pub fn get(&self, cite: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.cite() == cite)
    }
}

fn parse(file: &str, content: &str) -> Result<Vec<Section>, CorpusError> {
    let mut sections: Vec<Section> = Vec::new();
    let mut preamble = String::new();
    for (index, line) in content.trim_start_matches('\u{feff}').lines().enumerate() {
        if let Some((number, title)) = heading(line) {
            if sections.iter().any(|section| section.number == number) {
                let path = PathBuf::from(format!("{file}.md"));
                return Err(CorpusError::Twice { path, line: index + 1, number });
            }
            sections.push(Section {
                file: file.to_owned(),
                number,
                title: title.to_owned(),
                text: std::mem::take(&mut preamble),
            });
        } else {
            let text = sections.last_mut().map_or(&mut preamble, |section| &mut section.text);
            text.push_str(line);
            text.push('\n');
        }
    }
    if sections.is_empty() && !preamble.trim().is_empty() {
        sections.push(Section {
            file: file.to_owned(),
            number: 1,
            title: file.to_owned(),
            text: preamble,
        });
    }
    for section in &mut sections {
        section.text = section.text.trim().to_owned();
    }
    Ok(sections)
}

/// Number and title of a line `## N. Title`.
fn heading(line: &str) -> Option<(u32, &str)> {
    let (number, title) = line.strip_prefix("## ")?.split_once(". ")?;
    if !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let title = title.trim();
    (!title.is_empty()).then_some((number.parse().ok()?, title))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_cut_at_numbered_headings_only() {
        let content = "# Head\n\nbefore\n\n## 1. First title\n\ntext\n## Not numbered\nmore\r\n### 2. deeper\n\n## 3. Third\n\nlast\n";
        let sections = parse("file", content).unwrap();
        assert_eq!(sections.len(), 2);
        assert_eq!(sections[0].cite(), "file#1");
        assert_eq!(sections[0].title, "First title");
        assert_eq!(
            sections[0].text,
            "# Head\n\nbefore\n\n\ntext\n## Not numbered\nmore\n### 2. deeper"
        );
        assert_eq!(sections[1].cite(), "file#3");
        assert_eq!(sections[1].text, "last");
    }

    #[test]
    fn a_file_without_sections_is_section_one() {
        let sections = parse("plain", "just text\n").unwrap();
        assert_eq!(sections[0].cite(), "plain#1");
        assert_eq!(sections[0].text, "just text");
        assert!(parse("blank", "\n \n").unwrap().is_empty());
    }

    #[test]
    fn the_same_number_twice_is_an_error_that_names_the_line() {
        let error = parse("file", "## 1. A\n\n## 1. B\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "file.md, line 3: section 1 is there twice; each number may stand once in a file"
        );
    }

    #[test]
    fn a_change_of_title_or_text_changes_the_digest() {
        let base = Section { file: "f".into(), number: 1, title: "t".into(), text: "x".into() };
        // printf 't\nx' | sha256sum
        assert_eq!(
            base.sha256(),
            "8e2cbe3b93266a53e7bb3cb6ff01ab5e8e8559793942ffa6abaa7ff665d8caf5"
        );
        let retitled = Section { title: "u".into(), ..base.clone() };
        assert_ne!(base.sha256(), retitled.sha256());
    }
}
