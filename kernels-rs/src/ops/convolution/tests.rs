use super::cut::{Side, cut};
use super::reference::for_each_product;
use super::*;
use crate::dtype::{BF16, Element, F16};
use crate::machine::threads::set_num_threads;
use crate::ops::elementwise::convert::cast;
use crate::ops::parts::PART;
use crate::ops::samples::placed;

/// A small generator, so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % below
    }

    fn array<T: Element>(&mut self, shape: &[usize]) -> Array {
        let values: Vec<T> =
            (0..shape.iter().product()).map(|_| T::from_f64(self.next(2001) as f64 / 1000.0 - 1.0)).collect();
        Array::from_slice(&values, shape).unwrap()
    }
}

fn values<T: Element>(x: &Array) -> Vec<f64> {
    x.to_vec::<T>().unwrap().into_iter().map(Element::to_f64).collect()
}

fn close(what: &str, got: &[f64], expected: &[f64], terms: usize, epsilon: f64) {
    let bound = 4.0 * epsilon * (terms as f64).sqrt() * 4.0 + epsilon;
    for (i, (a, b)) in got.iter().zip(expected).enumerate() {
        assert!((a - b).abs() <= bound * (1.0 + b.abs()), "{what}: element {i}: got {a}, expected {b} +- {bound}");
    }
}

#[derive(Debug)]
struct Case {
    input: [usize; 4],
    weight: [usize; 4],
    settings: Settings,
}

fn random_case(random: &mut Random) -> Case {
    let groups = [1, 1, 1, 2, 3, 8][random.next(6)];
    let depthwise = random.next(5) == 0;
    let in_group = if depthwise { 1 } else { 1 + random.next(5) };
    let out_group =
        if depthwise { 1 + random.next(2) } else { [1 + random.next(12), 1 + random.next(70)][random.next(2)] };
    let kernel = (1 + random.next(4), 1 + random.next(4));
    let dilation = (1 + random.next(2), 1 + random.next(3));
    let padding = ((random.next(4), random.next(3)), (random.next(3), random.next(5)));
    let at_least = |k: usize, d: usize, (a, b): (usize, usize)| (d * (k - 1) + 1).saturating_sub(a + b).max(1);
    let rows = at_least(kernel.0, dilation.0, padding.0) + random.next(12);
    let cols = at_least(kernel.1, dilation.1, padding.1) + random.next(40);
    Case {
        input: [1 + random.next(3), groups * in_group, rows, cols],
        weight: [groups * out_group, in_group, kernel.0, kernel.1],
        settings: Settings { stride: (1 + random.next(3), 1 + random.next(3)), padding, dilation, groups },
    }
}

/// Forward and both gradients against the definition.
fn check<T: Element>(case: &Case, random: &mut Random, epsilon: f64) {
    let Case { input, weight, settings } = case;
    let window = Window::new("test", input, weight, settings).unwrap();
    let (x, w) = (random.array::<T>(input), random.array::<T>(weight));
    let (b, g) = (random.array::<T>(&[weight[0]]), random.array::<T>(&window.output_shape()));
    let (xs, ws, gs, bs) = (values::<T>(&x), values::<T>(&w), values::<T>(&g), values::<T>(&b));
    let plane = window.output_shape()[2] * window.output_shape()[3];
    let mut y: Vec<f64> = (0..gs.len()).map(|i| bs[i / plane % weight[0]]).collect();
    let (mut dx, mut dw) = (vec![0.0; xs.len()], vec![0.0; ws.len()]);
    for_each_product(&window, *input, settings, |xi, wi, oi| {
        y[oi] += xs[xi] * ws[wi];
        dx[xi] += gs[oi] * ws[wi];
        dw[wi] += gs[oi] * xs[xi];
    });
    let text = format!("{} {input:?} {weight:?} {settings:?}", T::DTYPE.name());
    let taps = weight[1] * weight[2] * weight[3];
    // As they are, and in other layouts, which are made ready some images at a time.
    let layouts = random.next(8);
    let (x, g) = (placed(&x, layouts.saturating_sub(4)), placed(&g, layouts.saturating_sub(3)));
    let got = conv2d(&x, &w, Some(&b), settings).unwrap();
    assert_eq!(got.shape()[..], window.output_shape());
    close(&format!("forward {text}"), &values::<T>(&got), &y, taps, epsilon);
    let got = conv2d_input_grad(&g, &w, input, settings).unwrap();
    close(&format!("input gradient {text}"), &values::<T>(&got), &dx, taps * weight[0], epsilon);
    check_transposed(case, &g, &w, (&dx, taps * weight[0]), random, epsilon);
    let got = conv2d_weight_grad(&g, &x, weight, settings).unwrap();
    close(&format!("weight gradient {text}"), &values::<T>(&got), &dw, plane * input[0], epsilon);
}

