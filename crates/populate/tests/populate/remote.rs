//! Jobs that read objects of a store.

use crate::place::{Place, Run};
use nuthatch_testing::moto::Moto;
use std::fmt::Write;

#[test]
fn objects_that_match_a_pattern_are_read_and_the_snapshot_is_published() {
    let place = Place::new();
    let moto = Moto::start(place.path());
    moto.request("PUT", "/bucket", b"");
    for part in 0..3 {
        let text = format!("id,v\n{part},value {part}\n");
        moto.request("PUT", &format!("/bucket/data/part-{part}.csv"), text.as_bytes());
    }
    // Longer than one request.
    let mut long = String::from("id,v\n");
    for id in 10..900_010 {
        let _ = writeln!(long, "{id},value");
    }
    moto.request("PUT", "/bucket/data/part-3.csv", long.as_bytes());
    place.file(
        "job.toml",
        "output = \"a.nut\"\npublish = \"s3://bucket/published\"\n\
         [[source]]\nfrom = \"s3://bucket/data/part-*.csv\"\nkey = \"{id}\"\n",
    );
    let run = |place: &Place| {
        let mut command = place.command(&["job.toml", "--json"]);
        moto.configure(&mut command);
        Run::of(command.output().expect("the command"))
    };
    let report = run(&place).report();
    assert_eq!(report["entries"], 900_003);
    assert_eq!(report["published"]["generation"], 1);
    assert_eq!(run(&place).report()["published"]["unchanged"], true);

    place.file(
        "job.toml",
        "output = \"a.nut\"\nattempts = 1\n\
         [[source]]\nfrom = \"s3://bucket/data/missing.csv\"\nkey = \"{id}\"\n",
    );
    run(&place).failed(3, "s3://bucket/data/missing.csv: it does not exist");
}
