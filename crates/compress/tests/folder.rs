//! Dictionaries that are kept in a folder.

use nuthatch_compress::{
    Codec, Dictionaries, DictionaryFolder, Encoded, Error, set_dictionary_id, train,
};
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;

const KEY: &[u8] = b"key";

fn document(kind: &str, number: usize) -> Vec<u8> {
    let word = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    format!(r#"{{"kind":"{kind}","id":{number},"word":"{word:x}","plan":"free"}}"#).into_bytes()
}

/// Returns a dictionary with an id.
fn dictionary(kind: &str, id: u32) -> Vec<u8> {
    let samples = (0..1000).map(|number| document(kind, number).into_boxed_slice()).collect();
    train(samples, 4 << 10, 3, NonZeroU32::new(id)).expect("a dictionary").bytes
}

/// Returns the set in a folder, and the ids of the dictionaries that were left out.
fn open(folder: &Path, has_values: bool, level: i32) -> (Arc<Dictionaries>, Vec<u32>) {
    let mut dictionaries = Dictionaries::new(level, 64 << 20);
    let folder = DictionaryFolder::open(folder, has_values, 1).expect("a folder");
    let left_out = dictionaries.keep_in(folder).expect("no error of the system");
    (Arc::new(dictionaries), left_out.iter().map(|(id, _)| id.get()).collect())
}

fn ids(dictionaries: &Dictionaries) -> Vec<u32> {
    dictionaries.stats().iter().map(|one| one.id.get()).collect()
}

/// Returns a compressed value.
fn compress(dictionaries: &Arc<Dictionaries>, raw: &[u8]) -> Vec<u8> {
    let mut codec = Codec::new(dictionaries).expect("memory").min_len(0);
    match codec.compress(KEY, raw, &mut Vec::new()) {
        Encoded::Compressed(bytes) => bytes.to_vec(),
        Encoded::Raw => panic!("expected a compressed value"),
    }
}

fn decompress(dictionaries: &Arc<Dictionaries>, value: &[u8]) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    Codec::new(dictionaries)?.decompress(value, 1 << 20, &mut out)?;
    Ok(out)
}

#[test]
fn a_value_can_be_read_with_the_dictionaries_of_the_folder_at_any_level() {
    let folder = tempfile::tempdir().expect("a folder");
    let (set, _) = open(folder.path(), false, 3);
    set.use_for_all(&dictionary("user", 5)).expect("room");
    let value = compress(&set, &document("user", 7));
    assert!(set.reclaim().is_empty() && set.unassigned().is_empty());
    set.use_none();
    assert!(set.reclaim().is_empty(), "values on disk may need it");
    drop(set);
    for level in [3, 1, 19] {
        let (set, left_out) = open(folder.path(), true, level);
        assert_eq!((ids(&set), left_out), (vec![5], vec![]));
        assert_eq!(decompress(&set, &value).expect("its dictionary"), document("user", 7));
    }
    let (set, _) = open(folder.path(), false, 3);
    assert_eq!(ids(&set), [0; 0], "no value needs a dictionary");
    assert!(!folder.path().join("5.zdict").exists());
}

#[test]
fn an_id_is_not_given_to_another_dictionary() {
    let folder = tempfile::tempdir().expect("a folder");
    let (set, _) = open(folder.path(), false, 3);
    set.use_for_all(&dictionary("user", 5)).expect("room");
    let value = compress(&set, &document("user", 7));
    for _ in 0..2 {
        let (set, _) = open(folder.path(), true, 3);
        assert!(matches!(set.add(&dictionary("page", 5)), Err(Error::DuplicateId { id: 5 })));
        let used = set.use_for_all(&dictionary("page", 5)).expect("another id");
        assert_eq!((used.id().get(), ids(&set)), (6, vec![5, 6]));
        assert_eq!(decompress(&set, &value).expect("its dictionary"), document("user", 7));
        let used = set.use_for_all(&dictionary("user", 5)).expect("the same");
        assert_eq!(used.id().get(), 5);
    }
}

