use crate::Case;

#[test]
fn fetch_locks_of_two_handles_do_not_overlap() {
    let case = Case::new();
    let (one, other) = (case.small(), case.small());
    let held = one.try_fetch_lock(10..20).expect("a fetch lock").expect("the numbers are free");
    for taken in [10..20, 0..11, 19..30, 5..25] {
        assert!(other.try_fetch_lock(taken.clone()).expect("a fetch lock").is_none(), "{taken:?}");
    }
    let beside = other.try_fetch_lock(20..30).expect("a fetch lock").expect("the numbers are free");
    assert!(one.try_fetch_lock(15..25).expect("a fetch lock").is_none());
    drop((held, beside));
    assert!(other.try_fetch_lock(0..i64::MAX.unsigned_abs()).expect("a fetch lock").is_some());
    assert!(
        one.try_fetch_lock(7..7).expect("no fetch lock").is_none(),
        "an empty range has no fetch lock"
    );
    assert!(one.try_fetch_lock(0..u64::MAX).is_err(), "so many numbers there are not");
    assert_eq!(std::fs::metadata(case.path().join("claims")).expect("a file").len(), 0);
}
