//! From a program to its code: an order of the instructions, what stays in registers, and what is saved where.

use super::data::{Instr, Program};
use super::handler::Handler;
use super::moves;
use super::sources::{Source, Split, split};
use super::table::{Lane, of_number, of_one, of_two};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::machine::simd::Level;
use crate::memory::scratch::filled;
use crate::ops::elementwise::compute_type;
use crate::ops::elementwise::kernel::{Class, Kernel, binary, unary};

/// Elements of work of weight 1 that are worth a task of their own: as for the row kernels, a light op has 16K.
pub(super) const GRAIN: usize = 64 << 10;

/// Where an operand of a step lies.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// Nowhere: it is in registers.
    None,
    /// The stored elements of an input.
    Input(usize),
    /// Lanes that were saved.
    Slot(usize),
    /// The stored elements of an output.
    Output(usize),
    /// No place: the row kernel that the handler calls.
    Kernel(Kernel),
}

/// A handler and its operands.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub handler: Handler,
    /// Does the same past the caches.
    pub streamed: Option<Handler>,
    pub at: Place,
    pub other: Place,
}

/// A program ready to run.
#[derive(Debug)]
pub struct Code {
    pub(super) level: Level,
    pub(super) width: usize,
    pub(super) inputs: Vec<DType>,
    pub(super) numbers: Vec<DType>,
    /// Of the numbers of the program, those that fill slots; and how many there are.
    pub(super) taken: Vec<usize>,
    pub(super) given: usize,
    /// What the last inputs draw.
    pub(super) sources: Vec<Source>,
    pub(super) outputs: Vec<DType>,
    pub(super) steps: Vec<Step>,
    /// The steps with an operand that moves from block to block, which of its operands it is, and what that is.
    pub(super) moving: Vec<(usize, usize, Place)>,
    /// Blocks that handlers run over before they return.
    pub(super) together: usize,
    /// Slots, of which the first hold the numbers.
    pub(super) slots: usize,
    /// What an element costs, in elements of memory traffic.
    pub(super) weight: usize,
}

impl Code {
    /// Elements of a block.
    #[inline]
    pub(super) fn block(&self) -> usize {
        self.bytes() / self.width
    }

    /// Bytes of scratch of a task: a block for each slot, input and output.
    pub(super) fn room(&self) -> usize {
        (self.slots + self.inputs.len() + self.outputs.len()) * self.bytes()
    }

    /// Elements that are worth a task of their own.
    pub(super) fn grain(&self) -> usize {
        (GRAIN / (3 + self.weight)).next_multiple_of(1 << 10)
    }

    /// Bytes of a block: eight registers.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        if self.level == Level::Avx512 && self.width == 4 { 512 } else { 256 }
    }
}

/// The code of a program for an instruction set; `None` where it has none, or none for one of the instructions.
pub fn compile(program: &Program, level: Level) -> Result<Option<Code>> {
    check(program)?;
    let given = program.numbers.len();
    let Some(Split { program, sources, numbers: taken }) = split(program) else { return Ok(None) };
    let program = &program;
    let known = |instr: &Instr| {
        let args: Vec<DType> = instr.args.iter().map(|&arg| dtype_of(program, arg)).collect();
        fits(&instr.op, &args, instr.dtype)
    };
    let Some(width) = width_of(program).filter(|_| program.instrs.iter().all(known)) else { return Ok(None) };
    let mut writer = Writer::new(program, level, width);
    if writer.all().is_none() {
        return Ok(None);
    }
    let both = writer.steps.iter().enumerate().flat_map(|(at, step)| [(at, 0, step.at), (at, 1, step.other)]);
    let moving = both.filter(|(_, _, place)| matches!(place, Place::Input(_) | Place::Output(_))).collect();
    Ok(Some(Code {
        level,
        width,
        inputs: program.inputs.clone(),
        numbers: program.numbers.clone(),
        taken,
        given,
        outputs: program.outputs.iter().map(|&value| dtype_of(program, value)).collect(),
        moving,
        together: together(writer.steps.len()),
        steps: writer.steps,
        slots: writer.slots.len(),
        weight: writer.weight + 8 * sources.len(),
        sources,
    }))
}

