//! The verdict on several processes at once: the outcome must be one that some order one after another gives.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::image::{Content, Image};
use super::{Masks, Verdict, Word};
use crate::subject::{End, Exit};

/// How one process of an overlap ended.
#[derive(Debug, Clone)]
pub struct Side {
    /// Its name in the scenario.
    pub name: String,
    /// Its exit.
    pub exit: Exit,
    /// It changed some state file.
    pub changed_state: bool,
    /// What the scenario wants it to say, and it did not.
    pub unsaid: Option<String>,
    /// It refuses again when nobody else is there any more, over what one left who was killed.
    pub refuses_again: bool,
}

impl Side {
    /// It gave up and changed nothing.
    pub fn refused(&self) -> bool {
        matches!(self.exit, Exit::Code(code) if code != 0) && !self.changed_state
    }
}

/// Where some of the processes end when they run one after another.
#[derive(Debug, Clone)]
pub struct Serial {
    /// Positions of the processes, in their order.
    pub order: Vec<usize>,
    /// The state files afterwards.
    pub image: Image,
    /// How each of them ended and what it printed, in the same order ([`told`]); empty where that is not compared.
    pub told: Vec<Image>,
}

/// How a program ended and what it printed on its standard output, as an image, so that masks apply to it. What it says
/// on standard error, such as that it waits for another, is its own affair.
pub fn told(name: &str, end: &End) -> Image {
    let exit = (format!("the exit of {name}"), end.exit.to_string().into_bytes());
    let output = (format!("the output of {name}"), end.stdout.clone());
    let files = [exit, output];
    let content = |bytes: Vec<u8>| Content::Bytes(bytes.into());
    Image { files: files.into_iter().map(|(path, bytes)| (path.into(), content(bytes))).collect() }
}

/// An overlap with all that is needed to judge it.
#[derive(Debug)]
pub struct OverlapCase<'a> {
    /// The processes.
    pub sides: &'a [Side],
    /// The state files at the end.
    pub image: &'a Image,
    /// How each of them ended and what it printed ([`told`]); empty where that is not compared.
    pub told: &'a [Image],
    /// The one that was killed, by its position: `serial` has orders of the others, with all that it may have left.
    pub died: Option<usize>,
    /// Every order of every subset of the processes, the empty one too.
    pub serial: &'a [Serial],
    /// Every content of each file that was a version in some order one after another.
    pub whole: &'a BTreeMap<PathBuf, BTreeSet<Content>>,
    /// What differs between equal runs.
    pub masks: &'a Masks,
}

/// Judges by the first verdict that fits.
pub fn judge_overlap(case: &OverlapCase<'_>) -> Verdict {
    if let Some(side) = case.sides.iter().find(|side| side.exit == Exit::TimedOut) {
        return Verdict::new(Word::Hung, format!("`{}` did not end within its time", side.name));
    }
    let everyone: BTreeSet<usize> =
        (0..case.sides.len()).filter(|side| case.died != Some(*side)).collect();
    let working: BTreeSet<usize> =
        everyone.iter().copied().filter(|side| !case.sides[*side].refused()).collect();
    let order = order_of(case, &everyone);
    if let (None, Some(died)) = (&order, case.died)
        && case.sides.iter().any(|side| side.refused() && side.refuses_again)
        && order_of(case, &working).is_some()
    {
        return Verdict::new(
            Word::Refused,
            format!("`{}` was killed{}, over what it left", case.sides[died].name, refusals(case)),
        );
    }
    if let Some(order) = order.or_else(|| order_of(case, &working)) {
        if let Some(fewer) = masked_alike(case, order) {
            return Verdict::not_measured(format!(
                "what is masked is all that tells {} from {}",
                names(case, order),
                names(case, fewer)
            ));
        }
        let told = |side: &Side| Some((side.name.clone(), side.exit, side.unsaid.clone()?));
        if let Some((name, exit, unsaid)) = case.sides.iter().find_map(told) {
            let why = format!("nothing is lost, but `{name}` ({exit}) never says `{unsaid}`");
            return Verdict::new(Word::Unnoticed, why);
        }
        return Verdict::new(
            Word::Serial,
            format!("as {} one after another{}", names(case, order), refusals(case)),
        );
    }
    let succeeded: BTreeSet<usize> =
        everyone.iter().copied().filter(|side| case.sides[*side].exit.success()).collect();
    let fewer = case.serial.iter().filter(|serial| {
        let some: BTreeSet<usize> = serial.order.iter().copied().collect();
        some.is_subset(&succeeded) && some.len() < succeeded.len() && same(case, &serial.image)
    });
    if !case.masks.unstable.is_empty() {
        return Verdict::not_measured("equal orders end differently, in more than times");
    }
    let all = case.serial.iter().filter(|serial| {
        let some: BTreeSet<usize> = serial.order.iter().copied().collect();
        (some == everyone || some == working) && same(case, &serial.image)
    });
    if let Some(what) = all.filter_map(|serial| told_otherwise(case, serial)).next() {
        return Verdict::new(
            Word::Diverged,
            format!("the files are as in an order one after another, but {what} is not"),
        );
    }
    if let Some(serial) = fewer.max_by_key(|serial| serial.order.len()) {
        let everyone = names(case, &succeeded.iter().copied().collect::<Vec<_>>());
        let only = match serial.order.as_slice() {
            [] => "nobody had run".to_owned(),
            order => format!("only {} had run", names(case, order)),
        };
        return Verdict::new(
            Word::Lost,
            format!("{everyone} succeeded, and the files are as if {only}"),
        );
    }
    let is_torn = |(path, content): &(&PathBuf, &Content)| {
        !case.whole.get(*path).is_some_and(|known| known.contains(*content))
    };
    if let Some((path, _)) = case.image.files.iter().find(is_torn) {
        return Verdict::new(Word::Torn, format!("{} holds no process's version", path.display()));
    }
    Verdict::new(Word::Diverged, "no order one after another ends like this")
}

