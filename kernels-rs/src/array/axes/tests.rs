use super::*;

#[test]
fn runs_become_one_axis() {
    assert_eq!(merged([(2, 12), (1, 7), (3, 4), (4, 1)])[..], [(24, 1)]);
    assert_eq!(merged([(2, 12), (3, 1), (4, 3)])[..], [(2, 12), (3, 1), (4, 3)]);
    assert!(merged([(1, 5), (1, 5)]).is_empty());
}

#[test]
fn numbers_count_in_row_major_order() {
    let axes = [(2, 100), (3, -10), (4, 1)];
    let all: Vec<isize> = (0..24).map(|number| offset(&axes, number)).collect();
    let plain = (0..2).flat_map(|i| (0..3).flat_map(move |j| (0..4).map(move |k| 100 * i - 10 * j + k)));
    assert_eq!(all, plain.collect::<Vec<isize>>());
    assert_eq!(offset::<(usize, isize)>(&[], 0), 0);
    let mut steps = Steps::new(&axes, 7);
    for number in 7..7 + 24 {
        assert_eq!(steps.at(), offset(&axes, number % 24));
        steps.step();
    }
    let threes = axes.map(|(len, step)| (len, [step, -step, 0]));
    assert_eq!(offset(&threes, 13), [all[13], -all[13], 0]);
}
