//! A schedule: who makes each step, and how it is written.

use std::fmt;
use std::str::FromStr;

use super::explore::{MOST_SIDES, Side, Sides};

/// Several steps of one program in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Block {
    /// The program.
    pub side: Side,
    /// So many steps, or until it cannot go on.
    pub steps: Option<u32>,
    /// It dies instead of making the step after these.
    pub dies: bool,
}

/// An order of steps: `a3.b.a` is three steps of the first program, then the second until it cannot go on, then the first
/// again; `a3x.b` is three steps of the first, which dies before its next, then the second. Whatever comes after its end is
/// as one step after another comes by itself: who is at it goes on.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Schedule {
    /// From the first to the last.
    pub blocks: Vec<Block>,
    /// For each step a sign by which it is known again; empty where nobody knows.
    pub signs: String,
}

/// The text is no schedule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a schedule: letters of programs with numbers of steps, as in `a3.b.a`; `x` behind a number lets it die there"
)]
pub struct NoSchedule;

/// A step that was made: who, whether who made the one before could have gone on, and what it was in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Who made it.
    pub side: Side,
    /// Who could have made one.
    pub enabled: Sides,
    /// The step in words.
    pub text: String,
}

/// The letter of a program.
pub fn letter(side: Side) -> char {
    char::from(b'a' + (side % MOST_SIDES) as u8)
}

impl Schedule {
    /// The schedule of a run; `died` at the end of it, or nobody.
    pub fn of(taken: &[Taken], died: Option<(usize, Side)>) -> Schedule {
        let mut blocks: Vec<Block> = Vec::new();
        let mut signs = String::new();
        let mut dies_at = died;
        for (at, step) in taken.iter().enumerate() {
            if let Some((_, side)) = dies_at.take_if(|(place, _)| *place == at) {
                die(&mut blocks, side);
            }
            match blocks.last_mut() {
                Some(Block { side, steps: Some(steps), dies: false }) if *side == step.side => {
                    *steps += 1;
                }
                before => {
                    if let Some(block) = before
                        && !block.dies
                        && !step.enabled.has(block.side)
                    {
                        block.steps = None;
                    }
                    blocks.push(Block { side: step.side, steps: Some(1), dies: false });
                }
            }
            signs.push(sign(&step.text));
        }
        if let Some((_, side)) = dies_at {
            die(&mut blocks, side);
        }
        if let Some(last) = blocks.last_mut().filter(|block| !block.dies) {
            last.steps = None;
        }
        Schedule { blocks, signs }
    }

    /// How often another goes on.
    pub fn switches(&self) -> usize {
        self.blocks.len().saturating_sub(1)
    }

    /// Without the signs: what cases are called by.
    pub fn name(&self) -> String {
        self.blocks.iter().map(Block::to_string).collect::<Vec<_>>().join(".")
    }
}

fn die(blocks: &mut Vec<Block>, side: Side) {
    match blocks.last_mut() {
        Some(last) if last.side == side => last.dies = true,
        _ => blocks.push(Block { side, steps: Some(0), dies: true }),
    }
}

/// One of sixteen signs for a step in words, in which numbers do not count: they can be process ids.
pub fn sign(text: &str) -> char {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut was_digit = false;
    for byte in text.bytes() {
        if byte.is_ascii_digit() && was_digit {
            continue;
        }
        was_digit = byte.is_ascii_digit();
        // FNV-1a.
        hash ^= u64::from(if was_digit { b'#' } else { byte });
        hash = hash.wrapping_mul(0x0100_0000_01b3);
    }
    char::from_digit((hash >> 60) as u32 & 15, 16).unwrap_or('0')
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", letter(self.side))?;
        if let Some(steps) = self.steps.filter(|steps| *steps > 0 || self.dies) {
            write!(f, "{steps}")?;
        }
        if self.dies { f.write_str("x") } else { Ok(()) }
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())?;
        match self.signs.is_empty() {
            true => Ok(()),
            false => write!(f, "-{}", self.signs),
        }
    }
}

impl FromStr for Block {
    type Err = NoSchedule;

    fn from_str(text: &str) -> Result<Block, NoSchedule> {
        let mut letters = text.chars();
        let first = letters.next().ok_or(NoSchedule)?;
        let side = (first as usize).checked_sub('a' as usize).filter(|side| *side < MOST_SIDES);
        let rest = letters.as_str();
        let (number, dies) = match rest.strip_suffix('x') {
            Some(number) => (number, true),
            None => (rest, false),
        };
        let is_plain = number.bytes().all(|byte| byte.is_ascii_digit());
        let steps = match number {
            "" if !dies => None,
            number if is_plain => Some(number.parse().map_err(|_| NoSchedule)?),
            _ => return Err(NoSchedule),
        };
        Ok(Block { side: side.ok_or(NoSchedule)?, steps, dies })
    }
}

impl FromStr for Schedule {
    type Err = NoSchedule;

    fn from_str(text: &str) -> Result<Schedule, NoSchedule> {
        let (blocks, signs) = text.split_once('-').unwrap_or((text, ""));
        let blocks = blocks.split('.').map(str::parse).collect::<Result<Vec<Block>, _>>()?;
        let is_sign = |sign: char| sign.is_ascii_digit() || ('a'..='f').contains(&sign);
        match signs.chars().all(is_sign) {
            true => Ok(Schedule { blocks, signs: signs.to_owned() }),
            false => Err(NoSchedule),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(side: Side, enabled: &[Side]) -> Taken {
        Taken { side, enabled: enabled.iter().copied().collect(), text: format!("read {side}") }
    }

    #[test]
    fn a_run_is_told_by_its_switches() {
        let steps = [
            taken(0, &[0, 1]),
            taken(0, &[0, 1]),
            taken(1, &[0, 1]),
            taken(1, &[0, 1]),
            taken(0, &[0]),
        ];
        let schedule = Schedule::of(&steps, None);
        // The second could not go on, so its steps are not counted.
        assert_eq!(schedule.name(), "a2.b.a");
        assert_eq!((schedule.switches(), schedule.signs.len()), (2, 5));
        assert_eq!(schedule.to_string().parse(), Ok(schedule));
    }

    #[test]
    fn who_dies_is_told() {
        let steps = [taken(0, &[0, 1]), taken(1, &[1]), taken(1, &[1])];
        assert_eq!(Schedule::of(&steps, Some((1, 0))).name(), "a1x.b");
        assert_eq!(Schedule::of(&steps[..2], Some((2, 1))).name(), "a.b1x");
        assert_eq!(Schedule::of(&[], Some((0, 0))).name(), "a0x");
        for text in ["a1x.b", "a0x", "a12.b3.c", "a.b"] {
            assert_eq!(text.parse::<Schedule>().expect(text).to_string(), text);
        }
    }

    #[test]
    fn what_is_no_schedule_is_refused() {
        for text in ["", ".", "a.", "A3", "a-x", "z1", "ax", "a1.b2-g", "a 1", "a1y"] {
            assert_eq!(text.parse::<Schedule>(), Err(NoSchedule), "{text}");
        }
    }

    #[test]
    fn process_ids_do_not_change_a_sign() {
        assert_eq!(sign("create s.tmp.17"), sign("create s.tmp.4711"));
        let words = ["open s", "read s", "write s", "rename t -> s", "stat s", "unlink t"];
        let signs: std::collections::BTreeSet<char> = words.into_iter().map(sign).collect();
        assert!(signs.len() > 3, "{signs:?}");
    }
}