/// How many blocks run in one go. Where the compiler makes no jump of the call at the end of a handler, as behind kernels that
/// are called, each handler keeps its part of the stack until the last block is done.
fn together(steps: usize) -> usize {
    const FRAMES: usize = 128;
    (FRAMES / steps).clamp(1, 16)
}

fn wrong(what: &str, got: &[usize]) -> Error {
    Error::value("program", format!("{what}: got {got:?}"))
}

/// Every value stands behind those that it is made of.
fn check(program: &Program) -> Result<()> {
    let first = program.inputs.len() + program.numbers.len();
    for (at, instr) in program.instrs.iter().enumerate() {
        if instr.args.iter().any(|&arg| arg >= first + at) {
            return Err(wrong("an instruction takes a value that comes later", &instr.args));
        }
    }
    let inside = |value: &usize| (first..first + program.instrs.len()).contains(value);
    if program.outputs.is_empty() || !program.outputs.iter().all(inside) || program.inputs.is_empty() {
        return Err(wrong("no inputs, or outputs that are no instructions", &program.outputs));
    }
    Ok(())
}

/// Whether an op takes these types and gives that one.
fn fits(op: &str, args: &[DType], result: DType) -> bool {
    let row = |class: Class| {
        // A negative exponent among integers is an error, which no program raises.
        let floats = matches!(class, Class::power | Class::quotient);
        (!floats || args[0].is_float()) && args.iter().all(|&dtype| dtype == args[0]) && class.result(args[0]) == result
    };
    match (op, args) {
        ("cast", [_]) => true,
        ("clip", [x, low, high]) => x == low && x == high && *x == result && result != DType::Bool,
        ("where", [condition, a, b]) => *condition == DType::Bool && a == b && *a == result,
        (_, [_]) => unary::ALL.iter().find(|row| row.name == op).is_some_and(|found| row(found.class)),
        (_, [_, _]) => binary::ALL.iter().find(|row| row.name == op).is_some_and(|found| row(found.class)),
        _ => false,
    }
}

pub(super) fn dtype_of(program: &Program, value: usize) -> DType {
    let (inputs, numbers) = (program.inputs.len(), program.numbers.len());
    match value {
        _ if value < inputs => program.inputs[value],
        _ if value < inputs + numbers => program.numbers[value - inputs],
        _ => program.instrs[value - inputs - numbers].dtype,
    }
}

/// Bytes of the lanes that hold all values; `None` where no width does.
fn width_of(program: &Program) -> Option<usize> {
    let instrs = program.instrs.iter().map(|instr| instr.dtype);
    let mut width = None;
    for dtype in program.inputs.iter().chain(&program.numbers).copied().chain(instrs) {
        let own = match dtype {
            DType::Bool => continue,
            DType::F16 | DType::BF16 | DType::F32 | DType::I32 => 4,
            DType::F64 | DType::I64 => 8,
            _ => return None,
        };
        if *width.get_or_insert(own) != own {
            return None;
        }
    }
    Some(width.unwrap_or(4))
}

fn lane(dtype: DType, width: usize) -> Lane {
    match dtype {
        DType::Bool if width == 4 => Lane::Bool4,
        DType::Bool => Lane::Bool8,
        DType::I32 => Lane::I32,
        DType::I64 => Lane::I64,
        DType::F64 => Lane::F64,
        _ => Lane::F32,
    }
}

/// Writes steps for one value after the other, an accumulator machine: the last value is in registers.
struct Writer<'a> {
    program: &'a Program,
    level: Level,
    width: usize,
    steps: Vec<Step>,
    /// What each slot holds.
    slots: Vec<Option<usize>>,
    /// The value in registers.
    held: Option<usize>,
    /// Uses of each value that are still to come.
    uses: Vec<usize>,
    weight: usize,
}

impl<'a> Writer<'a> {
    fn new(program: &'a Program, level: Level, width: usize) -> Self {
        let first = program.inputs.len();
        let slots = (first..first + program.numbers.len()).map(Some).collect();
        let values = first + program.numbers.len() + program.instrs.len();
        Self { program, level, width, steps: Vec::new(), slots, held: None, uses: filled(0, values), weight: 0 }
    }

