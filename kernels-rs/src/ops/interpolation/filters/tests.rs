use super::*;

#[test]
fn weights_of_a_result_are_a_whole() {
    for filter in [Filter::Cubic, Filter::Lanczos3, Filter::Linear, Filter::Nearest, Filter::NearestExact] {
        for (sources, count) in [(1, 3), (5, 5), (7, 3), (9, 20), (128, 64), (100, 33)] {
            for antialias in [false, true] {
                let map = How { filter, align_corners: false, antialias }.map(sources, count);
                for at in 0..count {
                    assert!(map.run(at).end <= sources && map.run(at).len() == map.weights_of(at).len());
                    assert!((map.weights_of(at).iter().sum::<f64>() - 1.0).abs() < 1e-12);
                }
            }
        }
    }
}

#[test]
fn shrinking_to_half_reads_eight_elements() {
    let map = How { filter: Filter::Cubic, align_corners: false, antialias: true }.map(128, 64);
    assert_eq!(map.run(10), 17..25);
}
