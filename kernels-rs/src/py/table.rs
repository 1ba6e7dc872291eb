//! The rows: every op that is a function of plain values. `super::row` says how to add one.

use super::arg::*;
use crate::array::shape::numel;
use crate::array::view;
use crate::ops::attention::{self as heads, Operands, Settings as Scoring};
use crate::ops::blocks;
use crate::ops::contraction;
use crate::ops::convolution::{self, Settings as Window};
use crate::ops::distance;
use crate::ops::elementwise::{choice, convert, repair};
use crate::ops::factorization;
use crate::ops::indexing;
use crate::ops::interpolation;
use crate::ops::movement;
use crate::ops::pooling::{self, Settings as Pool};
use crate::ops::quantization;
use crate::ops::random;
use crate::ops::recurrence::{self, Activation, Found, Given};
use crate::ops::reduction;
use crate::ops::rows;
use crate::ops::sampling;
use crate::ops::scan;
use crate::ops::sort as sorting;
use crate::ops::statistics;
use crate::ops::step;
use crate::ops::transform;

super::row::rows! {
    // Attention.
    attention(
        query: Tensor, key: Tensor, value: Tensor, mask: OptTensor, bias: OptTensor, scale: f64, softcap: Option<f64>,
        is_causal: bool
    ) => heads::attention(Operands { query, key, value, mask, bias }, Scoring { scale, softcap, is_causal });
    attention_backward(
        g: Tensor, query: Tensor, key: Tensor, value: Tensor, mask: OptTensor, bias: OptTensor, scale: f64,
        softcap: Option<f64>, is_causal: bool
    ) => {
        let operands = Operands { query, key, value, mask, bias };
        heads::attention_backward(g, operands, Scoring { scale, softcap, is_causal })
    };

    // Matrix products.
    blocks_linear(x: Tensor, blocks: Tensor, bias: OptTensor, form: Text, rounded: bool)
        => blocks::blocks_linear(x, blocks, bias, form, rounded);
    fused_linear(
        x: Tensor, weight: Tensor, bias: OptTensor, residual: OptTensor, activation: Text, scale: f64
    ) => contraction::fused_linear(
        x, weight, &contraction::End { bias, residual, activation: contraction::Activation::from_name(activation)?, scale }
    );
    linear(x: Tensor, weight: Tensor, bias: OptTensor) => contraction::linear(x, weight, bias);
    matmul(x1: Tensor, x2: Tensor) => contraction::matmul(x1, x2);
    matmul_integer(x1: Tensor, x2: Tensor, dtype: Dtype) => contraction::matmul_integer(x1, x2, dtype);
    prepacked(weight: Tensor) => contraction::prepacked(weight);
    quantized_linear(x: Tensor, weight: Tensor, scale: Tensor, bias: OptTensor, bits: usize)
        => contraction::quantized_linear(x, weight, scale, bias, bits);

    // Convolutions.
    conv2d(
        x: Tensor, weight: Tensor, bias: OptTensor, stride: Pair, padding: (Pair, Pair), dilation: Pair, groups: usize
    ) => convolution::conv2d(x, weight, bias, &Window { stride, padding, dilation, groups });
    conv2d_input_grad(
        g: Tensor, weight: Tensor, input_shape: Ints, stride: Pair, padding: (Pair, Pair), dilation: Pair, groups: usize
    ) => convolution::conv2d_input_grad(g, weight, input_shape, &Window { stride, padding, dilation, groups });
    conv2d_weight_grad(
        g: Tensor, x: Tensor, weight_shape: Ints, stride: Pair, padding: (Pair, Pair), dilation: Pair, groups: usize
    ) => convolution::conv2d_weight_grad(g, x, weight_shape, &Window { stride, padding, dilation, groups });
    conv_transpose2d(
        x: Tensor, weight: Tensor, bias: OptTensor, stride: Pair, padding: (Pair, Pair), output_padding: Pair,
        dilation: Pair, groups: usize
    ) => convolution::conv_transpose2d(x, weight, bias, &Window { stride, padding, dilation, groups }, output_padding);

    // New arrays: filled, counted, of another dtype.
    arange(start: Value, step: Value, count: usize, dtype: Dtype) [work = count]
        => convert::arange(start, step, count, dtype);
    cast(x: Tensor, dtype: Dtype) => convert::cast(x, dtype);
    full(shape: Ints, value: Value, dtype: Dtype) [work = numel(shape)] => convert::full(shape, value, dtype);

    // Weights in the blocks of a file.
    dequantize_blocks(blocks: Tensor, form: Text, dtype: Dtype) [work = 4 * blocks.numel()]
        => blocks::dequantize_blocks(blocks, form, dtype);

    // Distances between the rows of two matrices.
    cdist(x1: Tensor, x2: Tensor, p: f64) => distance::cdist(x1, x2, p);

    // Elementwise ops whose scalars are not operands.
    clip(x: Tensor, min: OptValue, max: OptValue) => choice::clip(x, min, max);
    nan_to_num(x: Tensor, nan: OptValue, posinf: OptValue, neginf: OptValue)
        => repair::nan_to_num(x, nan, posinf, neginf);

    // Factorisations.
    _reflected(x1: Tensor, x2: Tensor) => factorization::reflected(x1, x2);
    cholesky(x: Tensor, upper: bool) => factorization::cholesky(x, upper);
    det(x: Tensor) => factorization::det(x);
    inv(x: Tensor) => factorization::inv(x);
    lu(x: Tensor) => factorization::lu(x);
    qr(x: Tensor, mode: Text) => factorization::qr(x, factorization::Columns::from_name(mode)?);
    slogdet(x: Tensor) => factorization::slogdet(x);
    solve(x1: Tensor, x2: Tensor) => factorization::solve(x1, x2);
    solve_triangular(x1: Tensor, x2: Tensor, upper: bool, unit_diagonal: bool)
        => factorization::solve_triangular(x1, x2, upper, unit_diagonal);

    // Reading and writing at indices.
    gather_nd(x: Tensor, indices: Tensor) => indexing::gather_nd(x, indices);
    index_add(x: Tensor, indices: Tensor, values: Tensor, axis: usize) => indexing::index_add(x, indices, values, axis);
    masked_select(x: Tensor, mask: Tensor) => indexing::masked_select(x, mask);
    nonzero(mask: Tensor) => indexing::nonzero(mask);
    scatter(x: Tensor, indices: Tensor, values: Tensor, axis: usize, update: Text)
        => indexing::scatter(x, indices, values, axis, indexing::Update::from_name(update)?);
    take(x: Tensor, indices: Tensor, axis: usize) => indexing::take(x, indices, axis);
    take_along_axis(x: Tensor, indices: Tensor, axis: usize) => indexing::take_along_axis(x, indices, axis);

    // Interpolation.
    interpolate(x: Tensor, size: Ints, mode: Text, align_corners: bool, antialias: bool) => {
        let filter = interpolation::Filter::from_name(mode)?;
        interpolation::interpolate(x, size, interpolation::How { filter, align_corners, antialias })
    };
    interpolate2d(x: Tensor, size: Pair, mode: Text, align_corners: bool)
        => interpolation::interpolate2d(x, size, interpolation::Mode::from_name(mode)?, align_corners);
    interpolate2d_backward(g: Tensor, input_shape: Ints, mode: Text, align_corners: bool)
        => interpolation::interpolate2d_backward(g, input_shape, interpolation::Mode::from_name(mode)?, align_corners);

    // Ops that only move elements, and views.
    add_slices(parts: Tensors, shape: Ints, start: Many<usize>, step: Many<isize>)
        => movement::add_slices(&parts, shape, start, step);
    append(x: Tensor, values: Tensor, axis: usize) => movement::append(x, values, axis);
    append_at(x: Tensor, values: Tensor, place: Tensor, axis: usize) => movement::append_at(x, values, place, axis);
    broadcast_to(x: Tensor, shape: Ints) => view::broadcast_to(x, shape);
    chunk(x: Tensor, chunks: usize, axis: usize) => view::chunk(x, chunks, axis);
    concat(xs: Tensors, axis: usize) => movement::concat(&xs, axis);
    contiguous(x: Tensor) => x.contiguous();
    flip(x: Tensor, axis: Ints) => view::flip(x, axis);
    pad(x: Tensor, padding: Pairs, value: Value) => movement::pad(x, padding, value);
    permute_dims(x: Tensor, axes: Ints) => view::permute_dims(x, axes);
    repeat(x: Tensor, repeats: usize, axis: Option<usize>) => movement::repeat(x, repeats, axis);
    reshape(x: Tensor, shape: Ints) => view::reshape(x, shape);
    slice(x: Tensor, start: Ints, size: Ints, step: Steps) => view::slice(x, start, size, step);
    slice_scatter(x: Tensor, values: Tensor, start: Ints, size: Ints, step: Steps)
        => movement::slice_scatter(x, values, start, size, step);
    split(x: Tensor, sections: Many<usize>, axis: usize) => view::split(x, sections, axis);
    unstack(x: Tensor, axis: usize) => view::unstack(x, axis);

    // Pools.
    avg_pool2d(
        x: Tensor, kernel: Pair, stride: Pair, padding: (Pair, Pair), ceil_mode: bool, count_include_pad: bool
    ) => pooling::avg_pool2d(x, &Pool { kernel, stride, padding, dilation: (1, 1), ceil_mode }, count_include_pad);
    avg_pool2d_backward(
        g: Tensor, input_shape: Ints, kernel: Pair, stride: Pair, padding: (Pair, Pair), ceil_mode: bool,
        count_include_pad: bool
    ) => {
        let settings = Pool { kernel, stride, padding, dilation: (1, 1), ceil_mode };
        pooling::avg_pool2d_backward(g, input_shape, &settings, count_include_pad)
    };
    max_pool2d(
        x: Tensor, kernel: Pair, stride: Pair, padding: (Pair, Pair), dilation: Pair, ceil_mode: bool
    ) => pooling::max_pool2d(x, &Pool { kernel, stride, padding, dilation, ceil_mode });
    max_pool2d_backward(g: Tensor, indices: Tensor, input_shape: Ints)
        => pooling::max_pool2d_backward(g, indices, input_shape);
    max_pool2d_with_indices(
        x: Tensor, kernel: Pair, stride: Pair, padding: (Pair, Pair), dilation: Pair, ceil_mode: bool
    ) => pooling::max_pool2d_with_indices(x, &Pool { kernel, stride, padding, dilation, ceil_mode });

    // Integers times scales.
    dequantize(x: Tensor, scale: Tensor, zero_point: OptTensor, axis: Option<usize>)
        => quantization::dequantize(x, scale, zero_point, axis);

    // Random numbers.
    random_bits(count: usize, key: u64, counter: u64, dtype: Dtype) [work = count]
        => random::random_bits(count, key, counter, dtype);
    random_normal(shape: Ints, mean: f64, std: f64, dtype: Dtype, key: u64, counter: u64) [work = numel(shape)]
        => random::random_normal(shape, mean, std, dtype, key, counter);
    random_uniform(shape: Ints, low: f64, high: f64, dtype: Dtype, key: u64, counter: u64) [work = numel(shape)]
        => random::random_uniform(shape, low, high, dtype, key, counter);

    // Recurrent layers.
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

    // Reductions.
    all(x: Tensor, axis: Ints, keepdims: bool) => reduction::all(x, axis, keepdims);
    any(x: Tensor, axis: Ints, keepdims: bool) => reduction::any(x, axis, keepdims);
    argmax(x: Tensor, axis: Option<usize>, keepdims: bool) => reduction::argmax(x, axis, keepdims);
    argmin(x: Tensor, axis: Option<usize>, keepdims: bool) => reduction::argmin(x, axis, keepdims);
    logsumexp(x: Tensor, axis: Ints, keepdims: bool) => rows::logsumexp(x, axis, keepdims);
    max(x: Tensor, axis: Ints, keepdims: bool) => reduction::max(x, axis, keepdims);
    mean(x: Tensor, axis: Ints, keepdims: bool) => reduction::mean(x, axis, keepdims);
    min(x: Tensor, axis: Ints, keepdims: bool) => reduction::min(x, axis, keepdims);
    prod(x: Tensor, axis: Ints, keepdims: bool, dtype: Dtype) => reduction::prod(x, axis, keepdims, dtype);
    deviation as "std" (x: Tensor, axis: Ints, correction: f64, keepdims: bool) => rows::std(x, axis, correction, keepdims);
    sum(x: Tensor, axis: Ints, keepdims: bool, dtype: Dtype) => reduction::sum(x, axis, keepdims, dtype);
    var(x: Tensor, axis: Ints, correction: f64, keepdims: bool) => rows::var(x, axis, correction, keepdims);
    vector_norm(x: Tensor, axis: Ints, keepdims: bool) => reduction::vector_norm(x, axis, keepdims);

    // Softmax and normalizations.
    batch_norm(x: Tensor, weight: Tensor, bias: Tensor, mean: Tensor, var: Tensor, epsilon: f64)
        => rows::batch_norm(x, weight, bias, [mean, var], epsilon);
    batch_norm_backward(g: Tensor, x: Tensor, weight: Tensor, mean: Tensor, var: Tensor, epsilon: f64)
        => rows::batch_norm_backward(g, x, weight, [mean, var], epsilon);
    batch_norm_train(x: Tensor, weight: Tensor, bias: Tensor, epsilon: f64)
        => rows::batch_norm_train(x, weight, bias, epsilon);
    cross_entropy(x: Tensor, target: Tensor) => rows::cross_entropy(x, target);
    cross_entropy_backward(g: Tensor, x: Tensor, target: Tensor) => rows::cross_entropy_backward(g, x, target);
    layer_norm(x: Tensor, weight: OptTensor, bias: OptTensor, epsilon: f64)
        => rows::layer_norm(x, weight, bias, epsilon);
    layer_norm_backward(g: Tensor, x: Tensor, weight: OptTensor, epsilon: f64)
        => rows::layer_norm_backward(g, x, weight, epsilon);
    log_softmax(x: Tensor, axis: usize) => rows::log_softmax(x, axis);
    log_softmax_backward(g: Tensor, y: Tensor, axis: usize) => rows::log_softmax_backward(g, y, axis);
    rms_norm(x: Tensor, weight: OptTensor, epsilon: f64) => rows::rms_norm(x, weight, epsilon);
    rms_norm_backward(g: Tensor, x: Tensor, weight: OptTensor, epsilon: f64)
        => rows::rms_norm_backward(g, x, weight, epsilon);
    softmax(x: Tensor, axis: usize) => rows::softmax(x, axis);
    softmax_backward(g: Tensor, y: Tensor, axis: usize) => rows::softmax_backward(g, y, axis);

    // Images read between their pixels, and boxes on them.
    grid_sample(x: Tensor, grid: Tensor, mode: Text, padding_mode: Text, align_corners: bool) => {
        let (mode, margin) = (sampling::Mode::from_name(mode)?, sampling::Margin::from_name(padding_mode)?);
        sampling::grid_sample(x, grid, sampling::Settings { mode, margin, align_corners })
    };
    nms(boxes: Tensor, scores: Tensor, iou_threshold: f64) => sampling::nms(boxes, scores, iou_threshold);

    // Scans.
    cummax(x: Tensor, axis: usize) => scan::cummax(x, axis);
    cummin(x: Tensor, axis: usize) => scan::cummin(x, axis);
    cumsum(x: Tensor, axis: usize, dtype: Dtype) => scan::cumsum(x, axis, dtype);
    cumulative_prod(x: Tensor, axis: usize, dtype: Dtype, include_initial: bool)
        => scan::cumulative_prod(x, axis, dtype, include_initial);
    logcumsumexp(x: Tensor, axis: usize) => scan::logcumsumexp(x, axis);

    // Sorts.
    argsort(x: Tensor, axis: usize, descending: bool) => sorting::argsort(x, axis, descending);
    isin(x1: Tensor, x2: Tensor, invert: bool) => sorting::isin(x1, x2, invert);
    searchsorted(x1: Tensor, x2: Tensor, side: Text) => sorting::searchsorted(x1, x2, side == "right");
    sort(x: Tensor, axis: usize, descending: bool) => sorting::sort(x, axis, descending);
    topk(x: Tensor, k: usize, axis: usize, largest: bool) => sorting::topk(x, k, axis, largest);

    // Counts and quantiles.
    bincount(x: Tensor, minlength: usize) => statistics::bincount(x, minlength);
    histogram(x: Tensor, bins: usize, min: Option<f64>, max: Option<f64>) => statistics::histogram(x, bins, min, max);
    median(x: Tensor, axis: Ints, keepdims: bool)
        => statistics::quantile(x, 0.5, axis, keepdims, statistics::Between::Linear);
    quantile(x: Tensor, q: f64, axis: Ints, keepdims: bool, interpolation: Text)
        => statistics::quantile(x, q, axis, keepdims, statistics::Between::from_name(interpolation)?);

    // Optimizer steps.
    adam_step(
        tensors: Tensors, grads: Tensors, firsts: Tensors, seconds: Tensors, largest: Tensors,
        lr: f64, time: i64, beta_1: f64, beta_2: f64, epsilon: f64, weight_decay: f64, decoupled: bool, amsgrad: bool
    ) => {
        let settings = step::Adam { lr, time, betas: (beta_1, beta_2), epsilon, weight_decay, decoupled, amsgrad };
        step::adam([&tensors, &grads, &firsts, &seconds, &largest], &settings)
    };
    clip_norms(grads: Tensors, threshold: f64, joint: bool) => step::clip_norms(&grads, threshold, joint);
    sgd_step(
        tensors: Tensors, grads: Tensors, velocities: Tensors,
        lr: f64, momentum: f64, dampening: f64, weight_decay: f64, nesterov: bool
    ) => {
        let settings = step::Sgd { lr, momentum, dampening, weight_decay, nesterov };
        step::sgd([&tensors, &grads, &velocities], &settings)
    };

    // Transforms.
    dft(re: Tensor, im: OptTensor, axis: usize, inverse: bool, half: bool)
        => transform::dft(re, im, transform::Settings { axis, inverse, half });
    irdft(re: Tensor, im: Tensor, axis: usize, n: usize) => transform::irdft(re, im, axis, n);
}
