//! Call stacks at the stops of ops, where somebody asks for them.
//!
//! At the stop the stack of the calling thread is followed, with its own memory and the unwind tables of what it has mapped,
//! and what is kept are addresses in modules. Functions and lines are looked up once, when the run is over, in the files that
//! were opened at the first stop in them: so also what was deleted or replaced since is found.

use std::collections::{BTreeMap, HashMap};

use addr2line::gimli::UnwindContext;

use crate::recording::{CallSite, Calls, FRAMES_MAX, Stack};
use crate::sys::memory::Memory;
use crate::sys::ptrace::{Stopped, Tid};

mod maps;
mod module;
mod own;
mod symbols;
mod unwind;

use maps::{Mapping, executable_lines};
use module::Module;
use unwind::Frame;

/// So many different sets of mappings are remembered.
const SPACES_MAX: usize = 64;
/// So many modules are looked into: each keeps a file open.
const MODULES_MAX: usize = 128;

/// A place among the modules.
type ModuleId = usize;

/// What a process has mapped that can be executed, with the modules as far as they were looked into.
#[derive(Debug)]
struct Space {
    mappings: Vec<Mapping>,
    /// For each mapping that was looked into, its module and what is to be taken from an address to get one of the module's own.
    known: HashMap<usize, Option<(ModuleId, u64)>>,
}

/// An address in a module, or one that lies in none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct RawSite {
    module: Option<ModuleId>,
    address: u64,
}

/// Stacks that were taken.
#[derive(Debug, Default)]
pub(super) struct Stacks {
    modules: Vec<Module>,
    /// By the device and inode of their files, as the mappings tell them, and the path.
    by_file: HashMap<maps::FileKey, Option<ModuleId>>,
    /// By what `/proc/PID/maps` says of executable memory: an exec or a new library is another one, and a fork the same.
    spaces: HashMap<Vec<u8>, Space>,
    context: UnwindContext<usize>,
    /// Distinct stacks, with whether each was followed to its end.
    known: HashMap<(Vec<RawSite>, bool), usize>,
    of_op: BTreeMap<u32, usize>,
    /// The one that belongs to the ops that are written down now.
    now: Option<usize>,
}

impl Stacks {
    /// Takes the stack of a thread that stands after a call.
    pub(super) fn take(&mut self, stop: &Stopped) {
        self.now = self.followed(stop);
    }

    /// What is written down from now on is none of the call's.
    pub(super) fn leave(&mut self) {
        self.now = None;
    }

    /// An op has this number.
    pub(super) fn note(&mut self, op: u32) {
        if let Some(stack) = self.now {
            self.of_op.insert(op, stack);
        }
    }

    fn followed(&mut self, stop: &Stopped) -> Option<usize> {
        let tid = stop.tid();
        let key = executable_lines(tid)?;
        if !self.spaces.contains_key(&key) {
            if self.spaces.len() >= SPACES_MAX {
                self.spaces.clear();
            }
            let space = Space { mappings: maps::parse(&key), known: HashMap::new() };
            self.spaces.insert(key.clone(), space);
        }
        let mut memory = Memory::of(tid);
        let mut frame = Frame::at(&stop.registers()?);
        let (mut sites, mut whole) = (Vec::new(), false);
        while sites.len() < FRAMES_MAX {
            let address = frame.lookup();
            let found = self.module_at(&key, tid, address);
            let site = match found {
                None => break,
                Some(None) => RawSite { module: None, address },
                Some(Some((module, bias))) => {
                    RawSite { module: Some(module), address: address.wrapping_sub(bias) }
                }
            };
            sites.push(site);
            let of = found.flatten().map(|(module, bias)| (&self.modules[module], bias));
            match unwind::caller(&frame, of, &mut self.context, &mut memory) {
                unwind::Caller::Frame(next) => frame = next,
                unwind::Caller::Outermost => {
                    whole = true;
                    break;
                }
                unwind::Caller::Unknown => break,
            }
        }
        if sites.is_empty() {
            return None;
        }
        let next = self.known.len();
        Some(*self.known.entry((sites, whole)).or_insert(next))
    }

    /// The module at an address, with its bias, if it can be looked into; `None` where nothing can be executed there.
    fn module_at(&mut self, key: &[u8], tid: Tid, address: u64) -> Option<Option<(ModuleId, u64)>> {
        let space = self.spaces.get_mut(key)?;
        let place = space.mappings.iter().position(|mapping| mapping.holds(address))?;
        if let Some(known) = space.known.get(&place) {
            return Some(*known);
        }
        let mapping = &space.mappings[place];
        let is_file = mapping.is_file();
        let known = self.by_file.get(&mapping.key).copied().filter(|_| is_file);
        let module = known.unwrap_or_else(|| {
            let has_room = self.modules.len() < MODULES_MAX;
            let module = has_room.then(|| Module::open(tid, mapping)).flatten().map(|module| {
                self.modules.push(module);
                self.modules.len() - 1
            });
            self.by_file.insert(mapping.key.clone(), module);
            module
        });
        let with_bias =
            module.and_then(|module| Some((module, self.modules[module].bias(mapping)?)));
        space.known.insert(place, with_bias);
        Some(with_bias)
    }

    /// Looks up functions and lines.
    pub(super) fn finish(self) -> Calls {
        let Stacks { modules, known, of_op, .. } = self;
        let mut addresses: BTreeMap<ModuleId, Vec<u64>> = BTreeMap::new();
        for site in known.keys().flat_map(|(sites, _)| sites) {
            if let Some(module) = site.module {
                addresses.entry(module).or_default().push(site.address);
            }
        }
        let mut found: HashMap<RawSite, Vec<std::sync::Arc<CallSite>>> = HashMap::new();
        for (module, mut addresses) in addresses {
            addresses.sort_unstable();
            addresses.dedup();
            for (address, sites) in symbols::look_up(&modules[module], &addresses) {
                let sites = sites.into_iter().map(std::sync::Arc::new).collect();
                found.insert(RawSite { module: Some(module), address }, sites);
            }
        }
        let mut ops: Vec<Vec<u32>> = vec![Vec::new(); known.len()];
        for (op, stack) in of_op {
            ops[stack].push(op);
        }
        let mut stacks: Vec<_> = known.into_iter().map(|(stack, place)| (place, stack)).collect();
        stacks.sort_unstable_by_key(|(place, _)| *place);
        let mut calls = Calls::default();
        for ((_, (raw, whole)), ops) in stacks.into_iter().zip(ops) {
            let (mut sites, mut is_own) = (Vec::new(), Vec::new());
            for site in raw {
                let unknown = || vec![std::sync::Arc::new(symbols::nowhere(site.address))];
                let of = found.get(&site).cloned().unwrap_or_else(unknown);
                let own = site.module.is_some_and(|module| modules[module].is_own);
                is_own.extend(std::iter::repeat_n(own, of.len()));
                sites.extend(of);
            }
            let told = own::told(&sites, &is_own);
            if !ops.is_empty() {
                calls.add(Stack { sites, told, whole }, ops);
            }
        }
        calls
    }
}
