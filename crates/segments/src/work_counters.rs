//! Counters of work, so that tests limit work instead of time. They do nothing outside of tests.

#[cfg(test)]
mod counting {
    use std::cell::{Cell, RefCell};

    type Hook = Box<dyn FnOnce()>;

    thread_local! {
        static WAITS: Cell<u64> = const { Cell::new(0) };
        static STEPS: Cell<u64> = const { Cell::new(0) };
        static BEGAN: Cell<u64> = const { Cell::new(0) };
        static LONGEST: Cell<u64> = const { Cell::new(0) };
        static IS_HELD: Cell<bool> = const { Cell::new(false) };
        /// The number of steps without the table lock before a function is called, and the
        /// function.
        static HOOK: RefCell<Option<(u64, Hook)>> = const { RefCell::new(None) };
    }

    /// Calls a function after so many steps of this thread without the table lock.
    pub(crate) fn call_after_steps(steps: u64, hook: impl FnOnce() + 'static) {
        HOOK.with(|installed| *installed.borrow_mut() = Some((steps, Box::new(hook))));
    }

    fn take_hook() -> Option<Hook> {
        HOOK.with(|hook| {
            let mut hook = hook.borrow_mut();
            let (remaining, _) = hook.as_mut().filter(|_| !IS_HELD.get())?;
            *remaining = remaining.saturating_sub(1);
            if *remaining > 0 { None } else { hook.take().map(|(_, function)| function) }
        })
    }

    /// Counts a step of this thread: a set or a record that is visited.
    pub(crate) fn count_step() {
        STEPS.with(|steps| steps.set(steps.get() + 1));
        if let Some(hook) = take_hook() {
            hook();
        }
    }

    /// Counts that this thread waits for exclusive access.
    pub(crate) fn count_wait() {
        WAITS.with(|waits| waits.set(waits.get() + 1));
    }

    /// Returns the number of waits of this thread.
    pub(crate) fn waits() -> u64 {
        WAITS.with(Cell::get)
    }

    /// Records that this thread has taken a table lock.
    pub(crate) fn begin_hold() {
        BEGAN.with(|began| began.set(steps()));
        IS_HELD.set(true);
    }

    /// Records that this thread has released it.
    pub(crate) fn end_hold() {
        let held = steps() - BEGAN.with(Cell::get);
        LONGEST.with(|longest| longest.set(longest.get().max(held)));
        IS_HELD.set(false);
    }

    /// Returns the number of steps of this thread.
    pub(crate) fn steps() -> u64 {
        STEPS.with(Cell::get)
    }

    /// Returns the maximum number of steps that this thread made under a table lock since the last
    /// call.
    pub(crate) fn take_longest_hold() -> u64 {
        LONGEST.with(Cell::take)
    }
}

#[cfg(not(test))]
mod counting {
    #[inline(always)]
    pub(crate) fn count_step() {}

    pub(crate) fn count_wait() {}

    pub(crate) fn begin_hold() {}

    pub(crate) fn end_hold() {}
}

pub(crate) use counting::{begin_hold, count_step, count_wait, end_hold};
#[cfg(test)]
pub(crate) use counting::{call_after_steps, steps, take_longest_hold, waits};

#[cfg(test)]
mod tests {
    use super::{call_after_steps, steps, take_longest_hold};
    use crate::{Id, Options, Part, Record, Segments, checksum};

    const RECORDS: u64 = 8_000;
    /// Maximum number of steps under a table lock. A few sets are read for each part.
    const MAX_STEPS: u64 = 100;

    fn put(segments: &Segments, number: u64) {
        let data = number.to_le_bytes();
        let parts = [Part { end: 8, checksum: checksum(&data) }];
        let (name, label) = ([3; 16], &b""[..]);
        let record = Record { name, first: number, label, expiry: 0, parts: &parts, data: &data };
        segments.put(&record).expect("a put");
    }