#[test]
fn a_lost_or_damaged_dictionary_is_reported_and_its_id_is_not_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let (set, _) = open(folder.path(), false, 3);
    set.use_for_all(&dictionary("user", 5)).expect("room");
    let value = compress(&set, &document("user", 7));
    set.add(&dictionary("page", 3)).expect("room");
    drop(set);
    let file = folder.path().join("5.zdict");
    let mut bytes = std::fs::read(&file).expect("a file");
    *bytes.last_mut().expect("not empty") ^= 1;
    std::fs::write(&file, &bytes).expect("room");
    for _ in 0..2 {
        let (set, left_out) = open(folder.path(), true, 3);
        assert_eq!((ids(&set), left_out), (vec![3], vec![5]));
        let error = decompress(&set, &value).expect_err("no dictionary");
        assert!(matches!(error, Error::UnknownDictionary { id: 5 }), "{error}");
        let _ = std::fs::remove_file(&file);
    }
    let (set, _) = open(folder.path(), true, 3);
    assert_eq!(set.use_for_all(&dictionary("other", 5)).expect("room").id().get(), 6);
    // The same one can replace it.
    set.use_for_all(&dictionary("user", 5)).expect("room");
    assert_eq!(decompress(&set, &value).expect("its dictionary"), document("user", 7));
    assert!(file.exists());
}

#[test]
fn without_the_manifest_no_value_is_read_with_a_wrong_dictionary() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("dictionaries");
    let (set, _) = open(&path, false, 3);
    set.use_for_all(&dictionary("user", 5)).expect("room");
    let value = compress(&set, &document("user", 7));
    std::fs::remove_dir_all(&path).expect("a folder");
    for _ in 0..2 {
        let (set, _) = open(&path, true, 3);
        set.use_for_all(&dictionary("page", 5)).expect("room");
        let error = decompress(&set, &value).expect_err("no dictionary");
        assert!(matches!(error, Error::UnknownDictionary { id: 5 }), "{error}");
        let page = compress(&set, &document("page", 7));
        assert_eq!(decompress(&set, &page).expect("its dictionary"), document("page", 7));
    }
}

#[test]
fn a_dictionary_that_cannot_be_saved_is_not_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let (set, _) = open(folder.path(), false, 3);
    std::fs::create_dir(folder.path().join("5.partial")).expect("room");
    let bytes = set_id(dictionary("user", 4), 5);
    assert!(matches!(set.use_for_all(&bytes), Err(Error::File { .. })));
    assert_eq!(ids(&set), [0; 0]);
    set.use_for_all(&dictionary("user", 4)).expect("room");
    assert_eq!(ids(&set), [4]);
}

fn set_id(mut bytes: Vec<u8>, id: u32) -> Vec<u8> {
    set_dictionary_id(&mut bytes, NonZeroU32::new(id).expect("not 0")).expect("a dictionary");
    bytes
}

#[test]
fn files_are_for_this_user_alone_and_dictionaries_beyond_the_limit_are_not_saved() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("dictionaries");
    let mut set = Dictionaries::new(3, 1 << 20);
    let opened = DictionaryFolder::open(&path, false, 1).expect("a folder");
    assert!(set.keep_in(opened).expect("no error of the system").is_empty());
    let mut id = 1;
    while let Ok(added) = set.add(&dictionary("user", id)) {
        assert_eq!(added.id().get(), id);
        id += 1;
    }
    assert!(matches!(set.add(&dictionary("user", id)), Err(Error::NoRoom { .. })));
    assert!(id > 1 && !path.join(format!("{id}.zdict")).exists());
    let mode = |path: &Path| path.metadata().expect("it").permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(&path.join("1.zdict"))), (0o700, 0o600));
    assert_eq!(mode(&path.join("manifest")), 0o600);
    // With a lower limit, the oldest ones are left out.
    let mut set = Dictionaries::new(3, 64 << 10);
    let opened = DictionaryFolder::open(&path, true, 1).expect("a folder");
    let left_out = set.keep_in(opened).expect("no error of the system");
    assert!(left_out.iter().any(|(id, _)| id.get() == 1) && !ids(&set).is_empty());
    assert!(left_out.iter().all(|(_, error)| matches!(error, Error::NoRoom { .. })));
}