/// The transposed convolution of `g`, beside the input gradient and a bias; rows and columns that no window reaches are
/// added at the end.
fn check_transposed(
    case: &Case,
    g: &Array,
    w: &Array,
    (dx, terms): (&[f64], usize),
    random: &mut Random,
    epsilon: f64,
) {
    let Case { input, weight, settings } = case;
    let (b, beyond) = (random.array::<f64>(&[input[1]]), (random.next(3), random.next(3)));
    let b = cast(&b, g.dtype()).unwrap();
    let biases = crate::ops::samples::floats(&b);
    let side = |n: usize, out: usize, k: usize, stride: usize, dilation: usize, low: usize| {
        // What the last window leaves over is padding beyond the input, or input beyond the windows.
        let reach = (out - 1) * stride + dilation * (k - 1) + 1;
        reach.checked_sub(n + low).map_or_else(|| (0, n + low - reach), |high| (high, 0))
    };
    let Settings { stride, padding: (of_row, of_col), dilation, .. } = *settings;
    let row = side(input[2], g.shape()[2], weight[2], stride.0, dilation.0, of_row.0);
    let col = side(input[3], g.shape()[3], weight[3], stride.1, dilation.1, of_col.0);
    let padding = ((of_row.0, row.0), (of_col.0, col.0));
    let extra = (row.1 + beyond.0, col.1 + beyond.1);
    let got = conv_transpose2d(g, w, Some(&b), &Settings { padding, ..*settings }, extra).unwrap();
    let size = [input[0], input[1], input[2] + beyond.0, input[3] + beyond.1];
    assert_eq!(got.shape()[..], size);
    let inner = crate::array::view::slice(&got, &[0; 4], input, &[1; 4]).unwrap();
    let plane = input[2] * input[3];
    let expected: Vec<f64> = dx.iter().enumerate().map(|(i, x)| x + biases[i / plane % input[1]]).collect();
    let text = format!("transposed {} {case:?} {extra:?}", g.dtype().name());
    close(&text, &crate::ops::samples::floats(&inner), &expected, terms, epsilon);
}

/// Checks a case in a dtype that changes from round to round: every one of the four, `f32` most often.
fn check_round(round: usize, case: &Case, random: &mut Random) {
    match round % 8 {
        0 => check::<f64>(case, random, f64::EPSILON),
        1 => check::<F16>(case, random, 1e-3),
        2 => check::<BF16>(case, random, 8e-3),
        _ => check::<f32>(case, random, f32::EPSILON as f64),
    }
}

#[test]
fn random_shapes_agree_with_the_definition() {
    let mut random = Random(1);
    for round in 0..400 {
        set_num_threads(1 + round % 4);
        let case = random_case(&mut random);
        check_round(round, &case, &mut random);
    }
}

#[test]
fn many_channels_are_summed_in_blocks() {
    let mut random = Random(5);
    for round in 0..60 {
        set_num_threads(1 + round % 4);
        let mut case = random_case(&mut random);
        let groups = 1 + random.next(2);
        let (inputs, outputs) = (40 + random.next(200), 8 + random.next(40));
        let [_, _, rows, cols] = case.input;
        case.input = [1 + random.next(10), groups * inputs, rows.min(9), cols.min(9)];
        case.weight = [groups * outputs, inputs, 1 + random.next(3), 1 + random.next(3)];
        case.settings = Settings { groups, dilation: (1, 1), padding: ((1, 1), (1, 1)), ..case.settings };
        check::<f32>(&case, &mut random, f32::EPSILON as f64);
    }
}

