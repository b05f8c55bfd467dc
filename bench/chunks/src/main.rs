//! Benchmarks Nuthatch's chunk cache against other caches, a copy in memory and the page cache.
//! `README.md` describes the workloads.

mod buffer;
mod clock;
mod many;
mod own;
mod puts;
mod reads;
mod rivals;
mod systems;

use clock::Sheet;
use std::os::unix::fs::PermissionsExt;
use std::process::ExitCode;
use systems::Setting;

const USAGE: &str =
    "usage: chunks-race [--rounds N] [--limit-mib N] [--only SYSTEM,...] [--works WORK,...]";

/// Returns whether `names` contains all comma-separated names in `listed`.
fn known(listed: &str, names: &[&str]) -> bool {
    listed.split(',').all(|listed| names.contains(&listed))
}

fn main() -> ExitCode {
    let (mut rounds, mut limit) = (11, 1 << 30);
    let mut entrants = [own::Nuthatch::entrants(), rivals::entrants()].concat();
    let mut works = vec!["reads", "puts", "many", "million", "more"];
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let value = arguments.next().unwrap_or_default();
        let listed = |name: &str| value.split(',').any(|listed| listed == name);
        match (argument.as_str(), value.parse::<u64>()) {
            ("--rounds", Ok(number)) => rounds = number as usize,
            ("--limit-mib", Ok(number)) => limit = number << 20,
            ("--only", _)
                if known(&value, &entrants.iter().map(|e| e.name).collect::<Vec<_>>()) =>
            {
                entrants.retain(|entrant| listed(entrant.name));
            }
            ("--works", _) if known(&value, &works) => works.retain(|work| listed(work)),
            _ => {
                eprintln!("{argument} {value}: not understood\n{USAGE}");
                return ExitCode::FAILURE;
            }
        }
    }
    if !entrants.iter().any(|entrant| entrant.name == "nuthatch") {
        works.retain(|work| !["million", "more"].contains(work));
    }
    let folder = tempfile::tempdir_in(std::env::temp_dir()).expect("a folder");
    // The server of another system may run as another user.
    let access = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path(), access).expect("access");
    let setting = Setting { folder: folder.path().to_owned(), limit, rounds, entrants };
    let mut sheet = Sheet::default();
    let _end = rivals::End;
    for work in works {
        match work {
            "reads" => reads::run(&setting, &mut sheet),
            "puts" => puts::run(&setting, &mut sheet),
            "many" => many::run(&setting, &mut sheet),
            "million" => many::million(&setting, &mut sheet),
            _ => own::more(&setting, &mut sheet),
        }
    }
    sheet.print();
    ExitCode::SUCCESS
}
