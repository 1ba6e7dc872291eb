use super::*;
#[cfg(unix)]
use crate::machine::child::{forked, joined};

#[test]
fn as_many_plans_are_kept_as_their_lengths_allow() {
    let lengths = || known::<f64>().lines.iter().map(|(n, _)| *n).collect::<Vec<_>>();
    for n in [MOST / 2, MOST / 2 - 1, 3, MOST / 2] {
        assert!(Arc::ptr_eq(&lines_plan::<f64>(n), &lines_plan::<f64>(n)));
    }
    assert!(lengths().iter().sum::<usize>() <= MOST && lengths().contains(&3));
    // One alone is kept however long it is; the others make room.
    lines_plan::<f64>(MOST + 1);
    assert_eq!(lengths(), [MOST + 1]);
    forget();
    assert!(lengths().is_empty());
}

#[cfg(unix)]
#[test]
fn a_child_plans_though_its_parent_was_planning() {
    install_fork_handlers();
    let held = known::<f32>();
    let child = forked(|| {
        lines_plan::<f32>(77);
        true
    });
    drop(held);
    joined(child, "the child waits for its parent's lock");
}
