//! One frame up: by the tables that compilers write, and where there is none for a place, by the frame pointer.

use addr2line::gimli::{
    BaseAddresses, CfaRule, Encoding, Evaluation, EvaluationResult, FrameDescriptionEntry,
    Location, RegisterRule, UnwindContext, UnwindExpression, UnwindSection, Value,
};

use super::module::{Module, Slice};
use crate::sys::arch::{
    FRAME_BYTES, FRAME_POINTER, STACK_POINTER, UNWIND_REGISTERS, plain_address, unwind_registers,
};
use crate::sys::memory::Memory;

/// An expression of a table that goes on for longer is none.
const STEPS_MAX: u32 = 1000;

/// A frame of a stack: where it stands, and its registers by their DWARF numbers.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    pc: u64,
    /// It stands behind a call (or, innermost, behind the instruction that enters the kernel), and not before what it would do
    /// next.
    is_behind_call: bool,
    registers: [u64; UNWIND_REGISTERS],
}

impl Frame {
    /// The innermost frame of a thread that stands after a call into the kernel.
    pub(super) fn at(registers: &libc::user_regs_struct) -> Frame {
        let (pc, registers) = unwind_registers(registers);
        Frame { pc, is_behind_call: true, registers }
    }

    /// An address in the instruction that it is at: behind the last one of a function there may be another function.
    pub(super) fn lookup(&self) -> u64 {
        self.pc.wrapping_sub(u64::from(self.is_behind_call))
    }

    fn register(&self, number: u16) -> Option<u64> {
        self.registers.get(usize::from(number)).copied()
    }

    fn stack_pointer(&self) -> u64 {
        self.registers[STACK_POINTER]
    }
}

/// Who called.
#[derive(Debug)]
pub(super) enum Caller {
    Frame(Frame),
    /// Nobody: here the thread began.
    Outermost,
    Unknown,
}

/// The caller of a frame, whose code lies in this module with this bias.
pub(super) fn caller(
    frame: &Frame,
    of: Option<(&Module, u64)>,
    context: &mut UnwindContext<usize>,
    memory: &mut Memory,
) -> Caller {
    let by_table =
        of.and_then(|(module, bias)| Step { frame, bias, memory }.by_module(module, context));
    let is_entry =
        |(module, bias): (&Module, u64)| module.is_entry(frame.lookup().wrapping_sub(bias));
    let caller = match by_table {
        Some(caller) => caller,
        None if of.is_some_and(is_entry) => Caller::Outermost,
        None => by_frame_pointer(frame, memory),
    };
    match caller {
        Caller::Frame(next) if plain_address(next.pc) == 0 => Caller::Outermost,
        Caller::Frame(next) => Caller::Frame(Frame { pc: plain_address(next.pc), ..next }),
        other => other,
    }
}

/// Where the frame pointer is kept, it points at the caller's, and behind that the return address stands.
fn by_frame_pointer(frame: &Frame, memory: &mut Memory) -> Caller {
    let at = frame.registers[FRAME_POINTER];
    // 0 is the end of the chain, or a register that nobody keeps for this.
    if at < frame.stack_pointer() || !at.is_multiple_of(8) {
        return Caller::Unknown;
    }
    let (Some(before), Some(pc)) = (memory.read(at), memory.read(at.wrapping_add(8))) else {
        return Caller::Unknown;
    };
    let mut registers = frame.registers;
    registers[FRAME_POINTER] = before;
    registers[STACK_POINTER] = at.wrapping_add(FRAME_BYTES);
    Caller::Frame(Frame { pc, is_behind_call: true, registers })
}

/// One step up by a table.
struct Step<'s> {
    frame: &'s Frame,
    bias: u64,
    memory: &'s mut Memory,
}

