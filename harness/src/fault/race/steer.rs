//! Steers a run: asks a guide who goes on, and keeps programs from going round in circles.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use super::explore::{Choice, Moment, Side, Sides, Walk};
use super::random::Priorities;
use super::schedule::{Block, Schedule, Taken, letter, sign};
use crate::judge::shape;
use crate::op::touch::{Access, How, Object, Touch};
use crate::trace::{Director, Intent, Named, Part, Stand, Stepped, Turn};

/// A failing call that is made so often with the same answer, while nobody else changes anything, and more often than alone, is a
/// retry loop.
const FAILURES_IN_A_CIRCLE: u32 = 3;
/// The same for one that succeeds, such as looking at a file's time.
const LOOKS_IN_A_CIRCLE: u32 = 16;
/// So many steps in circles, with nobody who could do anything else, are for ever.
const MOST_IN_CIRCLES: u32 = 100;
/// More steps than this are not made.
const MOST_STEPS: usize = 20_000;

/// Who says who goes on.
#[derive(Debug, Clone)]
pub enum Guide {
    /// A new run of an exploration.
    Walk(Walk),
    /// An order that is known.
    Follow(Follow),
    /// By chance.
    Priorities(Priorities),
}

/// A known order, and how far it was followed.
#[derive(Debug, Clone, Default)]
pub struct Follow {
    schedule: Schedule,
    block: usize,
    in_block: u32,
    /// Where the run was not the one that the schedule is of, in words.
    departed: Option<String>,
}

/// A step that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// Who, and what, in words.
    pub taken: Taken,
    /// What the call returned; negative for an error number.
    pub result: i64,
    /// What it touched.
    pub touch: Touch,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Ending {
    /// All programs ended.
    #[default]
    Complete,
    /// It was broken off: the rest was run in another order.
    Known,
    /// It did not do what the run did that it follows: the step, and in words.
    Departed(String),
    /// All wait for each other, in words.
    Deadlock(String),
    /// All go round in circles, in words.
    Livelock(String),
    /// It has more steps than are made.
    TooLong,
}

/// A part of a file or folder, by a name in which numbers do not count.
type Name = (Part, String);

/// A step in words in which numbers do not count, and what the call returned.
type Attempt = (String, i64);

/// What the programs of a run changed and looked at, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Touched {
    changed: BTreeMap<Name, Sides>,
    looked: BTreeMap<Name, Sides>,
    /// How often one program made the same step at most, while nobody else changed anything.
    repeated: BTreeMap<Attempt, u32>,
}

/// What one program changes and another looks at, by name: whoever only looks at anything else need not be held.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contested {
    names: BTreeSet<Name>,
    known: Touched,
    /// How often a program makes the same step where it waits for nobody, once that is known: before, nobody is in a circle.
    usual: Option<BTreeMap<Attempt, u32>>,
}

impl Touched {
    fn add(&mut self, side: Side, intent: &Intent) {
        for named in &intent.named {
            let of = if named.changed { &mut self.changed } else { &mut self.looked };
            of.entry((named.part, shape(&named.path))).or_default().insert(side);
            for folder in folders(named) {
                self.looked.entry((Part::Entry, shape(folder))).or_default().insert(side);
            }
        }
    }
}

fn attempt(text: &str, result: i64) -> Attempt {
    (shape(Path::new(text)), result)
}

/// The greater of both for each.
fn join_most(known: &mut BTreeMap<Attempt, u32>, new: &BTreeMap<Attempt, u32>) {
    for (attempt, times) in new {
        let most = known.entry(attempt.clone()).or_default();
        *most = (*most).max(*times);
    }
}

/// Whoever follows a path looks up every name on it.
fn folders(named: &Named) -> impl Iterator<Item = &Path> {
    named.path.ancestors().skip(usize::from(named.part == Part::Entry))
}

impl Touched {
    /// Takes in what another run touched.
    pub fn join(&mut self, other: &Touched) {
        let all = [(&mut self.changed, &other.changed), (&mut self.looked, &other.looked)];
        for (known, new) in all {
            new.iter()
                .for_each(|(name, sides)| known.entry(name.clone()).or_default().join(*sides));
        }
        join_most(&mut self.repeated, &other.repeated);
    }
}

impl Contested {
    /// Takes in what a run touched in which the programs went one after another: what one repeats there is no waiting for another.
    pub fn learn_alone(&mut self, run: &Touched) {
        join_most(self.usual.get_or_insert_default(), &run.repeated);
        self.learn(run);
    }

