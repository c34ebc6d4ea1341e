//! The verdict on a crash state: what survived, and where the recovery took it.

use std::path::{Path, PathBuf};

use super::control::{Controls, Ends, account};
use super::repeat::Counts;
use super::version::Versions;
use super::{Content, Image, Outcome, State, Verdict, Word};
use crate::op::What;

/// A crash state with all that is needed to judge it.
#[derive(Debug)]
pub struct CrashCase<'a> {
    /// What the run passes through.
    pub versions: &'a Versions,
    /// The number of versions that are older than the last one promised when it was cut.
    pub promised: usize,
    /// The undisturbed ends.
    pub controls: &'a Controls,
    /// Those of these versions.
    pub ends: &'a Ends,
    /// The state files at the crash point.
    pub survivor: &'a Image,
    /// An op that changes the tree was done since the survivor's version stood.
    pub stepped_on: bool,
    /// What the recovery made of it.
    pub outcome: &'a Outcome,
    /// What the scenario's own check said of the end, if it failed.
    pub check_failed: Option<&'a str>,
    /// More of a counted effect than in any control, in words.
    pub effect_repeated: Option<&'a str>,
    /// What the recovery made of the trees at which the run vouched for a journal.
    pub vouched: &'a [Outcome],
    /// Which files are state.
    pub state: &'a State,
}

/// Judges by the first verdict that fits.
pub fn judge_crash(case: &CrashCase<'_>) -> Verdict {
    let view = View::of(case);
    let outcome = case.outcome;
    if outcome.hung() {
        return Verdict::new(Word::Hung, "the recovery did not end within its time");
    }
    let files = case.state.paths.iter().chain(case.survivor.files.keys());
    if let Some(refusal) = outcome.refusal(files)
        && outcome.image == *case.survivor
    {
        return Verdict::new(Word::Refused, format!("the recovery gave up: {refusal}"));
    }
    if view.is_allowed_version()
        && outcome.success()
        && case.effect_repeated.is_none()
        && view.ends_right()
    {
        return view.standing_verdict();
    }
    if !view.is_version() && view.proved_end() {
        return view
            .checked(Word::Recovered, "what survived is no version, and the recovery mended it");
    }
    if let Some(journal) = view.journal()
        && view.is_allowed_version()
        && view.proved_end()
    {
        let why = format!("the recovery ended as from another version, by {}", journal.display());
        return view.checked(Word::Recovered, &why);
    }
    if let Some(repeated) = view.repeated() {
        return Verdict::new(Word::Repeated, repeated);
    }
    if !view.is_version() {
        return Verdict::new(Word::Torn, view.torn());
    }
    if !outcome.success() {
        return Verdict::new(
            Word::Crashed,
            format!("the recovery failed on a whole file: {}", account(outcome)),
        );
    }
    if view.restarted() {
        return Verdict::new(Word::Restarted, "the recovery ended as if there had been no file");
    }
    if let Some(lost) = view.lost() {
        return Verdict::new(Word::Lost, lost);
    }
    if let Some(journal) = view.journal()
        && view.vouched_end()
    {
        let why =
            format!("the recovery ended as from where the run vouched for {}", journal.display());
        return view.checked(Word::Recovered, &why);
    }
    // Ends can be compared, or the survivor would have been good for its bytes, or lost.
    Verdict::new(Word::Diverged, "the recovery ended elsewhere than from any version")
}

/// What the rules ask of a case, worked out once.
struct View<'a> {
    case: &'a CrashCase<'a>,
    /// What survived of the state files, without temp and lock files that happened to be there.
    survivor: Image,
    /// How many versions are older than the last one promised.
    promised: usize,
    /// Where the recovery ended, masked.
    end: Image,
}