    fn first(&self) -> usize {
        self.program.inputs.len() + self.program.numbers.len()
    }

    fn step(&mut self, handler: Option<Handler>, at: Place, other: Place) -> Option<()> {
        self.steps.push(Step { handler: handler?, streamed: None, at, other });
        Some(())
    }

    /// The steps of the whole program.
    fn all(&mut self) -> Option<()> {
        let order = self.order();
        for &value in &order {
            let program = self.program;
            program.instrs[value - self.first()].args.iter().for_each(|&arg| self.uses[arg] += 1);
        }
        for value in order {
            self.instruction(value)?;
            for (at, _) in self.program.outputs.iter().enumerate().filter(|(_, output)| **output == value) {
                let dtype = dtype_of(self.program, value);
                self.step(moves::store(self.level, self.width, dtype), Place::Output(at), Place::None)?;
                if dtype.itemsize() == self.width {
                    self.steps.last_mut()?.streamed = moves::stream(self.level, self.width);
                }
            }
        }
        self.step(moves::end(self.level, self.width), Place::None, Place::None)
    }

    /// The instructions that the outputs need, each behind those that it takes, and close to them.
    fn order(&self) -> Vec<usize> {
        let first = self.first();
        let mut done = filled(false, self.uses.len());
        let mut order = Vec::new();
        for &output in &self.program.outputs {
            let mut work = vec![(output, false)];
            while let Some((value, ready)) = work.pop() {
                if value < first || done[value] {
                    continue;
                }
                if ready {
                    done[value] = true;
                    order.push(value);
                } else {
                    work.push((value, true));
                    work.extend(self.program.instrs[value - first].args.iter().rev().map(|&arg| (arg, false)));
                }
            }
        }
        order
    }

    fn instruction(&mut self, value: usize) -> Option<()> {
        let program = self.program;
        let instr = &program.instrs[value - self.first()];
        let args: Vec<usize> = instr.args.clone();
        let from = dtype_of(program, args[0]);
        match (instr.op.as_str(), &args[..]) {
            ("cast", &[x]) => {
                self.bring(x, &args)?;
                let lanes = lane(from, self.width);
                let (to, narrow) =
                    (lane(instr.dtype, self.width), instr.dtype.is_float() && instr.dtype.itemsize() == 2);
                if lanes != to {
                    self.step(moves::cast(self.level, lanes, to, narrow), Place::None, Place::None)?;
                }
            }
            ("clip", &[x, low, high]) => {
                let (low, high) = (self.memory(low)?, self.memory(high)?);
                self.bring(x, &args)?;
                self.row_of_two("maximum", from, false, low)?;
                self.row_of_two("minimum", from, false, high)?;
            }
            ("where", &[condition, a, b]) => {
                let (a, b) = (self.memory(a)?, self.memory(b)?);
                self.bring(condition, &args)?;
                self.step(moves::choose(self.level, self.width), a, b)?;
            }
            (op, &[x]) => {
                self.bring(x, &args)?;
                self.row_of_one(op, from)?;
            }
            (op, &[a, b]) => {
                let swapped = self.held == Some(b) && a != b || (!self.is_near(b) && self.is_near(a));
                let (own, other) = if swapped { (b, a) } else { (a, b) };
                let place = self.memory(other)?;
                self.bring(own, &args)?;
                self.row_of_two(op, from, swapped, place)?;
            }
            _ => return None,
        }
        self.weight += if is_heavy(&instr.op) { 8 } else { 1 };
        for &arg in &args {
            self.uses[arg] -= 1;
            if self.uses[arg] == 0 && arg >= self.first() {
                self.slots.iter_mut().filter(|slot| **slot == Some(arg)).for_each(|slot| *slot = None);
            }
        }
        self.held = Some(value);
        if matches!(instr.dtype, DType::F16 | DType::BF16) {
            self.step(moves::round(self.level, instr.dtype), Place::None, Place::None)?;
        }
        Some(())
    }

