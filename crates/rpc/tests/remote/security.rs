//! TLS, certificates and tokens.

use super::served::{TABLE, code, is, options};
use nuthatch_rpc::{
    Batch, BatchWriterOptions, Client, ClientOptions, ClientTls, Options, Server, ServerTls, Tokens,
};
use nuthatch_store::{Options as StoreOptions, Store};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::path::PathBuf;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tonic::transport::Channel;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

/// The years in which a certificate is valid, by default.
const VALID: (i32, i32) = (1975, 4096);
const EXPIRED: (i32, i32) = (1975, 2020);
const FUTURE: (i32, i32) = (4095, 4096);

pub(crate) type Issuer = CertifiedIssuer<'static, KeyPair>;

pub(crate) fn issuer() -> Issuer {
    let mut params = CertificateParams::new(Vec::new()).expect("a name");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an issuer")
}

/// A folder with files in PEM.
pub(crate) struct Files(TempDir);

impl Files {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path
    }

    /// A certificate for this machine and its key.
    pub(crate) fn identity(&self, name: &str, issuer: &Issuer) -> (PathBuf, PathBuf) {
        self.identity_for("localhost", VALID, name, issuer)
    }

    /// A certificate for a host that is valid from one year to another, and its key.
    fn identity_for(
        &self,
        host: &str,
        (from, to): (i32, i32),
        name: &str,
        issuer: &Issuer,
    ) -> (PathBuf, PathBuf) {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(vec![host.to_owned()]).expect("a name");
        params.not_before = rcgen::date_time_ymd(from, 1, 1);
        params.not_after = rcgen::date_time_ymd(to, 1, 1);
        let cert = params.signed_by(&key, issuer).expect("a certificate");
        let key = self.write(&format!("{name}.key"), &key.serialize_pem());
        (self.write(&format!("{name}.pem"), &cert.pem()), key)
    }
}

pub(crate) struct Secured {
    pub(crate) server: Server,
    pub(crate) runtime: Runtime,
    pub(crate) store: Store,
    folder: TempDir,
}

pub(crate) fn secured(options: &Options) -> Secured {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path().join("store"), &StoreOptions::new()).expect("a store");
    store.table(TABLE).expect("a table");
    let server = Server::start(store.clone(), options).expect("a server");
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    Secured { server, runtime, store, folder }
}

impl Secured {
    pub(crate) fn connect(
        &self,
        scheme: &str,
        options: &ClientOptions,
    ) -> nuthatch_rpc::Result<Client> {
        let port = self.server.addresses()[0].port();
        let address = format!("{scheme}://localhost:{port}");
        let options = options.clone().retries(0);
        self.runtime.block_on(Client::connect_with(&address, &options))
    }

    pub(crate) fn put(&self, client: &Client) -> nuthatch_rpc::Result<()> {
        self.runtime.block_on(client.put(TABLE, b"a", b"1")).map(|_| ())
    }
}

#[test]
fn clients_that_expect_tls_get_it() {
    let (files, issuer, stranger) = (Files::new(), issuer(), issuer());
    let (cert, key) = files.identity("server", &issuer);
    let tls = ServerTls::open(&cert, &key).expect("files");
    let secured = secured(&options().tls(tls));
    let ca = |issuer: &Issuer| {
        let path = files.write("ca.pem", &issuer.pem());
        ClientOptions::new().tls(ClientTls::open(&path).expect("a file"))
    };
    let client = secured.connect("grpcs", &ca(&issuer)).expect("a client");
    secured.put(&client).expect("written");
    let error = secured.connect("grpcs", &ca(&stranger)).expect_err("another issuer");
    assert_eq!(error.code(), "transport");
    for part in ["its issuer is not trusted", "ca.pem were used", "--tls-ca"] {
        assert!(error.message().contains(part), "{error}");
    }
    // A client without TLS can connect, but not call.
    let plain = secured.connect("grpc", &ClientOptions::new());
    let refused = plain.and_then(|client| secured.put(&client)).expect_err("no TLS");
    assert_eq!(refused.code(), "transport");
    let files_left = secured.folder.path().join("store");
    assert!(files_left.exists());
}

/// `openssl req -x509` makes one. The message was "Other(OtherError(CaUsedAsEndEntity))".
#[test]
fn the_error_for_a_ca_certificate_as_server_certificate_has_advice() {
    let files = Files::new();
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let cert = params.self_signed(&key).expect("a certificate");
    let key = files.write("ca.key", &key.serialize_pem());
    let cert = files.write("ca.pem", &cert.pem());
    let secured = secured(&options().tls(ServerTls::open(&cert, &key).expect("files")));
    let trusting = ClientOptions::new().tls(ClientTls::open(&cert).expect("a file"));
    let error = secured.connect("grpcs", &trusting).expect_err("a CA");
    let reason = "the server's certificate was refused: it is the certificate of a CA; expected";
    assert!(error.message().contains(reason) && error.message().contains("CA:FALSE"), "{error}");
}