impl<'a> View<'a> {
    fn of(case: &'a CrashCase<'a>) -> View<'a> {
        let (standing, promised) = (&case.ends.standing, case.promised);
        // A promise of what was struck off is one of what stood before it.
        let promised = match standing.get(promised) {
            Some(false) => standing[..promised].iter().rposition(|stands| *stands).unwrap_or(0),
            _ => promised,
        };
        let shapes = &case.versions.shapes;
        let familiar = |path: &Path| shapes.contains(path) || case.controls.shapes.contains(path);
        let end = case.state.without_strangers(&case.outcome.image, familiar);
        View {
            case,
            survivor: case.state.without_strangers(case.survivor, |path| shapes.contains(path)),
            promised,
            end: case.controls.masks.apply(&end),
        }
    }

    /// Positions of the versions that the survivor equals.
    fn positions(&self) -> impl Iterator<Item = usize> {
        let all = self.case.versions.all.iter().zip(&self.case.ends.standing).enumerate();
        all.filter(|(_, (version, stands))| **stands && version.image == self.survivor)
            .map(|(position, _)| position)
    }

    fn is_version(&self) -> bool {
        self.positions().next().is_some()
    }

    fn is_allowed_version(&self) -> bool {
        self.positions().any(|position| position >= self.promised)
    }

    /// The end is the survivor's own R(v), or ends cannot tell and the surviving bytes alone count.
    fn ends_right(&self) -> bool {
        let own = self.case.controls.end(&self.survivor);
        own.as_ref() == Some(&self.end) || !self.case.controls.ends_are_stable()
    }

    /// An end that is an allowed R(v) and could not have come about without the file.
    fn proved_end(&self) -> bool {
        self.may_prove()
            && !(0..self.promised).any(|position| self.is_end_of(position))
            && (self.promised..self.case.versions.all.len())
                .any(|position| self.is_end_of(position) && self.read_what_differs(position))
    }

    /// The recovery succeeded with an end that can be compared and that no file would not have given as well.
    fn may_prove(&self) -> bool {
        let controls = self.case.controls;
        let from_nothing = controls.began_with_state && self.is_end(&self.case.ends.none);
        self.case.outcome.success()
            && controls.ends_are_stable()
            && !from_nothing
            && self.case.effect_repeated.is_none()
    }

    /// The recovery ended there.
    fn is_end(&self, end: &Option<Image>) -> bool {
        end.as_ref() == Some(&self.end)
    }

    /// The end is R(v) of the version at this position.
    fn is_end_of(&self, position: usize) -> bool {
        self.case.ends.standing[position] && self.is_end(&self.case.ends.of[position])
    }

    /// Where the survivor is another than this version, the recovery overwrote nothing that it had not read. What survived
    /// whole needs no repair, and what a version does not have beside what it has, such as a log that was only begun, tells
    /// nothing.
    fn read_what_differs(&self, position: usize) -> bool {
        let image = &self.case.versions.all[position].image;
        let differs = |path: &PathBuf| {
            let version = image.files.get(path).filter(|content| **content != Content::Absent);
            let tells = version.is_some() || image.is_nothing();
            tells && version != self.survivor.files.get(path)
        };
        !self.case.outcome.unread.iter().any(differs)
    }

    /// A file that is no state, that the crash left and that the recovery read: what it tells, such as a rollback
    /// journal, takes a whole version to another one. The undisturbed recovery from that version has no such file.
    fn journal(&self) -> Option<&Path> {
        let outcome = self.case.outcome;
        let undisturbed = self.case.controls.of_version.get(&self.survivor)?;
        outcome.trace.events.iter().find_map(|event| match &event.what {
            What::Read { path, .. } if !outcome.image.files.contains_key(path) => {
                let left = outcome.start.get(path);
                (left.is_some() && left != undisturbed.start.get(path)).then_some(path.as_path())
            }
            _ => None,
        })
    }

    /// The end is one that the recovery has from where the run vouched for a journal.
    fn vouched_end(&self) -> bool {
        let is_end = |outcome: &Outcome| {
            outcome.success() && self.case.controls.masks.apply(&outcome.image) == self.end
        };
        self.may_prove() && self.case.vouched.iter().any(is_end)
    }

    fn standing_verdict(&self) -> Verdict {
        let last = self.positions().last().unwrap_or(0);
        let is_end = last + 1 == self.case.versions.all.len() && last > 0;
        if is_end || (last > 0 && !self.case.stepped_on) {
            self.checked(Word::New, "the state after the step survived")
        } else {
            self.checked(Word::Old, "the state before the step survived")
        }
    }

    /// A good verdict stands only if the scenario's own check agrees.
    fn checked(&self, word: Word, why: &str) -> Verdict {
        match self.case.check_failed {
            Some(said) => Verdict::new(
                Word::Diverged,
                format!("the scenario's check failed on the end: {said}"),
            ),
            None => Verdict::new(word, why),
        }
    }

    /// A counted effect happened more often than it may; or each file by itself is whole, and something stands in the
    /// end more often than it may.
    fn repeated(&self) -> Option<String> {
        let whole = |(path, content): (&PathBuf, &Content)| {
            self.case.versions.of_file.get(path).is_some_and(|known| known.contains(content))
        };
        if let Some(effect) = self.case.effect_repeated {
            return Some(effect.to_owned());
        }
        if !(self.is_version() || self.survivor.files.iter().all(whole)) {
            return None;
        }
        let counts = self.case.controls.counts();
        Counts::of(&self.case.outcome.image).repeated(counts.iter())
    }

    fn torn(&self) -> String {
        let what = match (self.case.outcome.success(), self.case.outcome.unread.is_empty()) {
            (false, _) => format!("recovery failed: {}", account(self.case.outcome)),
            (true, true) => "accepted: the recovery went on from it".to_owned(),
            (true, false) => "never read: the recovery writes its file without reading it (give a recovery that does)".to_owned(),
        };
        format!("what survived is no version; {what}")
    }

    fn restarted(&self) -> bool {
        let ends = self.case.ends;
        let from_start = ends.of.first().and_then(Option::as_ref);
        self.case.controls.began_with_state
            && self.is_end(&ends.none)
            && from_start != ends.none.as_ref()
    }

    fn lost(&self) -> Option<String> {
        let promised = self.promised;
        if self.positions().any(|position| position < promised) {
            return Some("what survived is older than what had been acknowledged".to_owned());
        }
        let older = &self.case.ends.of[..promised.min(self.case.ends.of.len())];
        let ends_older = older.iter().any(|end| self.is_end(end));
        ends_older.then(|| {
            "the recovery ended as from a state older than what had been acknowledged".to_owned()
        })
    }
}
