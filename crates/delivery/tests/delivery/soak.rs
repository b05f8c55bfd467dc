//! Many generations under readers: no wrong value, and nothing that stays behind.

use crate::place::{Place, check, names, options};
use nuthatch_delivery::{PublishOptions, Retention};
use nuthatch_snapshot::{Value, Watch, WatchOptions, Writer};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

const GENERATIONS: i64 = 300;
const READERS: usize = 3;

/// Builds a snapshot in which each of 50 keys has the same value.
fn build(place: &Place, value: i64) {
    let mut writer = Writer::create(place.path("users.nut")).expect("a writer");
    for key in 0..50 {
        writer.insert(key.to_string().as_bytes(), Value::I64(value)).expect("a row");
    }
    writer.finish().expect("a snapshot");
}

/// Reads until the writer stops. The values of a snapshot are those of one generation, and no
/// snapshot is older than one that was read before, or than one that was swapped in and refreshed
/// before the read.
fn read(watch: &Watch, (swapped, is_done): (&AtomicI64, &AtomicBool)) -> u64 {
    let (mut reader, mut last, mut switches) = (watch.reader(), 0, 0);
    while !is_done.load(Ordering::Acquire) {
        let newest = swapped.load(Ordering::Acquire);
        let snapshot = reader.current();
        let first = snapshot.get_i64(b"0").expect("an integer").expect("an entry");
        let other = snapshot.get_i64(b"49").expect("an integer").expect("an entry");
        assert_eq!(first, other);
        assert!(first >= last && first >= newest, "{first} after {last} and {newest}");
        switches += u64::from(first != last);
        last = first;
    }
    switches
}

/// Returns the number of maps of this process of files in a folder.
fn maps(folder: &str) -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("the maps");
    maps.lines().filter(|line| line.contains(folder)).count()
}

/// Ends the readers, also if the writer panics.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[test]
fn generations_under_readers_leave_nothing_behind() {
    let place = Place::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let retention = Retention { max_generations: 3, max_age: None };
    let mut follower = place.follower();
    let mut swap_in = |value| {
        build(&place, value);
        let options = PublishOptions { retention, ..options() };
        let file = place.path("users.nut");
        runtime.block_on(place.publish_file(&file, &options)).expect("published");
        runtime.block_on(check(&mut follower)).expect("a generation");
    };
    swap_in(1);
    let options = WatchOptions::new().interval(Duration::ZERO);
    let watch = options.path(place.path("folder/users.nut")).expect("a watch");
    let (swapped, is_done) = (AtomicI64::new(1), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let readers: Vec<_> =
            (0..READERS).map(|_| scope.spawn(|| read(&watch, (&swapped, &is_done)))).collect();
        let ending = SetOnDrop(&is_done);
        for value in 2..=GENERATIONS {
            swap_in(value);
            assert!(watch.refresh());
            swapped.store(value, Ordering::Release);
        }
        drop(ending);
        for reader in readers {
            assert!(reader.join().expect("a reader") > 1, "a reader never switched");
        }
    });
    let folder = place.path("folder").to_str().expect("UTF-8").to_owned();
    assert!(maps(&folder) <= READERS + 1, "{} maps", maps(&folder));
    drop(watch);
    assert_eq!(maps(&folder), 0);
    assert_eq!(place.objects().len(), 3);
    assert_eq!(place.generations().len(), 2);
    assert_eq!(names(&place.path("folder/.nuthatch/partial")), [""; 0]);
}
