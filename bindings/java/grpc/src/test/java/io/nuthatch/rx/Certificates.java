package io.nuthatch.rx;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;

/** A certificate and its private key, in files (PEM). */
record Certificates(Path certificate, Path key) {

  /** The password of each key store and trust store. */
  static final String PASSWORD = "of-a-test";

  private static final String AUTHORITY = "authority";
  static final String THIS_MACHINE = "dns:localhost,ip:127.0.0.1";
  static final List<String> VALID = List.of("-validity", "30");

  /** Makes a self-signed certificate for this machine. */
  static Certificates make(Path folder, String name)
      throws IOException, InterruptedException, GeneralSecurityException {
    var keys = folder.resolve(name + ".p12");
    generate(keys, name, "san=" + THIS_MACHINE, VALID);
    return export(folder, keys, name);
  }

  /**
   * Makes a certificate that is signed by an authority of its own.
   *
   * @param names the names that it is for, as keytool has them
   * @param dates options of keytool that say when it is valid
   */
  static Certificates makeSigned(Path folder, String name, String names, List<String> dates)
      throws IOException, InterruptedException, GeneralSecurityException {
    var keys = folder.resolve(name + ".p12");
    generate(keys, AUTHORITY, "bc:critical=ca:true", VALID);
    var signed = new ArrayList<>(dates);
    signed.addAll(List.of("-signer", AUTHORITY));
    generate(keys, name, "san=" + names, signed);
    return export(folder, keys, name);
  }

  /** Writes the certificate of the authority that signed the certificate of this name (PEM). */
  static Path authority(Path folder, String name) throws IOException, GeneralSecurityException {
    var authority = open(folder.resolve(name + ".p12")).getCertificate(AUTHORITY);
    return Files.writeString(folder.resolve(name + ".ca"), pem(authority));
  }

  /** Makes a trust store of Java of the authority that signed the certificate of this name. */
  static Path trustStore(Path folder, String name) throws IOException, GeneralSecurityException {
    var trusted = KeyStore.getInstance("PKCS12");
    trusted.load(null, null);
    trusted.setCertificateEntry(
        AUTHORITY, open(folder.resolve(name + ".p12")).getCertificate(AUTHORITY));
    var file = folder.resolve(name + ".trust");
    try (var out = Files.newOutputStream(file)) {
      trusted.store(out, PASSWORD.toCharArray());
    }
    return file;
  }

  private static void generate(Path keys, String name, String extension, List<String> more)
      throws IOException, InterruptedException {
    var tool = Path.of(System.getProperty("java.home"), "bin", "keytool").toString();
    var command =
        new ArrayList<>(
            List.of(
                tool, "-genkeypair", "-alias", name, "-keyalg", "EC", "-groupname", "secp256r1",
                "-dname", "CN=" + name, "-ext", extension,
                "-keystore", keys.toString(), "-storepass", PASSWORD));
    command.addAll(more);
    if (new ProcessBuilder(command).inheritIO().start().waitFor() != 0) {
      throw new IOException("keytool failed");
    }
  }

  private static KeyStore open(Path keys) throws IOException, GeneralSecurityException {
    return KeyStore.getInstance(keys.toFile(), PASSWORD.toCharArray());
  }

  private static Certificates export(Path folder, Path keys, String name)
      throws IOException, GeneralSecurityException {
    var store = open(keys);
    var certificate = folder.resolve(name + ".pem");
    var key = folder.resolve(name + ".key");
    var chain = new StringBuilder();
    for (var each : store.getCertificateChain(name)) {
      chain.append(pem(each));
    }
    Files.writeString(certificate, chain);
    Files.writeString(
        key, pem("PRIVATE KEY", store.getKey(name, PASSWORD.toCharArray()).getEncoded()));
    return new Certificates(certificate, key);
  }

  private static String pem(Certificate certificate) throws GeneralSecurityException {
    return pem("CERTIFICATE", certificate.getEncoded());
  }

  private static String pem(String kind, byte[] bytes) {
    var text = Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(bytes);
    return "-----BEGIN %s-----%n%s%n-----END %s-----%n".formatted(kind, text, kind);
  }
}