fn same(case: &OverlapCase<'_>, image: &Image) -> bool {
    case.masks.apply(image) == case.masks.apply(case.image)
}

/// What the first of them that ended or printed otherwise than in this order shows otherwise.
fn told_otherwise(case: &OverlapCase<'_>, serial: &Serial) -> Option<String> {
    let pairs = serial.order.iter().zip(&serial.told);
    pairs.filter_map(|(side, told)| Some((told, case.told.get(*side)?))).find_map(|(told, own)| {
        let (told, own) = (case.masks.apply(told), case.masks.apply(own));
        let differs = |(path, content): (&PathBuf, &Content)| own.files.get(path) != Some(content);
        let path = told.files.iter().find(|one| differs(*one)).map(|(path, _)| path);
        path.map(|path| path.display().to_string())
    })
}

/// An order of fewer processes whose end differs from this one's in nothing but what is masked.
fn masked_alike<'a>(case: &'a OverlapCase<'_>, order: &[usize]) -> Option<&'a [usize]> {
    let full = &case.serial.iter().find(|serial| serial.order == order)?.image;
    let is_alike = |serial: &&Serial| {
        serial.order.len() < order.len()
            && serial.order.iter().all(|side| order.contains(side))
            && serial.image != *full
            && case.masks.apply(&serial.image) == case.masks.apply(full)
    };
    case.serial.iter().find(is_alike).map(|serial| serial.order.as_slice())
}

fn order_of<'a>(case: &'a OverlapCase<'_>, sides: &BTreeSet<usize>) -> Option<&'a [usize]> {
    let is_order = |serial: &&Serial| {
        serial.order.len() == sides.len()
            && serial.order.iter().all(|side| sides.contains(side))
            && same(case, &serial.image)
            && told_otherwise(case, serial).is_none()
    };
    case.serial.iter().find(is_order).map(|serial| serial.order.as_slice())
}

fn names(case: &OverlapCase<'_>, order: &[usize]) -> String {
    order.iter().map(|side| format!("`{}`", case.sides[*side].name)).collect::<Vec<_>>().join(", ")
}

fn refusals(case: &OverlapCase<'_>) -> String {
    let refused = case.sides.iter().filter(|side| side.refused());
    let refused: Vec<String> =
        refused.map(|side| format!("`{}` refused with {}", side.name, side.exit)).collect();
    if refused.is_empty() { String::new() } else { format!("; {}", refused.join(", ")) }
}

/// Every order of every subset of `count` processes, the empty one first.
pub fn orders(count: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    let mut last = all.clone();
    for _ in 0..count {
        let longer = |order: &Vec<usize>| -> Vec<Vec<usize>> {
            let free = (0..count).filter(|side| !order.contains(side));
            free.map(|side| order.iter().copied().chain([side]).collect()).collect()
        };
        last = last.iter().flat_map(longer).collect();
        all.extend(last.iter().cloned());
    }
    all
}