#[test]
fn errors_for_refused_server_certificates_have_advice() {
    let (files, issuer) = (Files::new(), issuer());
    let ca = files.write("ca.pem", &issuer.pem());
    let trusting = ClientOptions::new().tls(ClientTls::open(&ca).expect("a file"));
    for (host, valid, reason, remedy) in [
        (
            "localhost",
            EXPIRED,
            "it has expired; renew it at the server, or set the clock of this machine",
            "",
        ),
        (
            "localhost",
            FUTURE,
            "it is not valid yet; check the clocks of this machine and of its issuer",
            "",
        ),
        (
            "db.example.org",
            VALID,
            "it is for another name than that of the address",
            "use a name that the certificate has",
        ),
    ] {
        let (cert, key) = files.identity_for(host, valid, "server", &issuer);
        let secured = secured(&options().tls(ServerTls::open(&cert, &key).expect("files")));
        let error = secured.connect("grpcs", &trusting).expect_err(reason);
        let port = secured.server.addresses()[0].port();
        let refused = "the server's certificate was refused";
        let expected = format!("grpcs://localhost:{port}: {refused}: {reason}");
        let message = error.message();
        assert!(message.starts_with(&expected) && message.contains(remedy), "{error}");
        assert!(message.lines().count() == 1 && error.code() == "transport", "{error}");
    }
    let (cert, key) = files.identity_for("db.example.org", VALID, "server", &issuer);
    let secured = secured(&options().tls(ServerTls::open(&cert, &key).expect("files")));
    let tls = ClientTls::open(&ca).expect("a file").name("db.example.org");
    let client = secured.connect("grpcs", &ClientOptions::new().tls(tls)).expect("the name");
    secured.put(&client).expect("written");
}

#[test]
fn errors_for_clients_without_an_accepted_certificate_have_advice() {
    let (files, issuer, stranger) = (Files::new(), issuer(), issuer());
    let ca = files.write("ca.pem", &issuer.pem());
    let (cert, key) = files.identity("server", &issuer);
    let tls = ServerTls::open(&cert, &key).expect("files").client_ca(&ca).expect("a file");
    let secured = secured(&options().tls(tls));
    let without = ClientTls::open(&ca).expect("a file");
    let with = |valid, issuer| {
        let (cert, key) = files.identity_for("localhost", valid, "client", issuer);
        without.clone().identity(&cert, &key).expect("files")
    };
    let (missing, refused) = (
        "the server requires a client certificate; name one and its key (--tls-cert and --tls-key",
        "the server refused the client's certificate: expected one that is valid now and signed by",
    );
    for (tls, reason) in [
        (without.clone(), missing),
        (with(VALID, &stranger), refused),
        (with(EXPIRED, &issuer), refused),
        (with(FUTURE, &issuer), refused),
    ] {
        let client = secured.connect("grpcs", &ClientOptions::new().tls(tls));
        let error = client.and_then(|client| secured.put(&client)).expect_err(reason);
        assert!(error.message().contains(reason), "{error}");
        assert!(error.message().lines().count() == 1 && error.code() == "transport", "{error}");
    }
}

#[test]
fn clients_need_a_certificate_if_the_server_requires_one() {
    let (files, issuer, stranger) = (Files::new(), issuer(), issuer());
    let ca = files.write("ca.pem", &issuer.pem());
    let (cert, key) = files.identity("server", &issuer);
    let tls = ServerTls::open(&cert, &key).expect("files").client_ca(&ca).expect("a file");
    let secured = secured(&options().tls(tls));
    let with = |issuer: &Issuer| {
        let (cert, key) = files.identity("client", issuer);
        let tls = ClientTls::open(&ca).expect("a file").identity(&cert, &key).expect("files");
        ClientOptions::new().tls(tls)
    };
    let client = secured.connect("grpcs", &with(&issuer)).expect("a client");
    secured.put(&client).expect("written");
    let without = ClientOptions::new().tls(ClientTls::open(&ca).expect("a file"));
    for options in [without, with(&stranger)] {
        let refused = secured.connect("grpcs", &options);
        let refused = refused.and_then(|client| secured.put(&client)).expect_err("no certificate");
        assert_eq!(refused.code(), "transport");
    }
}

#[test]
fn errors_name_invalid_files() {
    let (files, issuer) = (Files::new(), issuer());
    let (cert, key) = files.identity("server", &issuer);
    let (_, other) = files.identity("other", &issuer);
    let empty = files.write("empty.pem", "nothing");
    let missing = empty.with_file_name("missing.pem");
    let encrypted =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let encrypted = files.write("encrypted.key", encrypted);
    let chain = "expected a certificate chain in PEM (BEGIN CERTIFICATE), ";
    let private = "expected a private key in PEM (PKCS#8 BEGIN PRIVATE KEY, SEC1 BEGIN EC PRIVATE \
                   KEY or PKCS#1 BEGIN RSA PRIVATE KEY), ";
    for (cert, key, file, expected, found) in [
        (&missing, &key, "missing.pem", chain, "but there is no such file; check the path"),
        (&cert, &missing, "missing.pem", private, "but there is no such file; check the path"),
        (&empty, &key, "empty.pem", chain, "found 7 bytes that are not PEM"),
        (&cert, &empty, "empty.pem", private, "found 7 bytes that are not PEM"),
        (&key, &key, "server.key", chain, "found a private key; are certificate and key"),
        (&cert, &cert, "server.pem", private, "found a certificate; are certificate and key"),
        (&cert, &encrypted, "encrypted.key", private, "found an encrypted key"),
        (&cert, &other, "other.key", "expected the private key of ", ""),
    ] {
        let problem = format!("{file}: {expected}{found}");
        let error = ServerTls::open(cert, key).expect_err(&problem).to_string();
        assert!(error.contains(&problem), "{error}");
    }
    let error = ServerTls::open(&cert, &other).expect_err("another key").to_string();
    let pair = format!("the private key of {}, found that of another", cert.display());
    assert!(error.contains(&pair) && error.contains("; name the key that"), "{error}");
    let mixed = ClientTls::open(&cert).expect("a file").identity(&cert, &other);
    assert!(mixed.expect_err("a key of another").to_string().contains("other.key: expected"));
}

