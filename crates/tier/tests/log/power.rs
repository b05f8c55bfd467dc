//! Losses of power: only what was synced is left.

use crate::{Case, Item, live, small};
use nuthatch_tier::{Disk, FolderState, Options, SystemDisk, Tier};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// The bytes of a file, as the system has them and as the device has them.
#[derive(Clone, Default)]
struct Bytes {
    current: Vec<u8>,
    durable: Vec<u8>,
}

/// Files by name, as the system has them and as the device has them. A file is identified by the
/// order of creation.
#[derive(Default)]
struct State {
    files: Vec<Bytes>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    images: Vec<BTreeMap<String, Vec<u8>>>,
}

impl State {
    fn change(&mut self, name: &str, change: impl FnOnce(&mut Bytes)) {
        let index = self.names[name];
        change(&mut self.files[index]);
    }

    /// Keeps the files that a loss of power would leave now.
    fn take_image(&mut self) {
        let named = self.durable_names.iter();
        let image =
            named.map(|(name, index)| (name.clone(), self.files[*index].durable.clone())).collect();
        self.images.push(image);
    }
}

/// A disk that keeps an image of the durable bytes after each operation.
#[derive(Default)]
struct PowerDisk(Mutex<State>);

impl PowerDisk {
    fn record(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.0.lock().expect("no panic");
        change(&mut state);
        state.take_image();
    }
}

impl Disk for PowerDisk {
    fn create(&self, folder: &File, name: &str) -> io::Result<File> {
        let file = SystemDisk.create(folder, name)?;
        self.record(|state| {
            state.files.push(Bytes::default());
            state.names.insert(name.to_owned(), state.files.len() - 1);
        });
        Ok(file)
    }

    fn allocate(&self, file: &File, name: &str, len: u64) -> io::Result<()> {
        SystemDisk.allocate(file, name, len)?;
        self.record(|state| state.change(name, |file| file.current.resize(len as usize, 0)));
        Ok(())
    }

    fn write(&self, file: &File, name: &str, bytes: &[u8], offset: u64) -> io::Result<()> {
        SystemDisk.write(file, name, bytes, offset)?;
        let (start, end) = (offset as usize, offset as usize + bytes.len());
        self.record(|state| {
            state.change(name, |file| {
                let len = file.current.len().max(end);
                file.current.resize(len, 0);
                file.current[start..end].copy_from_slice(bytes);
            });
        });
        Ok(())
    }

    fn read(&self, file: &File, name: &str, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        SystemDisk.read(file, name, bytes, offset)
    }

    fn set_len(&self, file: &File, name: &str, len: u64) -> io::Result<()> {
        SystemDisk.set_len(file, name, len)?;
        self.record(|state| state.change(name, |file| file.current.resize(len as usize, 0)));
        Ok(())
    }

    fn sync(&self, file: &File, name: &str) -> io::Result<()> {
        SystemDisk.sync(file, name)?;
        self.record(|state| state.change(name, |file| file.durable.clone_from(&file.current)));
        Ok(())
    }

    fn sync_folder(&self, folder: &File) -> io::Result<()> {
        SystemDisk.sync_folder(folder)?;
        self.record(|state| state.durable_names.clone_from(&state.names));
        Ok(())
    }

    fn rename(&self, folder: &File, from: &str, to: &str) -> io::Result<()> {
        SystemDisk.rename(folder, from, to)?;
        self.record(|state| {
            let index = state.names.remove(from).expect("a file");
            state.names.insert(to.to_owned(), index);
        });
        Ok(())
    }

    fn remove(&self, folder: &File, name: &str) -> io::Result<()> {
        SystemDisk.remove(folder, name)?;
        self.record(|state| {
            state.names.remove(name);
        });
        Ok(())
    }
}

fn restore(image: &BTreeMap<String, Vec<u8>>, folder: &Path) {
    fs::create_dir(folder).expect("a folder");
    for (name, bytes) in image {
        fs::write(folder.join(name), bytes).expect("a file");
    }
}

/// Opens, appends, removes a record and closes three times. Returns the items of each closed
/// folder.
fn work(case: &Case, options: &Options) -> Vec<Vec<Item>> {
    let mut closed = Vec::new();
    for round in 0..3 {
        let (mut tier, recovery) = Tier::open(case.path(), options).expect("a tier");
        let removals = tier.removals().expect("a log");
        let mut removed = Vec::new();
        for number in 0..20 {
            let item = Item::new(round * 100 + number, 5000);
            let place = tier.append(&item.record()).expect("appended");
            if number == 15 {
                let id = tier.reader().record_id(place).expect("a file");
                removals.append(&[id]).expect("removed");
                removed.push(item);
            }
            if number == 10 {
                tier.flush().expect("flushed");
                tier.remove_oldest().expect("removed");
            }
        }
        tier.seal().expect("sealed");
        let mut items = live(&tier.reader(), &recovery.removed);
        items.retain(|item| !removed.contains(item));
        closed.push(items);
        tier.close().expect("closed");
    }
    closed
}

#[test]
fn a_folder_that_counts_as_closed_has_all_its_items_after_a_loss_of_power() {
    let (case, disk) = (Case::new(), Arc::new(PowerDisk::default()));
    let closed = work(&case, &Options { disk: disk.clone(), ..small() });
    let images = std::mem::take(&mut disk.0.lock().expect("no panic").images);
    let (mut seen_closed, mut seen_open) = (0, 0);
    for (number, image) in images.iter().enumerate() {
        let case = Case::new();
        restore(image, &case.path());
        let (tier, recovery) = match Tier::open(case.path(), &small()) {
            Ok(opened) => opened,
            Err(error) => panic!("operation {number}: {error}"),
        };
        let found = tier.reader().numbers();
        if recovery.state == FolderState::Closed {
            seen_closed += 1;
            assert_eq!(recovery.damage, [], "operation {number}");
            let found = live(&tier.reader(), &recovery.removed);
            assert!(closed.contains(&found), "operation {number}");
        } else {
            seen_open += 1;
            assert!(found.len() <= 10, "operation {number}");
        }
    }
    assert!(seen_closed >= 3 && seen_open > 50, "{seen_closed} closed, {seen_open} open");
}
