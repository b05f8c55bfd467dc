//! Certificates and tokens that change while a server runs.

use super::security::{Files, Secured, issuer, secured};
use super::served::{TABLE, code, is, options};
use nuthatch_rpc::{
    Batch, BatchWriterOptions, Client, ClientOptions, ClientTls, ServerTls, Tokens, WatchStream,
};
use nuthatch_store::{Range, Start};

fn tokens(text: &str) -> Tokens {
    Tokens::parse(text).expect("tokens")
}

const BOTH: &str = "token app write >robin\ntoken page read >wren\n";

fn with_token(secured: &Secured, token: &str) -> Client {
    secured.connect("grpc", &ClientOptions::new().token(token)).expect("a client")
}

fn watch(secured: &Secured, client: &Client) -> WatchStream {
    let all = Range::all();
    let watch = client.watch(Some(TABLE), &all, Start::Now);
    secured.runtime.block_on(watch).expect("a watch")
}

#[test]
fn streams_of_a_removed_token_end_and_others_continue() {
    let secured = secured(&options().tokens(tokens(BOTH)));
    secured.store.keep_changes(10, 1 << 20).expect("kept");
    let (robin, wren) = (with_token(&secured, "robin"), with_token(&secured, "wren"));
    let (mut kept, mut removed) = (watch(&secured, &robin), watch(&secured, &wren));
    let reloader = secured.server.reloader();
    let done = reloader.reload(None, Some(tokens("token app write >robin")));
    assert_eq!(done.expect("reloaded").closed_connections, 0);
    let error = secured.runtime.block_on(removed.next()).expect("an error");
    assert_eq!(code(error), is("unauthenticated", 16));
    secured.put(&robin).expect("written");
    let changes = secured.runtime.block_on(kept.next()).expect("no end").expect("changes");
    assert_eq!(changes.len(), 1);
    let get = secured.runtime.block_on(wren.get(TABLE, b"a"));
    assert_eq!(code(get), is("unauthenticated", 16));
    let renewed = tokens("token app write >robin\ntoken page read >lark\n");
    reloader.reload(None, Some(renewed)).expect("reloaded");
    let lark = with_token(&secured, "lark");
    assert!(secured.runtime.block_on(lark.get(TABLE, b"a")).expect("read").is_some());
}

#[test]
fn streams_of_a_token_with_reduced_rights_end() {
    let secured = secured(&options().tokens(tokens(BOTH)));
    let robin = with_token(&secured, "robin");
    let options = BatchWriterOptions::new();
    let writer = robin.batch_writer(&options);
    let writer = secured.runtime.block_on(writer).expect("a writer");
    let submit = || async {
        let ack = writer.submit(Batch::new().put(TABLE, b"a", b"1")).await?;
        ack.await
    };
    secured.runtime.block_on(submit()).expect("written");
    let less = tokens("token app read >robin\n");
    secured.server.reloader().reload(None, Some(less)).expect("reloaded");
    // Writes that the server received before it ended the stream were allowed, and are committed.
    let error = loop {
        if let Err(error) = secured.runtime.block_on(submit()) {
            break error;
        }
    };
    assert_eq!((error.code(), error.status()), ("forbidden", 7));
    assert!(secured.runtime.block_on(robin.get(TABLE, b"a")).expect("read").is_some());
}

#[test]
fn new_connections_get_a_new_certificate_and_old_ones_stay() {
    let (files, first, second) = (Files::new(), issuer(), issuer());
    let tls = |name, issuer| {
        let (cert, key) = files.identity(name, issuer);
        ServerTls::open(&cert, &key).expect("files")
    };
    let trusting = |name, issuer: &super::security::Issuer| {
        let path = files.write(name, &issuer.pem());
        ClientOptions::new().tls(ClientTls::open(&path).expect("a file"))
    };
    let secured = secured(&options().tls(tls("first", &first)));
    let old = trusting("first-ca.pem", &first);
    let client = secured.connect("grpcs", &old).expect("a client");
    secured.put(&client).expect("written");
    let reloaded = secured.server.reloader().reload(Some(tls("second", &second)), None);
    assert_eq!(reloaded.expect("reloaded").closed_connections, 0);
    secured.put(&client).expect("written over the old connection");
    let new = secured.connect("grpcs", &trusting("second-ca.pem", &second)).expect("a client");
    secured.put(&new).expect("written");
    assert_eq!(secured.connect("grpcs", &old).expect_err("another issuer").code(), "transport");
}

#[test]
fn connections_with_a_certificate_that_is_no_longer_accepted_are_closed() {
    let (files, own, other) = (Files::new(), issuer(), issuer());
    let (cert, key) = files.identity("server", &own);
    let ca = files.write("ca.pem", &own.pem());
    let other_ca = files.write("other-ca.pem", &other.pem());
    let tls = |ca| ServerTls::open(&cert, &key).expect("files").client_ca(ca).expect("a file");
    let secured = secured(&options().tls(tls(&ca)));
    let (client_cert, client_key) = files.identity("client", &own);
    let shown = ClientTls::open(&ca).expect("a file").identity(&client_cert, &client_key);
    let shown = ClientOptions::new().tls(shown.expect("files"));
    let client = secured.connect("grpcs", &shown).expect("a client");
    secured.put(&client).expect("written");
    let reloader = secured.server.reloader();
    let same = reloader.reload(Some(tls(&ca)), None).expect("reloaded");
    assert_eq!(same.closed_connections, 0);
    secured.put(&client).expect("written");
    let changed = reloader.reload(Some(tls(&other_ca)), None).expect("reloaded");
    assert_eq!(changed.closed_connections, 1);
    assert_eq!(secured.put(&client).expect_err("no connection").code(), "transport");
}

#[test]
fn tls_and_tokens_are_not_switched_on_or_off() {
    let (files, issuer) = (Files::new(), issuer());
    let (cert, key) = files.identity("server", &issuer);
    let tls = || ServerTls::open(&cert, &key).expect("files");
    let ca = files.write("ca.pem", &issuer.pem());
    let plain = secured(&options());
    let secure = secured(&options().tls(tls()).tokens(tokens(BOTH)));
    let (plain, secure) = (plain.server.reloader(), secure.server.reloader());
    for (refused, what) in [
        (plain.reload(Some(tls()), None), "TLS"),
        (plain.reload(None, Some(tokens(BOTH))), "tokens"),
        (secure.reload(None, Some(tokens(BOTH))), "TLS"),
        (secure.reload(Some(tls()), None), "tokens"),
        (
            secure.reload(Some(tls().client_ca(&ca).expect("a file")), Some(tokens(BOTH))),
            "certificates of clients",
        ),
    ] {
        let error = refused.expect_err(what).to_string();
        assert_eq!(
            error,
            format!("{what} cannot be switched on or off while the server runs: restart it")
        );
    }
    plain.reload(None, None).expect("nothing to reload");
}
