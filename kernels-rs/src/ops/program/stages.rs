//! From a program with folds to its stages: passes over the rows, each of them code of its own.
//!
//! A value has an element for each element of the walk, or one for each row. What a pass computes is what its folds and
//! results need: a fold reads values of its pass, and what reads the fold comes a pass later. Between passes a value is
//! kept where it costs much, else it is computed again.

use super::code::{Code, compile, dtype_of, is_heavy};
use super::data::{Instr, Program};
use super::sources::is_source;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::machine::simd::Level;
use crate::memory::scratch::{collected, filled};
use crate::ops::reduction::RowFold;

/// A program among whose instructions are folds over the last axes.
#[derive(Clone, Debug)]
pub struct Folds {
    /// The instructions; a fold is named by its reduction and takes one value.
    pub program: Program,
    /// How many axes, the last ones, are folded.
    pub inner: usize,
    /// Whether results of rows keep these axes, with length 1.
    pub keepdims: bool,
    /// The inputs that have one element for each row.
    pub rows: Vec<usize>,
}

/// Where code finds an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// In an input of the program.
    Input(usize),
    /// Among the elements of rows.
    Row(usize),
    /// Among the elements that are kept from pass to pass.
    Kept(usize),
}

/// Where code leaves a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// In a result of the program.
    Output(usize),
    /// Among the elements of rows.
    Row(usize),
    /// Among the elements that are kept from pass to pass.
    Kept(usize),
}

/// Code for some of the instructions.
#[derive(Debug)]
pub struct Part {
    pub code: Code,
    pub from: Vec<Origin>,
    pub into: Vec<Goal>,
    /// Which numbers of the program it takes.
    pub numbers: Vec<usize>,
}

/// A fold of a value that is kept, or of an input.
#[derive(Clone, Copy, Debug)]
pub struct Fold {
    pub by: RowFold,
    pub from: Origin,
    pub dtype: DType,
    /// Which value of rows it gives.
    pub into: usize,
}

/// One walk over the rows.
#[derive(Debug)]
pub struct Pass {
    /// On elements of rows, ahead of it.
    pub ahead: Option<Part>,
    pub each: Option<Part>,
    /// The same without what passes before have kept, for rows too long to be kept.
    pub alone: Option<Part>,
    pub folds: Vec<Fold>,
    /// What it makes of rows it folds itself, and no pass behind it reads that: rows may go piece by piece.
    pub passing: bool,
}

impl Pass {
    /// Its code on elements of the walk.
    pub fn each(&self, alone: bool) -> Option<&Part> {
        if alone { self.alone.as_ref() } else { self.each.as_ref() }
    }

    /// Whether its code or its folds read what is kept in a slot that `which` names.
    fn reads(&self, which: impl Fn(usize) -> bool) -> bool {
        let each = self.each.iter().flat_map(|part| &part.from);
        each.chain(self.folds.iter().map(|fold| &fold.from))
            .any(|from| matches!(from, Origin::Kept(slot) if which(*slot)))
    }
}

/// Whether a pass is one that [`Pass::passing`] tells, given those behind it.
fn passes_on(pass: &Pass, later: &[Pass]) -> bool {
    let Some(each) = &pass.each else { return false };
    let own = |slot: usize| each.into.contains(&Goal::Kept(slot));
    let code = !each.from.iter().any(|from| matches!(from, Origin::Kept(_)));
    code && !pass.folds.is_empty() && !pass.reads(|slot| !own(slot)) && !later.iter().any(|pass| pass.reads(own))
}

/// A program with folds, ready to run.
#[derive(Debug)]
pub struct Stages {
    pub(super) inner: usize,
    pub(super) keepdims: bool,
    pub(super) inputs: Vec<DType>,
    pub(super) numbers: Vec<DType>,
    /// Their types; and of which row value it is, where it has one element for each row.
    pub(super) outputs: Vec<(DType, Option<usize>)>,
    pub(super) passes: Vec<Pass>,
    pub(super) kept: Vec<DType>,
    /// The values that have an element for each row; and the input that they are.
    pub(super) rows: Vec<(DType, Option<usize>)>,
}

/// The stages of a program; `None` where the machine has no code for one of its instructions, and for sources: passes would
/// draw their numbers again.
pub fn staged(folds: &Folds, level: Level) -> Result<Option<Stages>> {
    let program = &folds.program;
    let values = program.inputs.len() + program.numbers.len() + program.instrs.len();
    if folds.inner == 0 || folds.rows.iter().any(|&at| at >= program.inputs.len()) {
        return Err(Error::value("program", format!("no inner axes, or rows that are no inputs: {:?}", folds.rows)));
    }
    let early = |at: usize| {
        program.instrs[at].args.is_empty()
            || program.instrs[at].args.iter().any(|&arg| arg >= values - program.instrs.len() + at)
    };
    let made = values - program.instrs.len()..values;
    if (0..program.instrs.len()).any(early) || !program.outputs.iter().all(|at| made.contains(at)) {
        return Err(Error::value("program", "values that come later, or outputs that are no instructions".to_owned()));
    }
    if program.instrs.iter().any(is_source) {
        return Ok(None);
    }
    let Some(known) = Known::of(folds) else { return Ok(None) };
    Planner { folds, known, level }.plan()
}

