//! Every kind of read of a snapshot.

use nuthatch_snapshot::{Entry, Error, Scratch, Snapshot, StoredValue, ValueType};

/// Maximum number of frames that are decompressed in an invalid file. Each frame may have 16 MiB.
const FRAMES: usize = 16;

/// Reads all entries with every kind of read. Reads of a valid file must not fail, and must agree
/// with each other.
pub fn read_all(snapshot: &Snapshot) {
    let verified = snapshot.verify_with(1, |_, _| ()).is_ok();
    assert!(snapshot.metadata().is_ok() || !verified);
    let mut scratch = Scratch::new();
    let (mut entries, mut frames) = (0, 0);
    let mut keys = vec![Vec::new(), b"absent".to_vec(), vec![b'k'; 300]];
    for entry in snapshot {
        match entry {
            Ok(Entry { key, value }) => {
                entries += 1;
                keys.push(key.to_vec());
                frames += usize::from(value.is_compressed());
                if verified || frames < FRAMES {
                    let read = value.decompress(&mut scratch);
                    assert!(read.is_ok() || !verified, "{value:?}: {read:?}");
                }
                if verified {
                    let found = snapshot.find(key).expect("a good file").expect("its key");
                    assert_eq!(form(&found), form(&value));
                }
            }
            Err(error) => assert!(!verified, "{error}"),
        }
    }
    assert!(!verified || entries == snapshot.len());
    let neighbours: Vec<_> = keys.iter().map(|key| [key, &b"!"[..]].concat()).collect();
    keys.extend(neighbours);
    for key in &keys {
        read_one(snapshot, key, verified);
    }
    read_many(snapshot, &keys, verified);
}

/// Returns the properties that identify a stored value.
fn form<'a>(stored: &StoredValue<'a>) -> (ValueType, bool, &'a [u8]) {
    (stored.value_type(), stored.is_compressed(), stored.bytes())
}

fn is_fine<T>(answer: &nuthatch_snapshot::Result<T>) -> bool {
    matches!(answer, Ok(_) | Err(Error::WrongType { .. }))
}

fn read_one(snapshot: &Snapshot, key: &[u8], verified: bool) {
    let found = snapshot.find(key);
    let present = found.as_ref().is_ok_and(Option::is_some);
    let fine = [
        is_fine(&found),
        is_fine(&snapshot.get(key)),
        is_fine(&snapshot.get_bytes(key)),
        is_fine(&snapshot.get_string(key)),
        is_fine(&snapshot.get_bool(key)),
        is_fine(&snapshot.get_i64(key)),
        is_fine(&snapshot.get_f64(key)),
        is_fine(&snapshot.get_i64_list(key)),
        is_fine(&snapshot.get_f64_list(key)),
        is_fine(&snapshot.get_f32_list(key)),
        is_fine(&snapshot.get_string_list(key)),
    ];
    assert!(!verified || fine == [true; 11], "{}: {fine:?}", key.escape_ascii());
    if let Ok(contained) = snapshot.contains(key) {
        assert_eq!(contained, present);
    }
}

fn read_many(snapshot: &Snapshot, keys: &[Vec<u8>], verified: bool) {
    let mut many = vec![None; keys.len()];
    let answered = snapshot.find_many(keys, &mut many);
    assert!(answered.is_ok() || !verified);
    if answered.is_ok() {
        for (key, found) in keys.iter().zip(&many) {
            let one = snapshot.find(key).expect("among many there was no error");
            assert_eq!(found.as_ref().map(form), one.as_ref().map(form));
        }
    }
    let mut values = vec![None; keys.len()];
    if snapshot.get_many(keys, &mut values).is_ok() {
        for (key, value) in keys.iter().zip(values) {
            let one = snapshot.get(key).expect("among many there was no error");
            // Compared as text, so that NaN equals itself.
            assert_eq!(format!("{value:?}"), format!("{one:?}"));
        }
    }
}
