//! Nuthatch's chunk cache beside others, a copy in memory and the page cache. `README.md` says what
//! each work is.

mod bare;
mod clock;
mod own;
#[cfg(feature = "rivals")]
mod rivals;
mod works;

use clock::Sheet;
use works::{Setting, System};

fn main() -> std::process::ExitCode {
    let mut rounds = 5;
    let mut limit = 1 << 30;
    let mut only = None;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let value = arguments.next().unwrap_or_default();
        match (argument.as_str(), value.parse::<u64>()) {
            ("--rounds", Ok(number)) => rounds = number as usize,
            ("--limit-mib", Ok(number)) => limit = number << 20,
            ("--only", _) => only = Some(value),
            _ => {
                eprintln!("usage: chunks-race [--rounds N] [--limit-mib N] [--only SYSTEM]");
                return std::process::ExitCode::FAILURE;
            }
        }
    }
    let folder = tempfile::tempdir_in(std::env::temp_dir()).expect("a folder");
    let setting = Setting { folder: folder.path().to_owned(), limit, rounds };
    let mut sheet = Sheet::default();
    bare::run(&setting, &mut sheet);
    let wanted = |name: &str| only.as_ref().is_none_or(|only| only == name);
    if wanted("nuthatch") {
        works::run::<own::Nuthatch>(&setting, &mut sheet);
        own::more(&setting, &mut sheet);
    }
    #[cfg(feature = "rivals")]
    {
        if wanted("xet") {
            works::run::<rivals::xet::Xet>(&setting, &mut sheet);
        }
        if wanted("sccache") {
            works::run::<rivals::sccache::Sccache>(&setting, &mut sheet);
        }
        if wanted("foyer") {
            works::run::<rivals::foyer::Foyer>(&setting, &mut sheet);
        }
    }
    sheet.print();
    let _ = <own::Nuthatch as System>::NAME;
    std::process::ExitCode::SUCCESS
}
