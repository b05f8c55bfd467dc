package io.nuthatch.rx;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;

/**
 * How a remote store is reached.
 *
 * @param token what the server knows the client by; not sent without TLS to another machine
 * @param trusted a file of certificates (PEM) that the server's must be signed by, for {@code
 *     grpcs://}. If it is empty, the certificates that the Java runtime trusts are used: those in
 *     {@code lib/security/cacerts} of its folder, or in the trust store that the system property
 *     {@code javax.net.ssl.trustStore} names. Those of the operating system are not used
 * @param identity the client's own certificate and key (PKCS #8), for a server that requires them
 * @param deadline how long a call that is no stream may take; empty for any time
 * @param tries how often a read, or what was never sent, is tried again; with 0, watches and
 *     streams of writes do not reconnect either
 * @param reconnect how long a watch, or a stream of writes of which the server has seen nothing
 *     unanswered, tries to reach the server again after it was lost. The exception after the last
 *     attempt names the time
 * @param messageBytes the longest message that is taken
 */
public record ConnectOptions(
    Optional<String> token,
    Optional<Path> trusted,
    Optional<Identity> identity,
    Optional<Duration> deadline,
    int tries,
    Duration reconnect,
    int messageBytes) {

  private static final ConnectOptions DEFAULTS =
      new ConnectOptions(
          Optional.empty(),
          Optional.empty(),
          Optional.empty(),
          Optional.of(Duration.ofSeconds(30)),
          4,
          Duration.ofSeconds(30),
          64 << 20);

  /** A client's certificate and its key, in files (PEM). */
  public record Identity(Path certificate, Path key) {}

  /** Checks the numbers. */
  public ConnectOptions {
    StoreException.check(tries >= 0, "tries", "0 or more", tries);
    StoreException.check(!reconnect.isNegative(), "reconnect", "0 or more", reconnect);
    StoreException.check(messageBytes > 0, "messageBytes", "1 byte or more", messageBytes);
  }

  /**
   * No token, 30 seconds for a call that is no stream, four more tries of a read, 30 seconds to
   * reconnect.
   */
  public static ConnectOptions defaults() {
    return DEFAULTS;
  }

  /** What the server knows the client by. */
  public ConnectOptions token(String secret) {
    return new ConnectOptions(
        Optional.of(secret), trusted, identity, deadline, tries, reconnect, messageBytes);
  }

  /**
   * A file of certificates (PEM) that the server's must be signed by, in place of those that the
   * Java runtime trusts.
   */
  public ConnectOptions trusted(Path certificates) {
    return new ConnectOptions(
        token, Optional.of(certificates), identity, deadline, tries, reconnect, messageBytes);
  }

  /** The client's own certificate and its key, in files (PEM). */
  public ConnectOptions identity(Path certificate, Path key) {
    var shown = Optional.of(new Identity(certificate, key));
    return new ConnectOptions(token, trusted, shown, deadline, tries, reconnect, messageBytes);
  }

  /** How long a call that is no stream may take. */
  public ConnectOptions deadline(Duration most) {
    var limit = Optional.of(most);
    return new ConnectOptions(token, trusted, identity, limit, tries, reconnect, messageBytes);
  }

  /** How often a read, or what was never sent, is tried again. */
  public ConnectOptions tries(int more) {
    return new ConnectOptions(token, trusted, identity, deadline, more, reconnect, messageBytes);
  }

  /** How long a watch or a stream of writes tries to reach a server again that was lost. */
  public ConnectOptions reconnect(Duration most) {
    return new ConnectOptions(token, trusted, identity, deadline, tries, most, messageBytes);
  }

  /** The longest message that is taken, in bytes. */
  public ConnectOptions messageBytes(int most) {
    return new ConnectOptions(token, trusted, identity, deadline, tries, reconnect, most);
  }
}