impl Step<'_> {
    /// `None` where no table of the module has this place.
    fn by_module(mut self, module: &Module, context: &mut UnwindContext<usize>) -> Option<Caller> {
        let address = self.frame.lookup().wrapping_sub(self.bias);
        let bases = module.bases();
        if let Some(table) = module.eh_frame() {
            let get_cie = UnwindSection::cie_from_offset;
            let fde = match module.header() {
                Some(header) => header.table().and_then(|sorted| {
                    sorted.fde_for_address(&table, &bases, address, get_cie).ok()
                }),
                None => module
                    .in_eh_frame(address)
                    .and_then(|place| table.fde_from_offset(&bases, place.into(), get_cie).ok()),
            };
            if let Some(fde) = fde.filter(|fde| fde.contains(address)) {
                return Some(self.by_table(&table, &bases, &fde, address, context));
            }
        }
        let table = module.debug_frame()?;
        let place = module.in_debug_frame(address)?;
        let fde =
            table.fde_from_offset(&bases, place.into(), UnwindSection::cie_from_offset).ok()?;
        Some(self.by_table(&table, &bases, &fde, address, context))
    }

    fn by_table<'a, S: UnwindSection<Slice<'a>>>(
        &mut self,
        table: &S,
        bases: &BaseAddresses,
        fde: &FrameDescriptionEntry<Slice<'a>>,
        address: u64,
        context: &mut UnwindContext<usize>,
    ) -> Caller {
        let Ok(row) = fde.unwind_info_for_address(table, bases, context, address) else {
            return Caller::Unknown;
        };
        let encoding = fde.cie().encoding();
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                self.frame.register(register.0).map(|value| value.wrapping_add_signed(*offset))
            }
            CfaRule::Expression(expression) => self.value_of(table, expression, encoding, None),
        };
        let Some(cfa) = cfa else { return Caller::Unknown };
        let return_register = fde.cie().return_address_register().0;
        let mut registers = self.frame.registers;
        registers[STACK_POINTER] = cfa;
        let mut pc = self.frame.register(return_register);
        for (register, rule) in row.registers() {
            let own = self.frame.register(register.0);
            let value = match rule {
                RegisterRule::Undefined if register.0 == return_register => {
                    return Caller::Outermost;
                }
                RegisterRule::SameValue => own,
                RegisterRule::Offset(offset) => self.memory.read(cfa.wrapping_add_signed(*offset)),
                RegisterRule::ValOffset(offset) => Some(cfa.wrapping_add_signed(*offset)),
                RegisterRule::Register(other) => self.frame.register(other.0),
                RegisterRule::Expression(expression) => self
                    .value_of(table, expression, encoding, Some(cfa))
                    .and_then(|at| self.memory.read(at)),
                RegisterRule::ValExpression(expression) => {
                    self.value_of(table, expression, encoding, Some(cfa))
                }
                // What is not kept is not needed further up.
                _ => continue,
            };
            let is_return = register.0 == return_register;
            match (value, registers.get_mut(usize::from(register.0))) {
                (None, _) if is_return => return Caller::Unknown,
                (Some(value), slot) => {
                    pc = if is_return { Some(value) } else { pc };
                    slot.into_iter().for_each(|slot| *slot = value);
                }
                (None, _) => {}
            }
        }
        let Some(pc) = pc else { return Caller::Unknown };
        let is_signal = fde.is_signal_trampoline();
        let moved = cfa > self.frame.stack_pointer() || pc != self.frame.pc;
        // A handler can have a stack of its own; else callers lie further up.
        if !moved || (!is_signal && cfa < self.frame.stack_pointer()) {
            return Caller::Unknown;
        }
        Caller::Frame(Frame { pc, is_behind_call: !is_signal, registers })
    }

    /// What an expression of the table comes to.
    fn value_of<'a, S: UnwindSection<Slice<'a>>>(
        &mut self,
        table: &S,
        expression: &UnwindExpression<usize>,
        encoding: Encoding,
        cfa: Option<u64>,
    ) -> Option<u64> {
        let mut evaluation: Evaluation<Slice<'a>> =
            expression.get(table).ok()?.evaluation(encoding);
        evaluation.set_max_iterations(STEPS_MAX);
        if let Some(cfa) = cfa {
            evaluation.set_initial_value(cfa);
        }
        let mut state = evaluation.evaluate().ok()?;
        loop {
            state = match state {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresMemory { address, size, .. } => {
                    let bits = u32::from(size.clamp(1, 8)) * 8;
                    let value = self.memory.read(address)? & (u64::MAX >> (64 - bits));
                    evaluation.resume_with_memory(Value::Generic(value)).ok()?
                }
                EvaluationResult::RequiresRegister { register, .. } => {
                    let value = self.frame.register(register.0)?;
                    evaluation.resume_with_register(Value::Generic(value)).ok()?
                }
                EvaluationResult::RequiresRelocatedAddress(address) => {
                    let address = address.wrapping_add(self.bias);
                    evaluation.resume_with_relocated_address(address).ok()?
                }
                _ => return None,
            };
        }
        match evaluation.as_result() {
            [piece] => match piece.location {
                Location::Address { address } => Some(address),
                Location::Value { value: Value::Generic(value) } => Some(value),
                _ => None,
            },
            _ => None,
        }
    }
}
