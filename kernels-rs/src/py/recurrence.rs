//! Recurrent layers.

use super::arg::*;
use crate::ops::recurrence::{self, Activation, Found, Given};

super::ops! {
    gru_steps(
        inputs: Tensor, weight: Tensor, bias: OptTensor, hidden: Tensor, lengths: OptTensor, reverse: bool
    ) => recurrence::gru_steps(&Given { inputs, weight, lengths, reverse }, bias, hidden);
    gru_steps_backward(
        inputs: Tensor, weight: Tensor, bias: OptTensor, hidden: Tensor, lengths: OptTensor, hiddens: Tensor,
        g_hiddens: Tensor, reverse: bool
    ) => recurrence::gru_steps_backward(&Given { inputs, weight, lengths, reverse }, bias, hidden, hiddens, g_hiddens);
    lstm_steps(
        inputs: Tensor, weight: Tensor, hidden: Tensor, cell: Tensor, lengths: OptTensor, reverse: bool
    ) => recurrence::lstm_steps(&Given { inputs, weight, lengths, reverse }, hidden, cell);
    lstm_steps_backward(
        inputs: Tensor, weight: Tensor, hidden: Tensor, cell: Tensor, lengths: OptTensor, hiddens: Tensor, cells: Tensor,
        g_hiddens: OptTensor, g_cells: OptTensor, reverse: bool
    ) => {
        let found = Found { hiddens, cells, g_hiddens, g_cells };
        recurrence::lstm_steps_backward(&Given { inputs, weight, lengths, reverse }, hidden, cell, &found)
    };
    rnn_steps(
        inputs: Tensor, weight: Tensor, hidden: Tensor, lengths: OptTensor, activation: Text, reverse: bool
    ) => recurrence::rnn_steps(&Given { inputs, weight, lengths, reverse }, hidden, Activation::from_name(activation)?);
    rnn_steps_backward(
        hiddens: Tensor, weight: Tensor, hidden: Tensor, lengths: OptTensor, g_hiddens: Tensor, activation: Text,
        reverse: bool
    ) => {
        let given = Given { inputs: hiddens, weight, lengths, reverse };
        recurrence::rnn_steps_backward(&given, hidden, g_hiddens, Activation::from_name(activation)?)
    };
}
