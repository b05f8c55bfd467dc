use nuthatch_chunks::Error;

const TABLE: &str = include_str!("../../../../testdata/chunks/errors.csv");

#[test]
fn codes_are_those_of_the_table() {
    let path = std::path::PathBuf::from("a");
    let (option, expected, found) = ("limit", "more".to_owned(), "less".to_owned());
    let errors = [
        Error::Folder(folder_error(path)),
        Error::Folder(nuthatch_chunks::FolderError::Options { option, expected, found }),
        Error::Conflict { chunk: 1 },
        Error::Range { start: 2, end: 1, max: 3 },
        Error::Offsets { expected: "0".into(), found: "1".into() },
        Error::TooLarge { len: 2, max: 1 },
        Error::Buffer { expected: 2, found: 1 },
        Error::Key { expected: "less", found: "more".into() },
        Error::Content,
    ];
    let codes: Vec<_> = TABLE.lines().skip(1).filter_map(|row| row.split(',').next()).collect();
    assert_eq!(errors.each_ref().map(Error::code).to_vec(), codes);
    for error in errors {
        assert!(error.to_string().len() > 10, "{error:?} tells what is wrong");
    }
}

/// Returns an error of the folder.
fn folder_error(path: std::path::PathBuf) -> nuthatch_chunks::FolderError {
    nuthatch_chunks::FolderError::Busy { path }
}
