//! A mapped file is truncated: the process continues, and the map is marked as lost.

use memmap2::MmapOptions;
use nuthatch_sigbus::{MapGuard, is_any_lost};
use std::io::Write as _;

const PAGE: usize = 4096;

fn read(address: *const u8) -> u8 {
    // SAFETY: the callers pass addresses within a map that is still mapped.
    unsafe { address.read_volatile() }
}

#[test]
fn a_truncated_file_reads_as_zeros_and_its_map_is_lost() {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(&[7; 4 * PAGE]).expect("pages of sevens");
    let map = MmapOptions::new().map_raw_read_only(&file).expect("a map");
    // SAFETY: the map outlives the guard and is read one byte at a time.
    let guard = unsafe { MapGuard::register(map.as_ptr(), map.len()) }.expect("a registration");
    assert_eq!(read(map.as_ptr().wrapping_add(3 * PAGE)), 7);
    assert!(!guard.is_lost(), "nothing happened yet");

    file.set_len(PAGE as u64).expect("truncated");
    assert_eq!(read(map.as_ptr().wrapping_add(2 * PAGE)), 0, "a page beyond the end of the file");
    assert!(guard.is_lost(), "the page that vanished was reported");
    assert!(is_any_lost());
    assert_eq!(read(map.as_ptr()), 7, "pages that the file still has are unchanged");
}

#[test]
fn a_map_is_not_lost_by_the_fault_of_another() {
    let files: Vec<_> = (0..2)
        .map(|_| {
            let mut file = tempfile::tempfile().expect("a file");
            file.write_all(&[7; 2 * PAGE]).expect("pages of sevens");
            let map = MmapOptions::new().map_raw_read_only(&file).expect("a map");
            (file, map)
        })
        .collect();
    let [first, second] = [0, 1].map(|number: usize| {
        let map = &files[number].1;
        // SAFETY: the maps outlive the guards and are read one byte at a time.
        unsafe { MapGuard::register(map.as_ptr(), map.len()) }.expect("a registration")
    });
    files[1].0.set_len(0).expect("truncated");
    assert_eq!(read(files[1].1.as_ptr()), 0);
    assert!(second.is_lost());
    assert!(!first.is_lost());
}