    /// Takes in what a run touched; `false` where nothing more is contested by that.
    pub fn learn(&mut self, run: &Touched) -> bool {
        let before = self.names.len();
        self.known.join(run);
        for (name, changed) in &self.known.changed {
            let looked = self.known.looked.get(name).copied().unwrap_or_default();
            // Somebody else looks at it than the one who changes it.
            if changed.iter().any(|side| !looked.but(Sides::one(side)).is_empty()) {
                self.names.insert(name.clone());
            }
        }
        self.names.len() > before
    }

    /// Somebody else changes what the step looks at, or it changes something itself. A sync touches nothing that another could see,
    /// and is drawn all the same.
    fn concerns(&self, intent: &Intent) -> bool {
        let is_sync = intent.named.is_empty();
        is_sync
            || intent.named.iter().any(|named| {
                named.changed
                    || named.part == Part::Other
                    || self.names.contains(&(named.part, shape(&named.path)))
                    || folders(named)
                        .any(|folder| self.names.contains(&(Part::Entry, shape(folder))))
            })
    }
}

/// What is known of one program.
#[derive(Debug, Default)]
struct Program {
    /// The lock that was not free when it was tried.
    not_yet: Option<Touch>,
    /// It slept since another last changed something.
    slept: bool,
    /// Its steps since then, with their answers.
    repeated: BTreeMap<(String, i64), u32>,
    /// Of these, how often each began.
    circles: u32,
}

/// Steers a run.
#[derive(Debug)]
pub struct Steer {
    guide: Guide,
    programs: Vec<Program>,
    /// The steps so far.
    pub made: Vec<Made>,
    /// The moment at which nobody could go on.
    pub last: Moment,
    /// How it ended.
    pub ending: Ending,
    /// Who was killed, and before which step.
    pub died: Option<(usize, Side)>,
    /// What was known to be contested before the run.
    pub contested: Contested,
    touched: Touched,
    in_circles: u32,
    can_go: Sides,
}

impl Follow {
    /// Follows this order.
    pub fn new(schedule: Schedule) -> Follow {
        Follow { schedule, ..Follow::default() }
    }

    /// Who is next, and whether it dies instead. Nobody is, where the order is over.
    fn next(&mut self, enabled: Sides, alive: Sides) -> Option<(Side, bool)> {
        while let Some(block) = self.schedule.blocks.get(self.block) {
            let Block { side, steps, dies } = *block;
            if steps.is_some_and(|steps| self.in_block >= steps) {
                self.block += 1;
                self.in_block = 0;
                if dies {
                    return Some((side, true));
                }
                continue;
            }
            if enabled.has(side) {
                self.in_block += 1;
                return Some((side, false));
            }
            if steps.is_some() {
                let what = if alive.has(side) { "has to wait" } else { "has ended" };
                self.departed =
                    Some(format!("program {} {what} where it made a step before", letter(side)));
                return None;
            }
            self.block += 1;
            self.in_block = 0;
        }
        None
    }
}

impl Steer {
    /// Steers by this guide.
    ///
    /// Programs are held before steps that change something, and before those that look at what is `contested`.
    pub fn new(guide: Guide, programs: usize, contested: Contested) -> Steer {
        Steer {
            guide,
            programs: (0..programs).map(|_| Program::default()).collect(),
            made: Vec::new(),
            last: Moment::default(),
            ending: Ending::Complete,
            died: None,
            contested,
            touched: Touched::default(),
            in_circles: 0,
            can_go: Sides::NONE,
        }
    }

    /// The order in which the steps were made.
    pub fn schedule(&self) -> Schedule {
        let taken: Vec<Taken> = self.made.iter().map(|made| made.taken.clone()).collect();
        Schedule::of(&taken, self.died)
    }

    /// What the run changed and looked at.
    pub fn touched(&self) -> &Touched {
        &self.touched
    }

    /// The walk, where it was one.
    pub fn into_walk(self) -> Option<(Walk, Moment, Ending)> {
        match self.guide {
            Guide::Walk(walk) => Some((walk, self.last, self.ending)),
            _ => None,
        }
    }

