//! The answers of a checkpoint, together with the bytes that they were read from: a session adds one to thousands, and
//! need not write the others anew.

use std::ops::{Deref, Range};
use std::sync::Arc;

use indexmap::IndexMap;

use super::Answer;

/// Question to answer, in the order of the file. Read it as the map that it is.
///
/// Two are equal when their maps are, wherever they were read from.
#[derive(Debug, Clone, Default)]
pub struct Answers {
    map: IndexMap<String, Answer>,
    /// Where the first answers stand as they would be written.
    kept: Option<Kept>,
}

/// Answers that stand in a file byte for byte as they would be written.
#[derive(Debug, Clone)]
struct Kept {
    file: Arc<Vec<u8>>,
    /// From behind the opening brace to the end of the last answer.
    span: Range<usize>,
    /// How many, from the first.
    count: usize,
}

impl Answers {
    /// Records an answer. Returns the one that the question had before, whose place it takes; a new one comes last.
    pub fn insert(&mut self, question: String, answer: Answer) -> Option<Answer> {
        let (index, earlier) = self.map.insert_full(question, answer);
        if self.kept.as_ref().is_some_and(|kept| index < kept.count) {
            self.kept = None;
        }
        earlier
    }

    /// Says that all of them stand in `file` at `span` as they would be written.
    pub(super) fn keep(&mut self, file: Arc<Vec<u8>>, span: Range<usize>) {
        self.kept = Some(Kept { file, span, count: self.map.len() });
    }

    /// The bytes of the first answers, and how many those are.
    pub(super) fn kept(&self) -> (&[u8], usize) {
        match &self.kept {
            Some(kept) => (&kept.file[kept.span.clone()], kept.count),
            None => (&[], 0),
        }
    }
}

impl Deref for Answers {
    type Target = IndexMap<String, Answer>;

    fn deref(&self) -> &Self::Target {
        &self.map
    }
}

impl From<IndexMap<String, Answer>> for Answers {
    fn from(map: IndexMap<String, Answer>) -> Self {
        Answers { map, kept: None }
    }
}

impl FromIterator<(String, Answer)> for Answers {
    fn from_iter<I: IntoIterator<Item = (String, Answer)>>(answers: I) -> Self {
        IndexMap::from_iter(answers).into()
    }
}

impl<'a> IntoIterator for &'a Answers {
    type Item = (&'a String, &'a Answer);
    type IntoIter = indexmap::map::Iter<'a, String, Answer>;

    fn into_iter(self) -> Self::IntoIter {
        self.map.iter()
    }
}

impl PartialEq for Answers {
    fn eq(&self, other: &Self) -> bool {
        self.map == other.map
    }
}

impl Eq for Answers {}
