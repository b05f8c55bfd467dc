package io.nuthatch.rx.remote;

import java.net.ConnectException;
import java.net.UnknownHostException;
import java.security.cert.CertPathBuilderException;
import java.security.cert.CertPathValidatorException;
import java.security.cert.CertificateExpiredException;
import java.security.cert.CertificateNotYetValidException;
import java.util.Locale;
import java.util.Optional;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** Describes in one line why a connection failed, and what to do about it. */
final class Reasons {

  private static final String REFUSED = "the server's certificate was refused: ";

  /** The prefix that Netty adds to the text of a system error. */
  private static final Pattern SYSTEM_CALL =
      Pattern.compile("[A-Za-z]+\\(\\.\\.\\) failed(?: with error\\(-?[0-9]+\\))?: ");

  private static final Pattern CLIENT_CERTIFICATE_ALERT =
      Pattern.compile(
          "ALERT.*(UNKNOWN_CA|BAD_CERTIFICATE|CERTIFICATE_UNKNOWN|CERTIFICATE_EXPIRED"
              + "|DECRYPT_ERROR)");

  private Reasons() {}

  /** Returns the reason from the causes of a failed call, if it is known. */
  static Optional<String> of(Throwable cause) {
    return causes(cause).map(Reasons::reason).flatMap(Optional::stream).findFirst();
  }

  private static Stream<Throwable> causes(Throwable first) {
    return Stream.iterate(first, each -> each != null, Throwable::getCause).limit(20);
  }

  private static Optional<String> reason(Throwable thrown) {
    var text = String.valueOf(thrown.getMessage());
    return Optional.ofNullable(
        switch (thrown) {
          case CertificateExpiredException expired ->
              REFUSED + "it has expired; renew it at the server, or set the clock of this machine";
          case CertificateNotYetValidException early ->
              REFUSED + "it is not valid yet; check the clocks of this machine and of its issuer";
          case CertPathBuilderException unknown -> REFUSED + issuer();
          case CertPathValidatorException failed
              when failed.getReason() == CertPathValidatorException.BasicReason.INVALID_SIGNATURE ->
              // A signature by another issuer of the same name is invalid.
              REFUSED + issuer();
          case ConnectException refused ->
              "could not connect: " + system(text) + "; is the server running?";
          case UnknownHostException unknown ->
              "could not connect: unknown host: " + system(text) + "; check the address";
          default -> byText(text);
        });
  }

  private static String issuer() {
    return "its issuer is not trusted; name a file with the certificate of the issuer (PEM) with "
        + "ConnectOptions.trusted. Without it the trust store of the Java runtime is used (system "
        + "property javax.net.ssl.trustStore)";
  }

  /** Returns the reason for exceptions of Netty and OpenSSL, which differ by their texts alone. */
  private static String byText(String text) {
    if (text.startsWith("No subject alternative") || text.startsWith("No name matching")) {
      return REFUSED
          + "it is for another name than that of the address; connect to a name that it has, or "
          + "have it issued for this one ("
          + system(text)
          + ")";
    }
    if (text.contains("First received frame was not SETTINGS")) {
      return "what the server sent is not HTTP/2; if the server has TLS, use grpcs://";
    }
    var alert = text.toUpperCase(Locale.ROOT).replace(' ', '_');
    if (alert.contains("CERTIFICATE_REQUIRED")) {
      return "the server requires a client certificate from an issuer that it trusts; name one and "
          + "its key with ConnectOptions.identity";
    }
    if (CLIENT_CERTIFICATE_ALERT.matcher(alert).find()) {
      return "the server refused the client's certificate: it must be signed by an issuer that the "
          + "server trusts, and be valid now; name another one with ConnectOptions.identity";
    }
    if (alert.contains("WRONG_VERSION_NUMBER") || alert.contains("NOT_AN_SSL/TLS_RECORD")) {
      return "the server does not speak TLS; expected grpc:// as the address";
    }
    if (text.contains("Connection reset") || text.contains("Broken pipe")) {
      return "the connection was lost: "
          + system(text)
          + "; was the server stopped, or does it not speak TLS (then use grpc://)?";
    }
    return null;
  }

  /** Returns the first line of a text, without the name of the system call. */
  private static String system(String text) {
    return SYSTEM_CALL.matcher(text.lines().findFirst().orElse("")).replaceFirst("");
  }
}