    /// It makes the same steps over and over, and nothing changes meanwhile.
    fn is_in_circle(&self, side: Side, text: &str) -> bool {
        let program = &self.programs[side];
        let Some(usual) = &self.contested.usual else { return false };
        program.repeated.iter().any(|((known, result), times)| {
            if known != text {
                return false;
            }
            let alone = usual.get(&attempt(text, *result)).copied().unwrap_or(0);
            let most = match (*result < 0, program.slept) {
                (true, true) => 1,
                (true, false) => FAILURES_IN_A_CIRCLE,
                (false, _) => LOOKS_IN_A_CIRCLE,
            };
            *times >= alone + most
        })
    }

    /// What says who is enabled, beside where the programs stand: a digest in which numbers do not count.
    fn history(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.in_circles.hash(&mut hasher);
        for Program { not_yet, slept, repeated, circles } in &self.programs {
            (not_yet.is_some(), slept, circles, repeated.len()).hash(&mut hasher);
            for ((text, result), times) in repeated {
                (shape(Path::new(text)), result, times).hash(&mut hasher);
            }
        }
        hasher.finish()
    }

    fn end(&mut self, ending: Ending) -> Turn {
        self.ending = ending;
        Turn::End
    }

    /// Who can go on, and who would only go round in a circle.
    fn enabled(&self, stands: &[Stand<'_>]) -> (Sides, Sides) {
        let (mut enabled, mut in_circle) = (Sides::NONE, Sides::NONE);
        for (side, stand) in stands.iter().enumerate() {
            if let Stand::At { intent, waits_for: None } = stand
                && self.programs[side].not_yet.is_none()
            {
                match self.is_in_circle(side, &intent.text) {
                    true => in_circle = in_circle.with(side),
                    false => enabled = enabled.with(side),
                }
            }
        }
        (enabled, in_circle)
    }

    /// Nobody can go on.
    fn stuck(&mut self, stands: &[Stand<'_>]) -> Turn {
        let told = |(side, stand): (usize, &Stand<'_>)| match stand {
            Stand::At { intent, waits_for: Some(holder) } => Some(format!(
                "{} stands before `{}`, and {} has the lock",
                letter(side),
                intent.text,
                letter(*holder)
            )),
            Stand::At { intent, .. } => {
                Some(format!("{} stands before `{}`", letter(side), intent.text))
            }
            Stand::Sleeps => Some(format!("{} sleeps until another does something", letter(side))),
            Stand::Ended => None,
        };
        let told: Vec<String> = stands.iter().enumerate().filter_map(told).collect();
        self.end(Ending::Deadlock(told.join("; ")))
    }

    /// Asks the guide.
    fn choose(&mut self, moment: &Moment, stands: &[Stand<'_>]) -> Result<Side, Turn> {
        let last = self.made.last().map(|made| made.taken.side);
        let by_itself = || {
            last.filter(|last| moment.enabled.has(*last)).or_else(|| moment.enabled.iter().next())
        };
        let at = self.made.len();
        let choice = match &mut self.guide {
            Guide::Walk(walk) => match walk.choose(moment.clone()) {
                Choice::Go(side) => Some(side),
                Choice::Known => return Err(self.end(Ending::Known)),
                Choice::Departed => {
                    let what = format!("step {} of the run that it follows cannot be made", at + 1);
                    return Err(self.end(Ending::Departed(what)));
                }
            },
            Guide::Follow(follow) => {
                let alive = stands.iter().enumerate();
                let alive = alive.filter(|(_, stand)| !matches!(stand, Stand::Ended));
                let alive = alive.map(|(side, _)| side).collect();
                match follow.next(moment.enabled, alive) {
                    Some((side, false)) => Some(side),
                    Some((side, true)) => {
                        self.died = Some((at, side));
                        return Err(Turn::Kill(side));
                    }
                    None => match follow.departed.take() {
                        Some(what) => {
                            let what = format!("at step {}: {what}", at + 1);
                            return Err(self.end(Ending::Departed(what)));
                        }
                        None => by_itself(),
                    },
                }
            }
            Guide::Priorities(priorities) => priorities.choose(moment.enabled, at),
        };
        match choice.or_else(by_itself) {
            Some(side) => Ok(side),
            None => Err(self.stuck(stands)),
        }
    }

    /// The step is the one that the schedule was made of.
    fn is_known_again(&self, side: Side, text: &str) -> Result<(), String> {
        let Guide::Follow(follow) = &self.guide else { return Ok(()) };
        let at = self.made.len();
        match follow.schedule.signs.chars().nth(at) {
            Some(known) if known != sign(text) => Err(format!(
                "at step {}: program {} is about to make another step than before: `{text}`",
                at + 1,
                letter(side)
            )),
            _ => Ok(()),
        }
    }
}

impl Director for Steer {
    fn is_step(&mut self, program: usize, intent: &Intent) -> bool {
        self.touched.add(program, intent);
        self.contested.concerns(intent)
    }

    fn turn(&mut self, stands: &[Stand<'_>]) -> Turn {
        let (mut enabled, in_circle) = self.enabled(stands);
        if enabled.is_empty() {
            let least = in_circle.iter().min_by_key(|side| self.programs[*side].circles);
            if let Some(side) = least {
                self.in_circles += 1;
                self.programs[side].circles += 1;
                enabled = Sides::one(side);
            }
        }
        let next = stands.iter().map(|stand| match stand {
            Stand::At { intent, .. } => Some(intent.touch.clone()),
            _ => None,
        });
        let moment = Moment { enabled, next: next.collect(), history: self.history() };
        self.can_go = if in_circle.is_empty() { enabled } else { enabled.but(in_circle) };
        if enabled.is_empty() {
            self.last = moment;
            return self.stuck(stands);
        }
        if self.in_circles > MOST_IN_CIRCLES {
            self.last = moment;
            let told = in_circle.iter().map(|side| letter(side).to_string());
            let told = format!(
                "{} make the same steps over and over",
                told.collect::<Vec<_>>().join(" and ")
            );
            return self.end(Ending::Livelock(told));
        }
        if self.made.len() >= MOST_STEPS {
            self.last = moment;
            return self.end(Ending::TooLong);
        }
        let side = match self.choose(&moment, stands) {
            Ok(side) => side,
            Err(turn) => {
                self.last = moment;
                return turn;
            }
        };
        let Some(Stand::At { intent, .. }) = stands.get(side) else {
            self.last = moment;
            return self.stuck(stands);
        };
        if let Err(what) = self.is_known_again(side, &intent.text) {
            self.last = moment;
            return self.end(Ending::Departed(what));
        }
        let taken = Taken { side, enabled: moment.enabled, text: intent.text.clone() };
        self.made.push(Made { taken, result: 0, touch: intent.touch.clone() });
        Turn::Go(side)
    }

    fn stepped(&mut self, side: usize, what: &Stepped) {
        match what {
            Stepped::NotYet => {
                let tried = self.made.pop();
                self.programs[side].not_yet = tried.map(|made| made.touch);
                match &mut self.guide {
                    Guide::Walk(walk) => walk.retract(),
                    Guide::Follow(follow) => follow.in_block = follow.in_block.saturating_sub(1),
                    Guide::Priorities(_) => {}
                }
            }
            Stepped::Made(touch, result) => {
                let touch = match *result < 0 {
                    true => only_looked(touch),
                    false => touch.clone(),
                };
                let Some(made) = self.made.last_mut() else { return };
                made.result = *result;
                made.touch = touch.clone();
                let text = made.taken.text.clone();
                let counts =
                    *result < 0 || only_looks_or_locks(&touch) && !text.starts_with("read ");
                if let Guide::Walk(walk) = &mut self.guide {
                    walk.correct(touch.clone());
                }
                if counts {
                    let attempt = attempt(&text, *result);
                    let times = self.programs[side].repeated.entry((text, *result)).or_default();
                    *times += 1;
                    let most = self.touched.repeated.entry(attempt).or_default();
                    *most = (*most).max(*times);
                }
                let others = self.programs.iter_mut().enumerate();
                for (_, program) in others.filter(|(other, _)| *other != side && touch.changes()) {
                    let not_yet = program.not_yet.take().filter(|lock| !lock.conflicts(&touch));
                    *program = Program { not_yet, ..Program::default() };
                    self.in_circles = 0;
                }
            }
        }
    }

    fn slept(&mut self, side: usize) -> bool {
        self.programs[side].slept = true;
        !self.can_go.but(Sides::one(side)).is_empty()
    }
}

/// What reading and taking locks does: a program that waits for another does no more.
fn only_looks_or_locks(touch: &Touch) -> bool {
    let is_lock = |access: &Access| matches!(access.object, Object::Lock(..));
    touch.accesses().iter().all(|access| access.how == How::Look || is_lock(access))
}

/// A call that failed has changed nothing.
fn only_looked(touch: &Touch) -> Touch {
    let looked = touch.accesses().iter().map(|access| Access { how: How::Look, ..access.clone() });
    Touch::new(looked.collect(), Default::default())
}
