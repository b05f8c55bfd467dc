package io.nuthatch.rx.remote;

import io.nuthatch.rx.StoreException;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.InvalidKeyException;
import java.security.KeyFactory;
import java.security.NoSuchAlgorithmException;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.Signature;
import java.security.SignatureException;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.InvalidKeySpecException;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.List;
import java.util.regex.Pattern;

/**
 * Reads certificates and private keys (PEM). Files are checked before they are used, so that an
 * error names the file, what was expected and found, and what to do.
 */
final class TlsFiles {

  private static final String CERTIFICATES = "certificates";
  private static final String KEY = "a private key";
  private static final Pattern PKCS8 =
      Pattern.compile("-----BEGIN PRIVATE KEY-----([^-]*)-----END PRIVATE KEY-----");

  private TlsFiles() {}

  /** Reads the certificates of a file, at least one. */
  static List<X509Certificate> certificates(Path file, String option) {
    var text = read(file, CERTIFICATES, option);
    if (!text.contains("-----BEGIN CERTIFICATE-----")) {
      throw refuse(file, "expected certificates in PEM, found " + found(text, "CERTIFICATE"), null);
    }
    try {
      var factory = CertificateFactory.getInstance("X.509");
      return factory.generateCertificates(new ByteArrayInputStream(latin(text))).stream()
          .map(X509Certificate.class::cast)
          .toList();
    } catch (GeneralSecurityException thrown) {
      var problem = "expected certificates in PEM, found one that is damaged: ";
      throw refuse(file, problem + thrown.getMessage() + "; copy the file again", thrown);
    }
  }

  /** Reads the private key of a certificate, which was read from another file. */
  static PrivateKey key(Path file, X509Certificate certificate, Path of, String option) {
    var text = read(file, KEY, option);
    var pem = PKCS8.matcher(text);
    if (!pem.find()) {
      var problem = "expected a private key in PEM, found " + found(text, "PRIVATE KEY");
      throw refuse(file, problem, null);
    }
    byte[] encoded;
    try {
      encoded = Base64.getMimeDecoder().decode(pem.group(1));
    } catch (IllegalArgumentException thrown) {
      var problem = "expected a private key in PEM, found one that is damaged: ";
      throw refuse(file, problem + thrown.getMessage() + "; copy the file again", thrown);
    }
    var owner = certificate.getPublicKey();
    Throwable cause = null;
    try {
      var key =
          KeyFactory.getInstance(owner.getAlgorithm())
              .generatePrivate(new PKCS8EncodedKeySpec(encoded));
      if (isPair(key, owner)) {
        return key;
      }
    } catch (InvalidKeySpecException | InvalidKeyException | SignatureException other) {
      // A key of another algorithm, or of another length.
      cause = other;
    } catch (NoSuchAlgorithmException unknown) {
      var problem = "the Java runtime has no keys of the algorithm " + owner.getAlgorithm();
      throw refuse(file, problem + "; expected RSA, EC or EdDSA", unknown);
    }
    var problem =
        "expected the private key of %s, found that of another certificate; "
            + "pass the key that this certificate was requested with to %s";
    throw refuse(file, problem.formatted(of, option), cause);
  }

  /** Returns whether a public key verifies what a private key signs. */
  private static boolean isPair(PrivateKey key, PublicKey owner)
      throws NoSuchAlgorithmException, InvalidKeyException, SignatureException {
    var algorithm =
        switch (owner.getAlgorithm()) {
          case "RSA" -> "SHA256withRSA";
          case "EC" -> "SHA256withECDSA";
          case "EdDSA" -> "EdDSA";
          default -> null;
        };
    if (algorithm == null) {
      // The server checks this, too.
      return true;
    }
    var text = latin("nuthatch");
    var signature = Signature.getInstance(algorithm);
    signature.initSign(key);
    signature.update(text);
    var signed = signature.sign();
    signature.initVerify(owner);
    signature.update(text);
    return signature.verify(signed);
  }

  private static String read(Path file, String expected, String option) {
    try {
      // Decoded as Latin-1, so that a file of any bytes can be read.
      return Files.readString(file, StandardCharsets.ISO_8859_1);
    } catch (NoSuchFileException missing) {
      var problem = "expected %s in PEM, found no such file; check the path given to %s";
      throw refuse(file, problem.formatted(expected, option), missing);
    } catch (IOException thrown) {
      var problem = "expected %s in PEM, but the file cannot be read: %s";
      throw refuse(file, problem.formatted(expected, thrown), thrown);
    }
  }

  /** Returns what a file has in place of PEM with a label, and what to do about it. */
  private static String found(String text, String label) {
    if (text.contains("-----BEGIN ENCRYPTED PRIVATE KEY")) {
      return "an encrypted key; `openssl pkey -in FILE -out PLAIN` decrypts it";
    }
    if (label.equals("PRIVATE KEY") && text.contains(" PRIVATE KEY-----")) {
      return "a key in another format than PKCS #8; `openssl pkey -in FILE -out NEW` converts it";
    }
    if (text.contains("PRIVATE KEY-----")) {
      return "a private key; were certificate and key swapped?";
    }
    if (text.contains("-----BEGIN CERTIFICATE")) {
      return "certificates; were certificate and key swapped?";
    }
    if (text.startsWith("0")) {
      return "DER; `openssl x509 -inform der` or `openssl pkey -inform der` converts it";
    }
    return "none; such a file has a line `-----BEGIN " + label + "-----`";
  }

  private static byte[] latin(String text) {
    return text.getBytes(StandardCharsets.ISO_8859_1);
  }

  private static StoreException refuse(Path file, String problem, Throwable cause) {
    return StoreException.of("options", file + ": " + problem, cause);
  }
}
