package io.nuthatch.rx;

import static io.nuthatch.rx.RangeTable.bytes;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Which certificates are accepted, and what is said of those that are not. */
class RemoteCertificatesTest {

  private static final ConnectOptions OPTIONS = ConnectOptions.defaults().tries(0);

  @TempDir Path folder;

  private Served serve(Certificates own, String... more) throws Exception {
    var arguments = new ArrayList<String>();
    arguments.addAll(List.of("--tls-cert", own.certificate().toString()));
    arguments.addAll(List.of("--tls-key", own.key().toString()));
    arguments.addAll(List.of(more));
    return Served.start(folder.resolve("store"), arguments.toArray(String[]::new));
  }

  private static void put(String address, ConnectOptions options) {
    try (var store = Store.connect(address, options)) {
      store.table("rows").put(bytes("a"), bytes("1")).blockingAwait();
    }
  }

  private static void assertFails(String address, ConnectOptions options, String problem) {
    var thrown = assertThrows(StoreException.class, () -> put(address, options));
    assertTrue(thrown.getMessage().contains(problem), thrown.getMessage());
    assertEquals(1, thrown.getMessage().lines().count(), thrown.getMessage());
  }

  /** A program with the trust store of its Java runtime. Prints how a write ends. */
  static final class Client {
    public static void main(String[] arguments) {
      try {
        put(arguments[0], OPTIONS);
        System.out.println("written");
      } catch (StoreException thrown) {
        System.out.println(thrown.code() + ": " + thrown.getMessage());
      }
    }
  }

  /** Runs {@link Client} with a trust store, and returns what it prints. */
  private static String run(String address, Path trustStore, String password) throws Exception {
    var java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    var process =
        new ProcessBuilder(
                java,
                "--enable-native-access=ALL-UNNAMED",
                "-Djavax.net.ssl.trustStore=" + trustStore,
                "-Djavax.net.ssl.trustStorePassword=" + password,
                "-cp",
                System.getProperty("java.class.path"),
                Client.class.getName(),
                address)
            .redirectError(ProcessBuilder.Redirect.DISCARD)
            .start();
    try (var lines = process.inputReader()) {
      return lines.readLine();
    } finally {
      process.destroyForcibly();
    }
  }

  @Test
  void without_a_file_of_certificates_those_of_the_java_runtime_are_trusted() throws Exception {
    var name = "server";
    var server =
        Certificates.makeSigned(folder, name, Certificates.THIS_MACHINE, Certificates.VALID);
    var trusted = Certificates.trustStore(folder, name);
    try (var served = serve(server)) {
      assertEquals("written", run(served.address, trusted, Certificates.PASSWORD));
      put(served.address, OPTIONS.trusted(Certificates.authority(folder, name)));
      var refused = "the server's certificate was refused: its issuer is not trusted; name a file";
      assertFails(served.address, OPTIONS, refused);
      assertFails(served.address, OPTIONS, "with ConnectOptions.trusted. Without it the trust");
      assertFails(served.address, OPTIONS, "(system property javax.net.ssl.trustStore)");
      var stranger = Certificates.make(folder, "stranger");
      assertFails(served.address, OPTIONS.trusted(stranger.certificate()), refused);
    }
  }

  @Test
  void a_java_runtime_that_trusts_no_certificate_is_told_its_trust_store() throws Exception {
    Certificates.makeSigned(folder, "a", "dns:a", Certificates.VALID);
    var trusted = Certificates.trustStore(folder, "a");
    var missing = folder.resolve("missing");
    var expected = ": expected certificates that the Java runtime trusts, found none";
    var remedy = "set the system property javax.net.ssl.trustStore";
    var found = run("grpcs://localhost", missing, "");
    assertTrue(found.startsWith("options: " + missing + expected + " ("), found);
    assertTrue(found.contains(remedy) && found.contains("NoSuchFileException"), found);
    var wrong = run("grpcs://localhost", trusted, "wrong");
    assertTrue(wrong.startsWith("options: " + trusted + expected + " ("), wrong);
    assertTrue(wrong.contains(remedy) && wrong.contains("ConnectOptions.trusted"), wrong);
  }

  @Test
  void certificates_of_servers_are_refused_with_the_reason_and_the_remedy() throws Exception {
    var here = Certificates.THIS_MACHINE;
    record Case(String name, String names, List<String> dates, String problem) {}
    for (var each :
        List.of(
            new Case(
                "expired",
                here,
                List.of("-startdate", "-10d", "-validity", "5"),
                "it has expired; renew it at the server, or set the clock"),
            new Case(
                "future",
                here,
                List.of("-startdate", "+10d", "-validity", "5"),
                "it is not valid yet; check the clocks"),
            new Case(
                "other",
                "dns:db.example.org",
                Certificates.VALID,
                "it is for another name than that of the address; connect to a name"))) {
      var own = Certificates.makeSigned(folder, each.name, each.names, each.dates);
      var trusting = OPTIONS.trusted(Certificates.authority(folder, each.name));
      try (var served = serve(own)) {
        assertFails(
            served.address, trusting, "the server's certificate was refused: " + each.problem);
      }
    }
  }

  @Test
  void clients_without_the_right_certificate_or_scheme_are_told_what_to_use() throws Exception {
    var server = Certificates.make(folder, "server");
    var client = Certificates.make(folder, "client");
    var trusting = OPTIONS.trusted(server.certificate());
    var stranger = trusting.identity(server.certificate(), server.key());
    try (var served = serve(server, "--tls-client-ca", client.certificate().toString())) {
      var problem = "the server requires a client certificate from an issuer that it trusts; name";
      assertFails(served.address, trusting, problem);
      assertFails(served.address, stranger, problem);
      put(served.address, trusting.identity(client.certificate(), client.key()));
      var plain = served.address.replace("grpcs://", "grpc://");
      assertFails(plain, OPTIONS, "if the server has TLS, use grpcs://");
    }
    try (var served = Served.start(folder.resolve("plain"))) {
      var secure = served.address.replace("grpc://", "grpcs://");
      // The server resets the connection before or after the client has read what it sent.
      assertFails(secure, trusting, "speak TLS");
      assertFails(secure, trusting, "grpc://");
    }
  }
}
