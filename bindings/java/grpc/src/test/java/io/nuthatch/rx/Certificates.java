package io.nuthatch.rx;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.util.Base64;

/** A certificate that vouches for itself, and its key, in files (PEM). */
record Certificates(Path certificate, Path key) {

  private static final String SECRET = "of-a-test";

  static Certificates make(Path folder, String name)
      throws IOException, InterruptedException, GeneralSecurityException {
    var keys = folder.resolve(name + ".p12");
    var tool = Path.of(System.getProperty("java.home"), "bin", "keytool").toString();
    var process =
        new ProcessBuilder(
                tool, "-genkeypair", "-alias", name, "-keyalg", "EC", "-groupname", "secp256r1",
                "-dname", "CN=" + name, "-ext", "san=dns:localhost,ip:127.0.0.1",
                "-validity", "30", "-keystore", keys.toString(), "-storepass", SECRET)
            .inheritIO()
            .start();
    if (process.waitFor() != 0) {
      throw new IOException("keytool failed");
    }
    var store = KeyStore.getInstance(keys.toFile(), SECRET.toCharArray());
    var certificate = folder.resolve(name + ".pem");
    var key = folder.resolve(name + ".key");
    write(certificate, "CERTIFICATE", store.getCertificate(name).getEncoded());
    write(key, "PRIVATE KEY", store.getKey(name, SECRET.toCharArray()).getEncoded());
    return new Certificates(certificate, key);
  }

  private static void write(Path file, String kind, byte[] bytes) throws IOException {
    var text = Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(bytes);
    var pem = "-----BEGIN %s-----%n%s%n-----END %s-----%n".formatted(kind, text, kind);
    Files.writeString(file, pem);
  }
}
