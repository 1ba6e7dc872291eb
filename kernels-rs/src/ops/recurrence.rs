//! Recurrent layers: walks over the steps of a sequence. A task takes some sequences through all steps, so that threads
//! never wait for each other; how many is a function of the shapes alone.

mod back;
mod gates;
mod gates_back;
#[cfg(test)]
mod tests;
mod walk;

use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::elementwise::convert::cast;
use crate::ops::parts;
use back::{back, require_of_steps};
pub use gates::Activation;
use gates::{Gate, Gru, Lstm, Rnn};
use walk::{Job, walk};

/// What all recurrences are given.
#[derive(Clone, Copy)]
pub struct Given<'a> {
    /// (N, steps, gates * H), what the inputs give.
    pub inputs: &'a Array,
    /// (H, gates * H).
    pub weight: &'a Array,
    /// (N,): of a sequence its first so many steps count.
    pub lengths: Option<&'a Array>,
    /// From the last step to the first.
    pub reverse: bool,
}

impl Given<'_> {
    /// Refuses a bias of other gates.
    fn require_bias(&self, bias: Option<&Array>) -> Result<()> {
        let wide = self.weight.shape().last().copied();
        if bias.is_some_and(|x| x.rank() != 1 || Some(x.shape()[0]) != wide || x.dtype() != self.inputs.dtype()) {
            return Err(Error::Rejected("a recurrence wants a bias that fits its weight"));
        }
        Ok(())
    }

    /// All dense, in the dtype that is computed in. States are (N, H).
    fn job<T: Gate, const S: usize>(&self, states: [&Array; S], gates: usize) -> Result<Job<S>> {
        let (inputs, weight) = (self.inputs, self.weight);
        let fits = || {
            let (&[n, _, wide], &[size, across]) = (&inputs.shape()[..], &weight.shape()[..]) else { return false };
            let floats = states.iter().chain([&weight]).all(|x| x.dtype() == inputs.dtype());
            let starts = states.iter().all(|x| x.shape()[..] == [n, size]);
            let counted = self.lengths.is_none_or(|x| x.shape()[..] == [n] && !x.dtype().is_float());
            floats && starts && counted && wide == across && size.checked_mul(gates) == Some(wide)
        };
        if !inputs.dtype().is_float() || !fits() {
            return Err(Error::Rejected("a recurrence wants operands of one float dtype that fit each other"));
        }
        let mut ready = states.map(Array::clone);
        for state in &mut ready {
            *state = parts::ready(state, T::DTYPE)?;
        }
        Ok(Job {
            inputs: parts::ready(inputs, T::DTYPE)?,
            weight: parts::ready(weight, T::DTYPE)?,
            lengths: self.lengths.map(|x| parts::ready(x, DType::I64)).transpose()?,
            starts: ready,
            reverse: self.reverse,
        })
    }
}

/// Hidden states and cells (N, steps, H) behind each step of an LSTM; gates are input, forget, cell, output.
pub fn lstm_steps(given: &Given<'_>, hidden: &Array, cell: &Array) -> Result<(Array, Array)> {
    let [hiddens, cells] = if given.inputs.dtype() == DType::F64 {
        walk::<f64, 2>(&given.job::<f64, 2>([hidden, cell], 4)?, &Lstm)?
    } else {
        walk::<f32, 2>(&given.job::<f32, 2>([hidden, cell], 4)?, &Lstm)?
    };
    Ok((cast(&hiddens, given.inputs.dtype())?, cast(&cells, given.inputs.dtype())?))
}

/// States (N, steps, H) behind each step of a GRU; gates are reset, update, new. `bias` is that of the hidden side.
pub fn gru_steps(given: &Given<'_>, bias: Option<&Array>, hidden: &Array) -> Result<Array> {
    given.require_bias(bias)?;
    let [states] = if given.inputs.dtype() == DType::F64 {
        let job = given.job::<f64, 1>([hidden], 3)?;
        walk::<f64, 1>(&job, &Gru::<f64>::new(bias)?)?
    } else {
        let job = given.job::<f32, 1>([hidden], 3)?;
        walk::<f32, 1>(&job, &Gru::<f32>::new(bias)?)?
    };
    cast(&states, given.inputs.dtype())
}