/// Kernels of 3 x 3 with stride 1, which are computed by tiles, beside the definition at the same tolerance.
#[test]
fn tiles_agree_with_the_definition() {
    let mut random = Random(6);
    for round in 0..40 {
        set_num_threads(1 + round % 4);
        let groups = 1 + random.next(2);
        let (inputs, outputs) = (16 + random.next(20), 32 + random.next(20));
        let pad = |random: &mut Random| (random.next(3), random.next(3));
        let settings =
            Settings { stride: (1, 1), padding: (pad(&mut random), pad(&mut random)), dilation: (1, 1), groups };
        let input = [1 + random.next(4), groups * inputs, 3 + random.next(20), 3 + random.next(40)];
        let case = Case { input, weight: [groups * outputs, inputs, 3, 3], settings };
        if round % 8 == 0 {
            check::<f64>(&case, &mut random, f64::EPSILON);
        } else {
            check::<f32>(&case, &mut random, f32::EPSILON as f64);
        }
    }
}

/// Kernels of 1 x 1 that read every position, which are matrix products: groups, tails of every kind, all dtypes.
#[test]
fn products_agree_with_the_definition() {
    let mut random = Random(8);
    for round in 0..120 {
        set_num_threads(1 + round % 4);
        let groups = [1, 1, 2, 3][random.next(4)];
        let (inputs, outputs) = (4 + random.next(90), 4 + random.next(150));
        let (rows, cols) =
            [(1 + random.next(6), 1 + random.next(40)), (12 + random.next(20), 11 + random.next(50))][random.next(2)];
        let settings = Settings { stride: (1, 1), padding: ((0, 0), (0, 0)), dilation: (1, 2), groups };
        let input = [1 + random.next(4), groups * inputs, rows, cols];
        let case = Case { input, weight: [groups * outputs, inputs, 1, 1], settings };
        check_round(round, &case, &mut random);
    }
}

/// Groups of one channel: kernels of up to 8 rows, strides, dilations, planes of one tile and of several.
#[test]
fn depthwise_agrees_with_the_definition() {
    let mut random = Random(10);
    for round in 0..160 {
        set_num_threads(1 + round % 4);
        let (groups, outputs) = (1 + random.next(9), 1 + random.next(9));
        let kernel = (1 + random.next(8), 1 + random.next(8));
        let dilation = [(1, 1), (1, 1), (2, 1), (1, 3)][random.next(4)];
        let stride = [(1, 1), (2, 2), (1, 2), (3, 3)][random.next(4)];
        let padding = ((random.next(5), random.next(5)), (random.next(5), random.next(5)));
        let rows = dilation.0 * kernel.0 + random.next(30);
        let cols = dilation.1 * kernel.1 + random.next(40);
        let input = [1 + random.next(3), groups, rows, cols];
        let settings = Settings { stride, padding, dilation, groups };
        let case = Case { input, weight: [groups * outputs, 1, kernel.0, kernel.1], settings };
        check_round(round, &case, &mut random);
    }
    let settings = Settings { stride: (2, 2), padding: ((1, 1), (2, 2)), dilation: (1, 1), groups: 1 };
    check::<f32>(&Case { input: [1, 1, 260, 270], weight: [1, 1, 3, 5], settings }, &mut random, f32::EPSILON as f64);
}

