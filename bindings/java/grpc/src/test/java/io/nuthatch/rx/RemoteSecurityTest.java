package io.nuthatch.rx;

import static io.nuthatch.rx.RangeTable.bytes;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Who may call, and over what. */
class RemoteSecurityTest {

  private static final ConnectOptions OPTIONS = ConnectOptions.defaults().tries(0);

  @TempDir Path folder;

  private static String failure(String address, ConnectOptions options) {
    try (var store = Store.connect(address, options)) {
      var table = store.table("rows");
      return assertThrows(
              StoreException.class, () -> table.put(bytes("a"), bytes("1")).blockingAwait())
          .code();
    }
  }

  @Test
  void tokens_say_who_may_read_and_who_may_write() throws Exception {
    var tokens = folder.resolve("tokens");
    Files.writeString(tokens, "token jay write >blue\ntoken tit read >yellow\n");
    try (var served = Served.start(folder.resolve("store"), "--tokens", tokens.toString())) {
      assertEquals("unauthenticated", failure(served.address, OPTIONS));
      assertEquals("unauthenticated", failure(served.address, OPTIONS.token("red")));
      assertEquals("no-table", failure(served.address, OPTIONS.token("yellow")));
      try (var jay = Store.connect(served.address, OPTIONS.token("blue"))) {
        jay.table("rows").put(bytes("a"), bytes("1")).blockingAwait();
      }
      assertEquals("forbidden", failure(served.address, OPTIONS.token("yellow")));
      try (var tit = Store.connect(served.address, OPTIONS.token("yellow"))) {
        assertEquals(1, tit.table("rows").count().blockingGet());
        assertEquals(1, tit.table("rows", Kind.PLAIN).count().blockingGet());
        var stamped = tit.table("rows", Kind.STAMPED).count();
        var thrown = assertThrows(StoreException.class, stamped::blockingGet);
        assertEquals("table", thrown.code());
      }
    }
  }

  @Test
  void both_sides_show_certificates_where_the_server_wants_them() throws Exception {
    var server = Certificates.make(folder, "server");
    var client = Certificates.make(folder, "client");
    try (var served =
        Served.start(
            folder.resolve("store"),
            "--tls-cert", server.certificate().toString(),
            "--tls-key", server.key().toString(),
            "--tls-client-ca", client.certificate().toString())) {
      var trusting = OPTIONS.trusted(server.certificate());
      assertTrue(served.address.startsWith("grpcs://"), served.address);
      assertEquals("unavailable", failure(served.address, OPTIONS));
      assertEquals("unavailable", failure(served.address, trusting));
      var stranger = trusting.identity(server.certificate(), server.key());
      assertEquals("unavailable", failure(served.address, stranger));
      var known = trusting.identity(client.certificate(), client.key());
      try (var store = Store.connect(served.address, known)) {
        store.table("rows").put(bytes("a"), bytes("1")).blockingAwait();
        assertEquals("a", store.table("rows").scan().blockingFirst().keyText());
      }
    }
  }

  @ParameterizedTest
  @CsvSource({
    "db:99, expected grpc://host:port or grpcs://host:port",
    "http://db, expected grpc://host:port or grpcs://host:port",
    "grpc://, expected a host and a port",
    "grpc://a b, expected a host and a port",
    "grpc://db/more, expected a host and a port",
    "grpc://me@db, expected a host and a port",
    "grpc://db:0, expected a port from 1 to 65535",
    "grpc://db:70000, expected a port from 1 to 65535",
  })
  void addresses_have_a_scheme_a_host_and_perhaps_a_port(String address, String problem) {
    var thrown = assertThrows(StoreException.class, () -> Store.connect(address, OPTIONS));
    assertEquals("options", thrown.code());
    assertTrue(thrown.getMessage().startsWith(address + ": " + problem), thrown.getMessage());
  }

  @Test
  void tokens_go_to_other_machines_with_tls_alone() {
    var options = OPTIONS.token("robin");
    for (var here : new String[] {"grpc://127.0.0.1:1", "grpc://[::1]:1", "grpc://localhost"}) {
      Store.connect(here, options).close();
    }
    Store.connect("grpcs://db", options).close();
    for (var there : new String[] {"grpc://db", "grpc://127.0.0.1.example.org", "grpc://1.2.3.4"}) {
      var thrown = assertThrows(StoreException.class, () -> Store.connect(there, options));
      assertTrue(thrown.getMessage().contains("expected grpcs://"), thrown.getMessage());
    }
  }

  private static void assertRefused(ConnectOptions options, Path file, String problem) {
    var thrown = assertThrows(StoreException.class, () -> Store.connect("grpcs://db", options));
    assertEquals("options", thrown.code());
    var message = thrown.getMessage();
    assertTrue(message.startsWith(file + ": " + problem), message);
    assertEquals(1, message.lines().count(), message);
  }

  @Test
  void certificates_that_are_none_are_told() throws Exception {
    var own = Certificates.make(folder, "own");
    var other = Certificates.make(folder, "other");
    var cert = own.certificate();
    var none = Files.writeString(folder.resolve("none"), "no certificate");
    var missing = folder.resolve("missing");
    var text = Files.readString(own.key());
    var encrypted =
        Files.writeString(
            folder.resolve("encrypted"), text.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY"));
    var old =
        Files.writeString(folder.resolve("old"), text.replace("PRIVATE KEY", "EC PRIVATE KEY"));
    var cut = Files.writeString(folder.resolve("cut"), Files.readString(cert).replace("M", "?"));
    var wanted = "expected certificates in PEM, ";
    var key = "expected a private key in PEM, ";
    assertRefused(OPTIONS.trusted(none), none, wanted + "found none; such a file has a line `---");
    assertRefused(
        OPTIONS.trusted(missing),
        missing,
        wanted + "found no such file; check the path given to ConnectOptions.trusted");
    assertRefused(OPTIONS.trusted(folder), folder, wanted + "but the file cannot be read: ");
    assertRefused(OPTIONS.trusted(own.key()), own.key(), wanted + "found a private key; were");
    assertRefused(OPTIONS.trusted(cut), cut, wanted + "found one that is damaged: ");
    assertRefused(OPTIONS.identity(none, own.key()), none, wanted + "found none; such a file has");
    assertRefused(
        OPTIONS.identity(cert, missing),
        missing,
        key + "found no such file; check the path given to ConnectOptions.identity");
    assertRefused(OPTIONS.identity(cert, none), none, key + "found none; such a file has a line");
    assertRefused(OPTIONS.identity(cert, cert), cert, key + "found certificates; were certif");
    assertRefused(
        OPTIONS.identity(cert, encrypted),
        encrypted,
        key + "found an encrypted key; `openssl pkey -in FILE -out PLAIN` decrypts it");
    assertRefused(
        OPTIONS.identity(cert, old),
        old,
        key + "found a key in another format than PKCS #8; `openssl pkey");
    assertRefused(
        OPTIONS.identity(cert, other.key()),
        other.key(),
        "expected the private key of " + cert + ", found that of another certificate; pass");
    var thrown =
        assertThrows(StoreException.class, () -> Store.connect("grpc://db", OPTIONS.trusted(none)));
    assertTrue(thrown.getMessage().contains("expected grpcs://"), thrown.getMessage());
  }
}
