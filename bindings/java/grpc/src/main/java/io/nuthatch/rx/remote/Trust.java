package io.nuthatch.rx.remote;

import io.nuthatch.rx.StoreException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.util.List;
import java.util.Optional;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;
import javax.net.ssl.X509TrustManager;

/** The CA certificates that the client trusts. */
final class Trust {

  private static final String PROPERTY = "javax.net.ssl.trustStore";

  private Trust() {}

  /** Trusts the certificates of a PEM file, or those of the Java runtime if no file is given. */
  static TrustManager[] of(Optional<Path> trusted) {
    return trusted.map(Trust::file).orElseGet(Trust::runtime);
  }

  private static TrustManager[] file(Path file) {
    var certificates = TlsFiles.certificates(file, "ConnectOptions.trusted");
    try {
      var store = KeyStore.getInstance(KeyStore.getDefaultType());
      store.load(null, null);
      for (int i = 0; i < certificates.size(); i++) {
        store.setCertificateEntry(Integer.toString(i), certificates.get(i));
      }
      return managers(store);
    } catch (GeneralSecurityException | IOException thrown) {
      throw StoreException.of("options", file + ": not usable for TLS: " + thrown, thrown);
    }
  }

  private static TrustManager[] runtime() {
    Throwable cause = null;
    try {
      checkNamed();
      var managers = managers(null);
      for (var manager : managers) {
        if (manager instanceof X509TrustManager known && known.getAcceptedIssuers().length > 0) {
          return managers;
        }
      }
    } catch (GeneralSecurityException | IOException thrown) {
      cause = thrown;
    }
    var problem =
        "%s: expected certificates that the Java runtime trusts, found none%s; set the system "
            + "property %s to a trust store that can be read, or name a file of certificates (PEM) "
            + "with ConnectOptions.trusted";
    var why = cause == null ? "" : " (" + cause + ")";
    throw StoreException.of("options", problem.formatted(runtimeStore(), why, PROPERTY), cause);
  }

  /** Fails if the property names a file that cannot be read, which Java replaces by its own. */
  private static void checkNamed() throws IOException {
    var named = System.getProperty(PROPERTY);
    if (named != null && !named.isEmpty() && !named.equals("NONE")) {
      Files.newInputStream(Path.of(named)).close();
    }
  }

  private static TrustManager[] managers(KeyStore store) throws GeneralSecurityException {
    var factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
    factory.init(store);
    return factory.getTrustManagers();
  }

  /** Returns the file that the Java runtime reads. */
  private static Path runtimeStore() {
    var named = System.getProperty(PROPERTY);
    if (named != null) {
      return Path.of(named);
    }
    var folder = Path.of(System.getProperty("java.home"), "lib", "security");
    return List.of(folder.resolve("jssecacerts"), folder.resolve("cacerts")).stream()
        .filter(Files::exists)
        .findFirst()
        .orElse(folder.resolve("cacerts"));
  }
}