#[test]
fn products_read_any_layout() {
    let mut random = Random(9);
    let settings = Settings { stride: (1, 1), padding: ((0, 0), (0, 0)), dilation: (1, 1), groups: 2 };
    for round in 0..12 {
        let (rows, cols) = (12 + random.next(5), 16 + random.next(5));
        let x = random.array::<f32>(&[2, rows, cols, 12]);
        let x = crate::array::view::permute_dims(&x, &[[0, 3, 1, 2], [0, 3, 2, 1]][round % 2]).unwrap();
        let w = crate::array::view::permute_dims(&random.array::<f32>(&[6, 1, 1, 10]), &[3, 0, 1, 2]).unwrap();
        let bias = random.array::<f32>(&[10]);
        let dense = |x: &Array| Array::from_slice(&x.to_vec::<f32>().unwrap(), x.shape()).unwrap();
        let got = conv2d(&x, &w, Some(&bias), &settings).unwrap();
        let expected = conv2d(&dense(&x), &dense(&w), Some(&bias), &settings).unwrap();
        close("forward", &values::<f32>(&got), &values::<f32>(&expected), 6, f32::EPSILON as f64);
        let g = random.array::<f32>(&got.shape()[..]);
        let g = crate::array::view::permute_dims(&g, &[0, 1, 2, 3]).unwrap();
        let got = conv2d_input_grad(&g, &w, x.shape(), &settings).unwrap();
        let expected = conv2d_input_grad(&g, &dense(&w), x.shape(), &settings).unwrap();
        close("input gradient", &values::<f32>(&got), &values::<f32>(&expected), 5, f32::EPSILON as f64);
        let got = conv2d_weight_grad(&g, &x, w.shape(), &settings).unwrap();
        let expected = conv2d_weight_grad(&g, &dense(&x), w.shape(), &settings).unwrap();
        close("weight gradient", &values::<f32>(&got), &values::<f32>(&expected), 2 * rows * cols, f32::EPSILON as f64);
    }
}

/// One small plane and many weights: gradients by products, any window.
#[test]
fn small_planes_agree_with_the_definition() {
    let mut random = Random(10);
    for round in 0..12 {
        set_num_threads(1 + round % 4);
        let mut case = random_case(&mut random);
        let (kernel, inputs) = ((1 + random.next(3), 2 + random.next(2)), 200 + random.next(30));
        let outputs = (1 << 18) / (inputs * kernel.0 * kernel.1) + 97;
        case.input = [1, inputs, 4 + random.next(6), 6 + random.next(4)];
        case.weight = [outputs, inputs, kernel.0, kernel.1];
        case.settings = Settings { groups: 1, dilation: (1, 1), ..case.settings };
        if round % 2 == 0 {
            case.settings.stride = (2, 2);
        }
        let window = Window::new("test", &case.input, &case.weight, &case.settings).unwrap();
        if columns::applies(&window) {
            check::<f32>(&case, &mut random, f32::EPSILON as f64);
        }
        assert!(columns::applies(&window) || case.settings.stride == (1, 1), "{:?}", case.settings);
    }
    let settings = Settings { stride: (1, 1), padding: ((1, 1), (1, 1)), dilation: (1, 1), groups: 1 };
    let case = Case { input: [1, 200, 7, 7], weight: [150, 200, 3, 3], settings };
    check::<f64>(&case, &mut random, f64::EPSILON);
    check::<BF16>(&case, &mut random, 8e-3);
}

/// Convolutions of few positions, padded, dilated and strided, beside the definition.
#[test]
fn few_positions_are_dot_products() {
    let mut random = Random(11);
    let mut few = 0;
    for round in 0..60 {
        set_num_threads(1 + round % 4);
        let mut case = random_case(&mut random);
        let kernel = (1 + random.next(4), 1 + random.next(20));
        case.input = [1, 64 / (kernel.0 * kernel.1) + 1 + random.next(9), 1 + random.next(6), 1 + random.next(40)];
        case.weight = [8 + random.next(60), case.input[1], kernel.0, kernel.1];
        case.settings.groups = 1;
        let padding = ((kernel.0, random.next(3)), (kernel.1, random.next(9)));
        case.settings = Settings { stride: (2 + random.next(3), 4 + random.next(9)), padding, ..case.settings };
        let Ok(window) = Window::new("test", &case.input, &case.weight, &case.settings) else { continue };
        few += usize::from(few::applies(&window));
        match round % 4 {
            0 => check::<f64>(&case, &mut random, f64::EPSILON),
            1 => check::<BF16>(&case, &mut random, 8e-3),
            _ => check::<f32>(&case, &mut random, f32::EPSILON as f64),
        }
    }
    assert!(few > 15, "{few}");
    let settings = Settings { stride: (1, 1), padding: ((2, 2), (2, 2)), dilation: (1, 1), groups: 1 };
    let empty = Case { input: [1, 8, 0, 1], weight: [8, 8, 3, 3], settings };
    check::<f32>(&empty, &mut random, f32::EPSILON as f64);
}