/// What is known of each value.
struct Known {
    first: usize,
    needed: Vec<bool>,
    /// It has an element for each row.
    row: Vec<bool>,
    /// The pass that computes it, or ahead of which it is there.
    pass: Vec<usize>,
    /// Where it is kept.
    kept: Vec<Option<usize>>,
    /// Which value of rows it is.
    slot: Vec<Option<usize>>,
}

fn fold_of(program: &Program, instr: &Instr) -> Option<RowFold> {
    let [arg] = instr.args[..] else { return None };
    RowFold::new(&instr.op, instr.dtype).filter(|_| dtype_of(program, arg) == instr.dtype)
}

fn is_fold(instr: &Instr) -> bool {
    RowFold::new(&instr.op, DType::F32).is_some()
}

impl Known {
    /// `None` where a fold is not one of elements of the walk, or not of its type.
    fn of(folds: &Folds) -> Option<Self> {
        let program = &folds.program;
        let (inputs, first) = (program.inputs.len(), program.inputs.len() + program.numbers.len());
        let count = first + program.instrs.len();
        let mut known = Known {
            first,
            needed: filled(false, count),
            row: collected((0..count).map(|at| if at < inputs { folds.rows.contains(&at) } else { at < first })),
            pass: filled(0, count),
            kept: filled(None, count),
            slot: filled(None, count),
        };
        for (at, instr) in (first..).zip(&program.instrs) {
            known.pass[at] = instr.args.iter().map(|&arg| known.pass[arg]).max()?;
            known.row[at] = instr.args.iter().all(|&arg| known.row[arg]);
            if is_fold(instr) {
                if known.row[at] {
                    return None;
                }
                fold_of(program, instr)?;
                known.row[at] = true;
                known.pass[at] += 1;
            }
        }
        program.outputs.iter().for_each(|&output| known.needed[output] = true);
        for (at, instr) in (first..count).zip(&program.instrs).rev() {
            if known.needed[at] {
                instr.args.iter().for_each(|&arg| known.needed[arg] = true);
            }
        }
        known.keep(program);
        Some(known)
    }

    /// Decides what is kept: what is folded, and what costs much and is read in a later pass.
    fn keep(&mut self, program: &Program) {
        let (first, mut later) = (self.first, filled(false, self.pass.len()));
        let mut folded = later.clone();
        for (at, instr) in (first..self.pass.len()).zip(&program.instrs).rev().filter(|(at, _)| self.needed[*at]) {
            let stays = folded[at] || is_heavy(&instr.op);
            for &arg in instr.args.iter().filter(|arg| **arg >= first) {
                if is_fold(instr) {
                    folded[arg] = true;
                } else if !self.row[at] {
                    later[arg] |= self.pass[at] > self.pass[arg] || (later[at] && !stays);
                }
            }
        }
        let (mut kept, mut rows) = (0, 0);
        for at in 0..self.pass.len() {
            let number = (program.inputs.len()..first).contains(&at);
            if !self.needed[at] || number {
                continue;
            }
            if self.row[at] {
                self.slot[at] = Some(rows);
                rows += 1;
            } else if at >= first && (folded[at] || later[at] && is_heavy(&program.instrs[at - first].op)) {
                self.kept[at] = Some(kept);
                kept += 1;
            }
        }
    }
}

struct Planner<'a> {
    folds: &'a Folds,
    known: Known,
    level: Level,
}

