//! Which sections a question is answered from: BM25 over title and text.
//!
//! `score = sum over the words w of the question of idf(w) * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / mean length))`, with
//! `idf(w) = ln((n - df + 0.5) / (df + 0.5) + 1)`. A word that stands twice in the question counts twice.
//!
//! It is written out here because no library gave these numbers to 1e-9: `bm25` 2.3 and `tantivy` compute in single precision, the latter
//! with `k1` fixed at 1.2 and rounded lengths, and `probly-search` 2.0, not released since July 2024, takes a word for every word that
//! begins with it and leaves equal sections in no order.

use std::collections::HashMap;

use crate::corpus::Section;

/// Sections that a session gets at most.
pub const SOURCES: usize = 3;

const K1: f64 = 1.5;
const B: f64 = 0.75;

/// The best sections for `question`, at most `limit`, the best first; equal ones in the order of the corpus; none without a common word.
pub fn search<'a>(sections: &'a [Section], question: &str, limit: usize) -> Vec<&'a Section> {
    let mut ranked: Vec<(f64, &Section)> =
        scores(sections, question).into_iter().zip(sections).collect();
    ranked.retain(|(score, _)| *score > 0.0);
    // The sort is stable: ties keep their order.
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
    ranked.into_iter().take(limit).map(|(_, section)| section).collect()
}

/// The score of each section, in the order of the sections.
pub fn scores(sections: &[Section], question: &str) -> Vec<f64> {
    let documents: Vec<Document> = sections.iter().map(Document::new).collect();
    let count = documents.len() as f64;
    let mean_length = documents.iter().map(|d| d.length).sum::<f64>() / count;
    let mut scores = vec![0.0; documents.len()];
    for word in words(question) {
        let with_word = documents.iter().filter(|d| d.counts.contains_key(&word)).count() as f64;
        let idf = ((count - with_word + 0.5) / (with_word + 0.5) + 1.0).ln();
        for (score, document) in scores.iter_mut().zip(&documents) {
            let Some(tf) = document.counts.get(&word) else {
                continue;
            };
            let norm = 1.0 - B + B * document.length / mean_length;
            *score += idf * tf * (K1 + 1.0) / (tf + K1 * norm);
        }
    }
    scores
}

/// The words of a text: runs of `[a-z0-9]` once it is in lower case.
pub fn words(text: &str) -> Vec<String> {
    text.to_lowercase()
        .split(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit()))
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

struct Document {
    counts: HashMap<String, f64>,
    length: f64,
}

impl Document {
    fn new(section: &Section) -> Self {
        let words = words(&format!("{} {}", section.title, section.text));
        let length = words.len() as f64;
        let mut counts = HashMap::new();
        for word in words {
            *counts.entry(word).or_insert(0.0) += 1.0;
        }
        Document { counts, length }
    }
}