/// The gradient of the weights by tiles, whatever it costs: some images at a time, some rows of a plane at a time.
#[test]
fn gradients_by_tiles_agree_with_the_definition() {
    fn check<T: Element + crate::machine::lanes::Real>(case: &Case, random: &mut Random, epsilon: f64) {
        let Case { input, weight, settings } = case;
        let window = Window::new("test", input, weight, settings).unwrap();
        let (x, g) = (random.array::<T>(input), random.array::<T>(&window.output_shape()));
        let (xs, gs) = (values::<T>(&x), values::<T>(&g));
        let mut expected = vec![0.0; weight.iter().product()];
        for_each_product(&window, *input, settings, |xi, wi, oi| expected[wi] += gs[oi] * xs[xi]);
        let mut got = vec![T::default(); expected.len()];
        assert!(winograd::gradient::run(&window, slice::<T>(&g), slice::<T>(&x), &mut got).unwrap());
        let got: Vec<f64> = got.into_iter().map(Element::to_f64).collect();
        let text = format!("{} {input:?} {weight:?} {settings:?}", T::DTYPE.name());
        close(&text, &got, &expected, gs.len() / weight[0], epsilon);
    }
    if crate::machine::lanes::is_baseline() {
        return;
    }
    let mut random = Random(8);
    for round in 0..40 {
        set_num_threads(1 + round % 4);
        let groups = 1 + random.next(2);
        let (inputs, outputs) = (1 + random.next(40), 1 + random.next(70));
        let pad = |random: &mut Random| (random.next(4), random.next(3));
        let settings =
            Settings { stride: (1, 1), padding: (pad(&mut random), pad(&mut random)), dilation: (1, 1), groups };
        let input = [1 + random.next(5), groups * inputs, 3 + random.next(20), 3 + random.next(20)];
        let case = Case { input, weight: [groups * outputs, inputs, 3, 3], settings };
        if round % 4 == 0 {
            check::<f64>(&case, &mut random, f64::EPSILON);
        } else {
            check::<f32>(&case, &mut random, f32::EPSILON as f64);
        }
    }
    let settings = Settings { stride: (1, 1), padding: ((1, 1), (1, 1)), dilation: (1, 1), groups: 1 };
    for (input, outputs) in [([2, 20, 150, 90], 40), ([70, 17, 13, 10], 130), ([1, 150, 7, 7], 140)] {
        let case = Case { input, weight: [outputs, input[1], 3, 3], settings };
        check::<f32>(&case, &mut random, f32::EPSILON as f64);
    }
}

/// Images larger than a part, of which some rows at a time are made ready.
#[test]
fn rows_of_large_images_agree_with_the_definition() {
    let mut random = Random(11);
    let mut split = 0;
    for round in 0..60 {
        set_num_threads(1 + round % 4);
        let kernel = (1 + random.next(4), 1 + random.next(3));
        let dilation = (1 + random.next(3), 1 + random.next(2));
        let padding = ((random.next(5), random.next(5)), (random.next(3), random.next(3)));
        let settings = Settings { stride: (1 + random.next(4), 1 + random.next(2)), padding, dilation, groups: 1 };
        let input = [1 + random.next(2), 1 + random.next(2), 16 + random.next(60), 24 + random.next(40)];
        let case = Case { input, weight: [1 + random.next(3), input[1], kernel.0, kernel.1], settings };
        let window = Window::new("test", &case.input, &case.weight, &settings).unwrap();
        for side in [Side::Input, Side::Output] {
            let parts = cut(&window, side, 2 * input.iter().product::<usize>(), PART);
            let rows = if side == Side::Input { input[2] } else { window.size.0 };
            let of = |part: &cut::Part| if side == Side::Input { part.input.clone() } else { part.output.clone() };
            let found: Vec<_> = parts.iter().filter(|part| part.images.start == 0).flat_map(of).collect();
            assert_eq!(found, (0..rows).collect::<Vec<_>>(), "{case:?}");
            split += usize::from(parts.len() > input[0]);
        }
        check_round(round, &case, &mut random);
        check::<BF16>(&case, &mut random, 8e-3);
    }
    assert!(split > 60, "{split} of 120");
}

