//! Recurrent layers: walks over the steps of a sequence. A task takes some sequences through all steps, so that threads
//! never wait for each other; how many is a function of the shapes alone.

mod gates;
mod lstm_back;
#[cfg(test)]
mod tests;
mod walk;

use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::elementwise::convert::cast;
use crate::ops::parts;
pub use gates::Activation;
use gates::{Gate, Gru, Lstm, Rnn};
pub use lstm_back::{Found, lstm_steps_backward};
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
    let wide = given.weight.shape().last().copied();
    if bias.is_some_and(|x| x.rank() != 1 || Some(x.shape()[0]) != wide || x.dtype() != given.inputs.dtype()) {
        return Err(Error::Rejected("a recurrence wants a bias that fits its weight"));
    }
    let [states] = if given.inputs.dtype() == DType::F64 {
        let job = given.job::<f64, 1>([hidden], 3)?;
        walk::<f64, 1>(&job, &Gru::<f64>::new(bias)?)?
    } else {
        let job = given.job::<f32, 1>([hidden], 3)?;
        walk::<f32, 1>(&job, &Gru::<f32>::new(bias)?)?
    };
    cast(&states, given.inputs.dtype())
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