impl Planner<'_> {
    fn plan(&self) -> Result<Option<Stages>> {
        let (program, known) = (&self.folds.program, &self.known);
        let last = (0..known.pass.len()).filter(|&at| known.needed[at]).map(|at| known.pass[at]).max().unwrap_or(0);
        let mut passes = Vec::new();
        for pass in 0..=last {
            let Some(pass) = self.pass(pass)? else { return Ok(None) };
            passes.push(pass);
        }
        for at in 0..passes.len() {
            let (before, later) = passes.split_at_mut(at + 1);
            before[at].passing = passes_on(&before[at], later);
        }
        let typed = |slots: &[Option<usize>]| {
            collected(slots.iter().enumerate().filter(|(_, slot)| slot.is_some()).map(|(at, _)| at))
        };
        let rows = typed(&known.slot).into_iter();
        Ok(Some(Stages {
            inner: self.folds.inner,
            keepdims: self.folds.keepdims,
            inputs: program.inputs.clone(),
            numbers: program.numbers.clone(),
            outputs: program.outputs.iter().map(|&at| (dtype_of(program, at), known.slot[at])).collect(),
            passes,
            kept: typed(&known.kept).into_iter().map(|at| dtype_of(program, at)).collect(),
            rows: rows.map(|at| (dtype_of(program, at), (at < program.inputs.len()).then_some(at))).collect(),
        }))
    }

    /// `None` where there is no code.
    fn pass(&self, pass: usize) -> Result<Option<Pass>> {
        let (program, known) = (&self.folds.program, &self.known);
        let here = |at: usize| known.needed[at] && known.pass[at] == pass;
        let instrs = || (known.first..).zip(&program.instrs);
        let ahead = instrs().filter(|(at, instr)| here(*at) && known.row[*at] && !is_fold(instr));
        let ahead = collected(ahead.map(|(at, _)| (at, Goal::Row(known.slot[at].unwrap_or_default()))));
        let kept = instrs().filter_map(|(at, _)| known.kept[at].filter(|_| here(at)).map(|slot| (at, slot)));
        let mut each: Vec<(usize, Goal)> = collected(kept.map(|(at, slot)| (at, Goal::Kept(slot))));
        // Without anything kept, only what is folded is computed beside the results.
        let folds = instrs().filter(|(at, instr)| known.needed[*at] && is_fold(instr) && known.pass[*at] == pass + 1);
        let folds: Vec<(usize, &Instr)> = collected(folds);
        let mut alone = each.clone();
        alone.retain(|(at, _)| folds.iter().any(|(_, instr)| instr.args[0] == *at));
        for (output, &at) in program.outputs.iter().enumerate().filter(|(_, at)| here(**at) && !known.row[**at]) {
            each.push((at, Goal::Output(output)));
            alone.push((at, Goal::Output(output)));
        }
        let folds = folds.into_iter().map(|(at, instr)| {
            let arg = instr.args[0];
            let from = known.kept[arg].map_or(Origin::Input(arg), Origin::Kept);
            let fold = fold_of(program, instr)?;
            Some(Fold { by: fold, from, dtype: instr.dtype, into: known.slot[at]? })
        });
        let Some(folds) = folds.collect::<Option<Vec<Fold>>>() else { return Ok(None) };
        let (Some(ahead), Some(each), Some(alone)) =
            (self.part(&ahead, pass, false)?, self.part(&each, pass, true)?, self.part(&alone, pass, false)?)
        else {
            return Ok(None);
        };
        Ok(Some(Pass { ahead: ahead.some(), each: each.some(), alone: alone.some(), folds, passing: false }))
    }

    /// The code for some values of a pass; `kept`: it may read what passes before have kept. `None` where there is none.
    fn part(&self, wanted: &[(usize, Goal)], pass: usize, kept: bool) -> Result<Option<Wanted>> {
        if wanted.is_empty() {
            return Ok(Some(Wanted(None)));
        }
        let (program, known) = (&self.folds.program, &self.known);
        let rows = known.row[wanted[0].0];
        let outside = |at: usize| {
            if wanted.iter().any(|(own, _)| *own == at) {
                None
            } else if known.row[at] {
                known.slot[at].map(Origin::Row)
            } else if at < program.inputs.len() {
                Some(Origin::Input(at))
            } else {
                known.kept[at].filter(|_| kept && known.pass[at] < pass).map(Origin::Kept)
            }
        };
        let mut inside = collected((0..known.pass.len()).map(|at| wanted.iter().any(|(own, _)| *own == at)));
        let (mut from, mut numbers) = (Vec::new(), Vec::new());
        for at in (known.first..known.pass.len()).rev().filter(|at| !rows || known.row[*at]) {
            if !inside[at] {
                continue;
            }
            for &arg in &program.instrs[at - known.first].args {
                if (program.inputs.len()..known.first).contains(&arg) {
                    numbers.push(arg);
                } else if let Some(found) = outside(arg) {
                    from.push((arg, found));
                } else {
                    inside[arg] = true;
                }
            }
        }
        from.sort_unstable_by_key(|(at, _)| *at);
        from.dedup();
        numbers.sort_unstable();
        numbers.dedup();
        let mut names = filled(0, known.pass.len());
        from.iter().map(|(at, _)| *at).chain(numbers.iter().copied()).enumerate().for_each(|(new, at)| names[at] = new);
        let mut instrs = Vec::new();
        for at in (known.first..known.pass.len()).filter(|at| inside[*at]) {
            let instr = &program.instrs[at - known.first];
            names[at] = from.len() + numbers.len() + instrs.len();
            let args = instr.args.iter().map(|&arg| names[arg]).collect();
            instrs.push(Instr { args, ..instr.clone() });
        }
        let own = Program {
            inputs: from.iter().map(|(at, _)| dtype_of(program, *at)).collect(),
            numbers: numbers.iter().map(|at| dtype_of(program, *at)).collect(),
            instrs,
            outputs: wanted.iter().map(|(at, _)| names[*at]).collect(),
        };
        let Some(code) = compile(&own, self.level)? else { return Ok(None) };
        let numbers = numbers.into_iter().map(|at| at - program.inputs.len()).collect();
        let (from, into) =
            (from.into_iter().map(|(_, found)| found).collect(), wanted.iter().map(|(_, into)| *into).collect());
        Ok(Some(Wanted(Some(Part { code, from, into, numbers }))))
    }
}

/// Code that there is, or nothing to do.
struct Wanted(Option<Part>);

impl Wanted {
    fn some(self) -> Option<Part> {
        self.0
    }
}
