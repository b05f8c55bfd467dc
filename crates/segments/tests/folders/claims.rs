use crate::Case;

#[test]
fn numbers_are_claimed_by_one_handle_at_a_time() {
    let case = Case::new();
    let (one, other) = (case.small(), case.small());
    let held = one.claim(10..20).expect("a claim").expect("nobody has it");
    for taken in [10..20, 0..11, 19..30, 5..25] {
        assert!(other.claim(taken.clone()).expect("a claim").is_none(), "{taken:?}");
    }
    let beside = other.claim(20..30).expect("a claim").expect("nobody has it");
    assert!(one.claim(15..25).expect("a claim").is_none());
    drop((held, beside));
    assert!(other.claim(0..i64::MAX.unsigned_abs()).expect("a claim").is_some());
    assert!(one.claim(7..7).expect("no claim").is_none(), "no number is nothing to claim");
    assert!(one.claim(0..u64::MAX).is_err(), "so many numbers there are not");
    assert_eq!(std::fs::metadata(case.path().join("claims")).expect("a file").len(), 0);
}