#[test]
fn an_infinity_reaches_the_results_that_read_it_and_no_others() {
    let mut random = Random(7);
    let settings = Settings { stride: (1, 1), padding: ((1, 1), (1, 1)), dilation: (1, 1), groups: 1 };
    let mut data = vec![1.0f32; 64 * 24 * 24];
    data[5 * 24 * 24 + 7 * 24 + 9] = f32::INFINITY;
    let x = Array::from_slice(&data, &[1, 64, 24, 24]).unwrap();
    let positive: Vec<f32> = (0..64 * 64 * 9).map(|_| 1.0 + random.next(100) as f32).collect();
    let w = Array::from_slice(&positive, &[64, 64, 3, 3]).unwrap();
    let y = conv2d(&x, &w, None, &settings).unwrap().to_vec::<f32>().unwrap();
    for (i, value) in y.iter().enumerate() {
        let (row, col) = (i / 24 % 24, i % 24);
        let reads = (6..=8).contains(&row) && (8..=10).contains(&col);
        assert!(if reads { *value == f32::INFINITY } else { value.is_finite() }, "{row} {col}: {value}");
    }
    // Only gradients for channel 5 read it.
    let g = Array::from_slice(&vec![1.0f32; 64 * 24 * 24], &[1, 64, 24, 24]).unwrap();
    let dw = conv2d_weight_grad(&g, &x, &[64, 64, 3, 3], &settings).unwrap().to_vec::<f32>().unwrap();
    for (i, value) in dw.iter().enumerate() {
        assert!(if i / 9 % 64 == 5 { *value == f32::INFINITY } else { value.is_finite() }, "{i}: {value}");
    }
}

#[test]
fn larger_shapes_agree_with_the_definition() {
    let mut random = Random(2);
    let plain = Settings { stride: (1, 1), padding: ((1, 1), (1, 1)), dilation: (1, 1), groups: 1 };
    let flat = Settings { padding: ((0, 0), (0, 0)), ..plain };
    for (input, weight, settings) in [
        ([9, 1, 28, 28], [16, 1, 3, 3], plain),
        ([5, 16, 14, 14], [32, 16, 3, 3], plain),
        ([1, 64, 20, 56], [64, 64, 3, 3], plain),
        ([2, 40, 13, 17], [70, 40, 1, 1], flat),
        ([1, 3, 50, 300], [24, 3, 7, 7], Settings { stride: (2, 2), padding: ((3, 3), (3, 3)), ..plain }),
        ([1, 300, 7, 7], [33, 300, 3, 3], plain),
        ([2, 24, 30, 30], [24, 1, 5, 5], Settings { groups: 24, padding: ((2, 2), (2, 2)), ..plain }),
    ] {
        check::<f32>(&Case { input, weight, settings }, &mut random, f32::EPSILON as f64);
        check::<f64>(&Case { input, weight, settings }, &mut random, f64::EPSILON);
    }
}

