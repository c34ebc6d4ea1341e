//! `verify`: loads the checkpoint and says what is in it; with `--notes`, whether the notes still hold. Writes nothing.

use serde_json::json;

use super::args::VerifyArgs;
use super::error::CliError;
use super::out::{Out, say};
use super::place::{self, Place};
use crate::digest;
use crate::drift::{self, Report};
use crate::exit::Exit;
use crate::words::counted;

pub(super) fn verify(args: &VerifyArgs, out: &mut Out) -> Result<Exit, CliError> {
    let place = Place::open(&args.place)?;
    let loaded = place.load()?;
    let bytes = loaded.bytes.as_deref().map_or(&[][..], Vec::as_slice);
    let checkpoint = &loaded.checkpoint;
    let report = if args.notes {
        let corpus = place::corpus(args.corpus.as_deref())?;
        Some(drift::check(checkpoint, &corpus, &place.read_log(Some(&loaded))))
    } else {
        None
    };
    if args.place.json {
        out.json(&json!({
            "state": place.path.display().to_string(),
            "bytes": bytes.len(), "sha256": digest::sha256(bytes),
            "queue": checkpoint.queue.len(), "notes": checkpoint.notes.len(), "answers": checkpoint.answers.len(),
            "pending": checkpoint.pending.len(), "sessions_run": checkpoint.sessions_run,
            "drift": report.as_ref().map(findings_json),
        }));
    } else {
        out.line(&format!(
            "{}: a whole checkpoint, {} bytes, SHA-256 {}",
            place.path.display(),
            bytes.len(),
            digest::sha256(bytes)
        ));
        out.line(&format!(
            "  {} in the queue, {}, {} answered, {} waiting for a person, session counter {}",
            checkpoint.queue.len(),
            counted(checkpoint.notes.len(), "note"),
            checkpoint.answers.len(),
            checkpoint.pending.len(),
            checkpoint.sessions_run
        ));
        if let Some(report) = &report {
            print_report(report, out);
        }
    }
    let drifted = report.map_or(0, |report| report.findings.len());
    if drifted > 0 {
        say(&format!(
            "drift: {}: {} in its notes",
            place.path.display(),
            counted(drifted, "finding")
        ));
        return Ok(Exit::Failed);
    }
    Ok(Exit::Done)
}

fn print_report(report: &Report, out: &mut Out) {
    out.line(&format!(
        "  checked against the sources: {}; without citations: {}",
        counted(report.checked, "note"),
        report.without_citations
    ));
    for finding in &report.findings {
        out.line(&format!("{finding}"));
        out.line(&format!("  note: {}", finding.note));
    }
}

fn findings_json(report: &Report) -> serde_json::Value {
    let findings: Vec<_> = report
        .findings
        .iter()
        .map(|f| json!({"kind": f.drift.name(), "section": f.section, "note": f.note, "says": f.to_string()}))
        .collect();
    json!({"checked": report.checked, "without_citations": report.without_citations, "findings": findings})
}