    /// Runs an action on a folder of full segments with thousands of records each. Returns the
    /// number of steps.
    fn work(what: &str, action: impl FnOnce(&Segments)) -> u64 {
        let folder = tempfile::tempdir().expect("a folder");
        let options =
            Options::new().limit(16 << 20).segment_len(1 << 20).parts(10 * RECORDS).min_free(0);
        let segments = Segments::open(folder.path(), &options).expect("a folder");
        for number in 0..RECORDS {
            put(&segments, number);
            // Records that are used are moved.
            if number % 3 == 0 {
                let found =
                    segments.find(&Id::new([3; 16], number), b"").expect("the part is stored");
                found.count_use(number..number + 1);
            }
        }
        let before = steps();
        take_longest_hold();
        action(&segments);
        let longest = take_longest_hold();
        assert!(longest <= MAX_STEPS, "{what}: {longest} steps at once");
        steps() - before
    }

    #[test]
    fn the_table_lock_is_held_for_few_records_at_a_time() {
        let segment = (1 << 20) / 256;
        let clear = work("clear", |segments| {
            segments.clear().expect("space");
            assert_eq!(segments.stat().segments, 0);
        });
        assert!(clear > RECORDS, "all were looked at: {clear}");
        let prune = work("prune", |segments| {
            segments.prune(Some(4 << 20)).expect("space");
            assert!(segments.stat().used <= 4 << 20);
        });
        assert!(prune > RECORDS / 2, "{prune}");
        work("prune_older", |segments| {
            segments.prune_older(u64::MAX).expect("space");
            assert_eq!(segments.stat().segments, 0);
        });
        let put = work("put", |segments| {
            let before = segments.stat().evicted;
            for number in RECORDS.. {
                put(segments, number);
                if number % 1000 == 0 && segments.stat().evicted > before + 2 {
                    return;
                }
            }
        });
        assert!(put > segment, "segments were reclaimed: {put}");
    }

    #[test]
    fn a_rebuild_holds_the_table_lock_for_few_records_at_a_time() {
        let rebuild = work("rebuild", |segments| {
            std::fs::remove_file(segments.path().join("index")).expect("deleted");
            segments.prune(None).expect("an index");
            assert_eq!(segments.stat().parts, RECORDS);
        });
        assert!(rebuild > RECORDS, "{rebuild}");
    }

    /// Leaves a folder whose index has all rows and none of 100 parts, like a process that dies
    /// while it rebuilds the index.
    fn with_partly_indexed_segments(open: impl Fn() -> Segments) {
        let segments = open();
        (0..100).for_each(|number| put(&segments, number));
        drop(segments);
        let segments = open();
        let guard = segments.folder_guard().expect("exclusive access");
        let (table, sets) = (guard.index.table(), guard.index.sets());
        for (slot, row) in table.rows() {
            table.set_row(slot, &crate::index::table::Row { is_partly_indexed: true, ..row });
        }
        sets.sweep(|_| true);
    }

    fn found(segments: &Segments) -> usize {
        let is_found = |number: &u64| segments.find(&Id::new([3; 16], *number), b"").is_some();
        (0..100).filter(is_found).count()
    }

    #[test]
    fn the_next_process_enters_the_parts_of_a_partly_indexed_segment() {
        let folder = tempfile::tempdir().expect("a folder");
        let options = Options::new().limit(4 << 20);
        let open = || Segments::open(folder.path(), &options).expect("a folder");
        with_partly_indexed_segments(open);
        let next = open();
        next.prune(None).expect("exclusive access");
        assert_eq!((next.stat().parts, found(&next)), (100, 100));
    }

    #[test]
    fn parts_that_are_entered_while_another_process_grows_the_index_are_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().to_owned();
        let options = Options::new().limit(4 << 20);
        let open = move || Segments::open(&path, &options).expect("a folder");
        with_partly_indexed_segments(&open);
        let next = open();
        let has_grown = std::rc::Rc::new(std::cell::Cell::new(false));
        let result = has_grown.clone();
        call_after_steps(50, move || {
            let other = open();
            let before = other.stat().max_parts;
            let grows = |number| {
                put(&other, number);
                other.stat().max_parts > before
            };
            result.set((1000..10_000).any(grows));
        });
        next.prune(None).expect("exclusive access");
        assert!(has_grown.get(), "another process has grown the index meanwhile");
        assert_eq!(found(&next), 100);
    }
}
