//! Encrypted connections.

use crate::job::run;
use crate::place::Place;
use nuthatch_testing::database::Database;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

#[test]
fn the_certificate_of_a_server_is_verified() {
    let place = Place::new();
    let server = Database::postgres(place.path());
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let authority = CertifiedIssuer::self_signed(authority, key).expect("an authority");
    let key = KeyPair::generate().expect("a key");
    let names = vec!["localhost".to_owned()];
    let certificate = CertificateParams::new(names).expect("names");
    let certificate = certificate.signed_by(&key, &authority).expect("a certificate");
    place.file("ca.pem", authority.pem());
    server.use_certificate(&certificate.pem(), &key.serialize_pem());

    let job = |host: &str, more: &str| {
        let address = server.address().replace("127.0.0.1", host);
        format!(
            "output = \"a.nut\"\nattempts = 1\n[[source]]\nfrom = \"{address}\"\n\
             query = \"select 1 as id, ssl::text as v from pg_stat_ssl \
             where pid = pg_backend_pid()\"\n\
             key = \"{{id}}\"\n{more}"
        )
    };
    let shown = |host: &str, more: &str| {
        run(&place, &job(host, more)).report();
        place.entries("a.nut").remove(0)
    };
    let encrypted = "1=String(\"true\")";
    assert_eq!(shown("localhost", "tls = \"verify\"\nca_file = \"ca.pem\""), encrypted);
    assert_eq!(shown("localhost", "tls = \"unverified\""), encrypted);
    assert_eq!(shown("localhost", ""), "1=String(\"false\")");
    // An authority that is not known, and a certificate for another name.
    run(&place, &job("localhost", "tls = \"verify\"")).failed(3, "invalid peer certificate");
    let run = run(&place, &job("127.0.0.1", "tls = \"verify\"\nca_file = \"ca.pem\""));
    run.failed(3, "invalid peer certificate");
}