/// What came out of the steps of an LSTM, and its cotangents; None where a result was not used. (N, steps, H) each.
#[derive(Clone, Copy)]
pub struct Found<'a> {
    /// Hidden states.
    pub hiddens: &'a Array,
    /// Cells.
    pub cells: &'a Array,
    /// Of the hidden states.
    pub g_hiddens: Option<&'a Array>,
    /// Of the cells.
    pub g_cells: Option<&'a Array>,
}

/// Cotangents of what inputs give, (N, steps, 4 * H), and of the states at the start, (N, H).
pub fn lstm_steps_backward(
    given: &Given<'_>,
    hidden: &Array,
    cell: &Array,
    found: &Found<'_>,
) -> Result<(Array, Array, Array)> {
    let (states, wanted) = ([found.hiddens, found.cells], [found.g_hiddens, found.g_cells]);
    require_of_steps(given, states.into_iter().chain(wanted.into_iter().flatten()))?;
    let (starts, dtype) = ([hidden, cell], given.inputs.dtype());
    let ([pulls], [hidden, cell]) = if dtype == DType::F64 {
        back::<f64, 2, 1>(given.job::<f64, 2>(starts, 4)?, states, wanted, &Lstm)?
    } else {
        back::<f32, 2, 1>(given.job::<f32, 2>(starts, 4)?, states, wanted, &Lstm)?
    };
    Ok((cast(&pulls, dtype)?, cast(&hidden, dtype)?, cast(&cell, dtype)?))
}

/// States (N, steps, H) behind each step of a plain recurrence.
pub fn rnn_steps(given: &Given<'_>, hidden: &Array, activation: Activation) -> Result<Array> {
    let [states] = if given.inputs.dtype() == DType::F64 {
        walk::<f64, 1>(&given.job::<f64, 1>([hidden], 1)?, &Rnn { activation })?
    } else {
        walk::<f32, 1>(&given.job::<f32, 1>([hidden], 1)?, &Rnn { activation })?
    };
    cast(&states, given.inputs.dtype())
}

/// Cotangents of what inputs give and of the products with states, (N, steps, 3 * H) each, and of the state at the
/// start, (N, H), from the states behind each step and their cotangents.
pub fn gru_steps_backward(
    given: &Given<'_>,
    bias: Option<&Array>,
    hidden: &Array,
    hiddens: &Array,
    g_hiddens: &Array,
) -> Result<(Array, Array, Array)> {
    given.require_bias(bias)?;
    require_of_steps(given, [hiddens, g_hiddens])?;
    let (wanted, dtype) = ([Some(g_hiddens)], given.inputs.dtype());
    let ([products, inputs], [first]) = if dtype == DType::F64 {
        back::<f64, 1, 2>(given.job::<f64, 1>([hidden], 3)?, [hiddens], wanted, &Gru::<f64>::new(bias)?)?
    } else {
        back::<f32, 1, 2>(given.job::<f32, 1>([hidden], 3)?, [hiddens], wanted, &Gru::<f32>::new(bias)?)?
    };
    Ok((cast(&inputs, dtype)?, cast(&products, dtype)?, cast(&first, dtype)?))
}

/// Cotangents of what inputs give, (N, steps, H), and of the state at the start, (N, H). The `inputs` that are given are
/// the states behind each step, which say all about the slopes.
pub fn rnn_steps_backward(
    given: &Given<'_>,
    hidden: &Array,
    g_hiddens: &Array,
    activation: Activation,
) -> Result<(Array, Array)> {
    require_of_steps(given, [g_hiddens])?;
    let (wanted, dtype, cell) = ([Some(g_hiddens)], given.inputs.dtype(), Rnn { activation });
    let ([pulls], [first]) = if dtype == DType::F64 {
        let job = given.job::<f64, 1>([hidden], 1)?;
        let states = job.inputs.clone();
        back::<f64, 1, 1>(job, [&states], wanted, &cell)?
    } else {
        let job = given.job::<f32, 1>([hidden], 1)?;
        let states = job.inputs.clone();
        back::<f32, 1, 1>(job, [&states], wanted, &cell)?
    };
    Ok((cast(&pulls, dtype)?, cast(&first, dtype)?))
}