    /// A row: its handler, or a call of its kernel.
    fn row_of_one(&mut self, op: &str, from: DType) -> Option<()> {
        if let Some(handler) = of_one(op, self.level, lane(from, self.width)) {
            return self.step(Some(handler), Place::None, Place::None);
        }
        let row = unary::ALL.iter().find(|row| row.name == op)?;
        let kernel = (row.select)(compute_type(from))?;
        self.step(moves::call(self.level, self.width), Place::None, Place::Kernel(kernel))
    }

    fn row_of_two(&mut self, op: &str, from: DType, swapped: bool, place: Place) -> Option<()> {
        let lanes = lane(from, self.width);
        // The first slots hold numbers, to the end.
        let number = matches!(place, Place::Slot(at) if at < self.program.numbers.len());
        let numbered = if number && lanes == Lane::F32 { of_number(op, self.level, swapped) } else { None };
        if let Some(handler) = numbered.or_else(|| of_two(op, self.level, lanes, swapped)) {
            return self.step(Some(handler), place, Place::None);
        }
        let row = binary::ALL.iter().find(|row| row.name == op)?;
        let kernel = (row.select)(compute_type(from))?;
        let swapped = swapped != (row.class == Class::turned);
        self.step(moves::call_with(self.level, self.width, swapped), place, Place::Kernel(kernel))
    }

    /// Whether the elements of an input are lanes as they are stored.
    fn is_whole(&self, input: usize) -> bool {
        let dtype = self.program.inputs[input];
        dtype.itemsize() == self.width && dtype != DType::Bool
    }

    /// Whether a value has a place in memory, or gets one without being loaded.
    fn is_near(&self, value: usize) -> bool {
        self.place(value).is_some() || self.held == Some(value)
    }

    /// Where a value lies as lanes.
    fn place(&self, value: usize) -> Option<Place> {
        if value < self.program.inputs.len() && self.is_whole(value) {
            return Some(Place::Input(value));
        }
        self.slots.iter().position(|slot| *slot == Some(value)).map(Place::Slot)
    }

    /// The place of a value in memory; it is loaded and saved where it has none.
    fn memory(&mut self, value: usize) -> Option<Place> {
        if let Some(place) = self.place(value) {
            return Some(place);
        }
        if self.held != Some(value) {
            self.load(value)?;
        }
        self.save(value)?;
        self.place(value)
    }

    /// Saves the value in registers in a slot.
    fn save(&mut self, value: usize) -> Option<()> {
        let free = self.slots.iter().position(Option::is_none).unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[free] = Some(value);
        self.step(moves::save(self.level, self.width), Place::Slot(free), Place::None)
    }

    /// Brings a value to registers, in front of an instruction with these operands, which puts its result there.
    fn bring(&mut self, value: usize, args: &[usize]) -> Option<()> {
        if self.held != Some(value) {
            return self.load(value);
        }
        let here = args.iter().filter(|&&arg| arg == value).count();
        if value >= self.first() && self.uses[value] > here && self.place(value).is_none() {
            self.save(value)?;
        }
        Some(())
    }

    /// Loads a value in the place of the one in registers, which is saved where it is needed again.
    fn load(&mut self, value: usize) -> Option<()> {
        if let Some(held) = self.held
            && held >= self.first()
            && self.uses[held] > 0
            && self.place(held).is_none()
        {
            self.save(held)?;
        }
        let (place, dtype) = match self.place(value) {
            Some(place) => (place, None),
            None => (Place::Input(value), self.program.inputs.get(value).copied()),
        };
        let handler = match dtype {
            Some(dtype) => moves::load(self.level, self.width, dtype),
            // Lanes in memory are loaded as they are, whatever their type.
            None => moves::load(self.level, self.width, if self.width == 4 { DType::I32 } else { DType::I64 }),
        };
        self.held = Some(value);
        self.step(handler, place, Place::None)
    }
}

pub(super) fn is_heavy(op: &str) -> bool {
    let one = unary::ALL.iter().find(|row| row.name == op).map(|row| row.class);
    let class = one.or_else(|| binary::ALL.iter().find(|row| row.name == op).map(|row| row.class));
    class.is_some_and(Class::heavy)
}