#[test]
fn tokens_allow_reading_or_writing() {
    let tokens = Tokens::parse("token app write >robin\ntoken page read >wren\n").expect("tokens");
    let secured = secured(&options().tokens(tokens));
    let connect = |token: Option<&str>| {
        let options = ClientOptions::new();
        let options = token.map_or(options.clone(), |token| options.token(token));
        secured.connect("grpc", &options).expect("a client")
    };
    secured.put(&connect(Some("robin"))).expect("written");
    let reader = connect(Some("wren"));
    let (runtime, forbidden) = (&secured.runtime, is("forbidden", 7));
    assert!(runtime.block_on(reader.get(TABLE, b"a")).expect("read").is_some());
    assert_eq!(code(secured.put(&reader)), forbidden);
    let writer = runtime.block_on(reader.batch_writer(&BatchWriterOptions::new()));
    assert_eq!(code(writer), forbidden);
    let batch = runtime.block_on(reader.write_batch(Batch::new().delete(TABLE, b"a")));
    assert_eq!(code(batch), forbidden);
    for token in [None, Some("robi"), Some("eagle")] {
        let stranger = connect(token);
        let got = runtime.block_on(stranger.get(TABLE, b"a"));
        assert_eq!(code(got), is("unauthenticated", 16), "{token:?}");
    }
    assert!(runtime.block_on(reader.get(TABLE, b"a")).expect("read").is_some());
}

#[test]
fn health_and_reflection_need_no_token() {
    let tokens = Tokens::parse("token app write >robin").expect("tokens");
    let secured = secured(&options().tokens(tokens));
    let uri = format!("http://{}", secured.server.addresses()[0]);
    secured.runtime.block_on(async {
        let channel = Channel::from_shared(uri).expect("an address").connect().await;
        let channel = channel.expect("a server");
        let service = "nuthatch.store.v1.Store".to_owned();
        let mut health = HealthClient::new(channel.clone());
        for service in ["", &service] {
            let request = HealthCheckRequest { service: service.to_owned() };
            let answer = health.check(request).await.expect("an answer");
            assert_eq!(answer.into_inner().status, 1, "{service} serves");
        }
        let request = ServerReflectionRequest {
            host: String::new(),
            message_request: Some(MessageRequest::FileContainingSymbol(service)),
        };
        let mut reflection = ServerReflectionClient::new(channel);
        let answers = reflection.server_reflection_info(tokio_stream::iter([request])).await;
        let answer = answers.expect("an answer").into_inner().message().await;
        match answer.expect("an answer").expect("an answer").message_response {
            Some(MessageResponse::FileDescriptorResponse(found)) => {
                let file = found.file_descriptor_proto.concat();
                let comment = b"Returns the value of a key.";
                let told = file.windows(comment.len()).any(|part| part == comment);
                assert!(told, "with its comments");
            }
            other => panic!("expected a file, found {other:?}"),
        }
    });
}

#[test]
fn addresses_that_other_machines_reach_need_tls_and_a_login() {
    let (files, issuer) = (Files::new(), issuer());
    let ca = files.write("ca.pem", &issuer.pem());
    let (cert, key) = files.identity("server", &issuer);
    let tls = || ServerTls::open(&cert, &key).expect("files");
    let tokens = || Tokens::parse("token app write >robin").expect("tokens");
    let open = || Options::new(vec!["0.0.0.0:0".parse().expect("an address")]);
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path().join("store"), &StoreOptions::new()).expect("a store");
    let start = |options: &Options| Server::start(store.clone(), options);
    for (options, problem) in [
        (open(), "expected TLS, found none"),
        (open().tokens(tokens()), "expected TLS, found none"),
        (open().tls(tls()), "expected tokens, or certificates of clients, found none"),
        (Options::new(Vec::new()), "expected an address to listen on, found none"),
    ] {
        let error = start(&options).expect_err(problem).to_string();
        assert!(error.ends_with(problem), "{error}");
    }
    for options in [
        open().tls(tls()).tokens(tokens()),
        open().tls(tls().client_ca(&ca).expect("a file")),
        open().insecure(true),
    ] {
        start(&options).expect("a server");
    }
}