#[test]
fn the_number_of_threads_does_not_change_a_bit() {
    let mut random = Random(3);
    for round in 0..43 {
        let mut case = random_case(&mut random);
        if round == 40 {
            // By tiles of 2 x 2.
            let settings = Settings { stride: (1, 1), padding: ((1, 1), (1, 1)), dilation: (1, 1), groups: 1 };
            case = Case { input: [2, 64, 30, 33], weight: [72, 64, 3, 3], settings };
        }
        if round > 40 {
            // As matrix products.
            let settings = Settings { stride: (1, 1), padding: ((0, 0), (0, 0)), dilation: (1, 1), groups: 1 };
            case = Case { input: [5, 50, 20, 33], weight: [72, 50, 1, 1], settings };
        }
        let window = Window::new("test", &case.input, &case.weight, &case.settings).unwrap();
        let (x, w) = (random.array::<f32>(&case.input), random.array::<f32>(&case.weight));
        let g = random.array::<f32>(&window.output_shape());
        let (x, g) = (placed(&x, round % 3), placed(&g, round % 4));
        let all = |threads| {
            set_num_threads(threads);
            let y = conv2d(&x, &w, None, &case.settings).unwrap().to_vec::<f32>().unwrap();
            let dx = conv2d_input_grad(&g, &w, &case.input, &case.settings).unwrap().to_vec::<f32>().unwrap();
            let dw = conv2d_weight_grad(&g, &x, &case.weight, &case.settings).unwrap().to_vec::<f32>().unwrap();
            [y, dx, dw].concat().into_iter().map(f32::to_bits).collect::<Vec<_>>()
        };
        let one = all(1);
        for threads in 2..=4 {
            assert_eq!(one, all(threads));
        }
    }
}

#[test]
fn infinities_stay_where_they_are() {
    // A row of 17: the second register reads past the row, into the next one.
    let settings = Settings { stride: (1, 1), padding: ((0, 0), (0, 0)), dilation: (1, 1), groups: 2 };
    let mut data = vec![1.0f32; 2 * 2 * 17];
    data[17] = f32::INFINITY;
    let x = Array::from_slice(&data, &[1, 2, 2, 17]).unwrap();
    let w = Array::from_slice(&[1.0f32, 1.0], &[2, 1, 1, 1]).unwrap();
    let y = conv2d(&x, &w, None, &settings).unwrap().to_vec::<f32>().unwrap();
    assert_eq!(y, data);
    let mut g = vec![1.0f32; 2 * 2 * 17];
    g[17] = 0.0;
    let g = Array::from_slice(&g, &[1, 2, 2, 17]).unwrap();
    let dw = conv2d_weight_grad(&g, &x, &[2, 1, 1, 1], &settings).unwrap().to_vec::<f32>().unwrap();
    assert!(dw[0].is_nan() && dw[1] == 34.0, "{dw:?}");
}

#[test]
fn empty_and_invalid() {
    let settings = Settings { stride: (1, 1), padding: ((0, 0), (0, 0)), dilation: (1, 1), groups: 1 };
    let mut random = Random(4);
    let w = random.array::<f32>(&[4, 2, 3, 3]);
    let none = conv2d(&random.array::<f32>(&[0, 2, 5, 5]), &w, None, &settings).unwrap();
    assert_eq!(none.shape()[..], [0, 4, 3, 3]);
    let (no_channel, no_weight) = (random.array::<f32>(&[1, 0, 5, 5]), random.array::<f32>(&[4, 0, 3, 3]));
    let bias = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[4]).unwrap();
    let y = conv2d(&no_channel, &no_weight, Some(&bias), &settings).unwrap().to_vec::<f32>().unwrap();
    assert_eq!(y, [[1.0; 9], [2.0; 9], [3.0; 9], [4.0; 9]].concat());
    let (x, plain) = (random.array::<f32>(&[1, 4, 2, 2]), settings);
    for (padding, extra, groups) in [((4, 3), 0, 1), ((0, 0), usize::MAX, 1), ((usize::MAX, 0), 0, 1), ((0, 0), 0, 3)] {
        let settings = Settings { padding: (padding, (0, 0)), groups, ..plain };
        assert!(conv_transpose2d(&x, &w, None, &settings, (extra, 0)).is_err());
    }
    let nothing = conv_transpose2d(&x, &w, None, &Settings { padding: ((2, 2), (0, 0)), ..plain }, (0, 0)).unwrap();
    assert_eq!(nothing.shape()[..], [1, 2, 0, 4]);
    for (x, w) in [([1, 2, 2, 5], [4, 2, 3, 3]), ([1, 3, 5, 5], [4, 2, 3, 3]), ([1, 2, 5, 5], [4, 2, 0, 3])] {
        assert!(conv2d(&random.array::<f32>(&x), &random.array::<f32>(&w), None, &settings).is_err());
    }
}
