package io.nuthatch.rx;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;

/**
 * Options for connecting to a remote store.
 *
 * @param token token that is sent with each call; never sent to another machine without TLS
 * @param trusted file with CA certificates in PEM for {@code grpcs://}. If it is empty, the
 *     certificates that the Java runtime trusts are used: those in {@code lib/security/cacerts} of
 *     its folder, or in the trust store that the system property {@code javax.net.ssl.trustStore}
 *     names. Those of the operating system are not used
 * @param identity the client's certificate and private key (PKCS #8), for a server that requires
 *     them
 * @param deadline maximum duration of a unary call, including retries; empty for no limit
 * @param tries maximum number of retries of a read, or of a write that was not sent; with 0,
 *     watches and streams of writes do not reconnect either
 * @param reconnect maximum time that a watch, or a stream of writes without outstanding
 *     acknowledgements, tries to reconnect after a lost connection. The exception after the last
 *     attempt names the time
 * @param messageBytes maximum length of a response in bytes
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

  /**
   * A client certificate and its private key.
   *
   * @param certificate file with the certificate and its chain, in PEM
   * @param key file with the private key, in PEM (PKCS #8)
   */
  public record Identity(Path certificate, Path key) {}

  /** Checks the numbers. */
  public ConnectOptions {
    StoreException.check(tries >= 0, "tries", "0 or more", tries);
    StoreException.check(!reconnect.isNegative(), "reconnect", "0 or more", reconnect);
    StoreException.check(messageBytes > 0, "messageBytes", "1 byte or more", messageBytes);
  }

  /**
   * Returns the defaults: no token, a deadline of 30 seconds for unary calls, 4 retries, 30 seconds
   * to reconnect, responses of up to 64 MiB.
   *
   * @return the default options
   */
  public static ConnectOptions defaults() {
    return DEFAULTS;
  }

  /**
   * Sets the token that is sent with each call.
   *
   * @param secret the token that authenticates the client
   * @return the changed options
   */
  public ConnectOptions token(String secret) {
    return new ConnectOptions(
        Optional.of(secret), trusted, identity, deadline, tries, reconnect, messageBytes);
  }

  /**
   * Sets the file with CA certificates (PEM) to trust instead of those that the Java runtime
   * trusts.
   *
   * @param certificates a PEM file with CA certificates
   * @return the changed options
   */
  public ConnectOptions trusted(Path certificates) {
    return new ConnectOptions(
        token, Optional.of(certificates), identity, deadline, tries, reconnect, messageBytes);
  }

  /**
   * Sets the client's certificate and its private key, in PEM files.
   *
   * @param certificate a PEM file with the certificate
   * @param key a PEM file with the key (PKCS #8)
   * @return the changed options
   */
  public ConnectOptions identity(Path certificate, Path key) {
    var given = Optional.of(new Identity(certificate, key));
    return new ConnectOptions(token, trusted, given, deadline, tries, reconnect, messageBytes);
  }

  /**
   * Sets the maximum duration of a unary call, including retries; 30 seconds by default.
   *
   * @param max maximum duration of a unary call
   * @return the changed options
   */
  public ConnectOptions deadline(Duration max) {
    var limit = Optional.of(max);
    return new ConnectOptions(token, trusted, identity, limit, tries, reconnect, messageBytes);
  }

  /**
   * Sets the maximum number of retries of a read, or of a write that was not sent; 4 by default.
   *
   * @param more maximum number of retries of a read, or of a request that was never sent
   * @return the changed options
   */
  public ConnectOptions tries(int more) {
    return new ConnectOptions(token, trusted, identity, deadline, more, reconnect, messageBytes);
  }

  /**
   * Sets the maximum time that a watch or a stream of writes tries to reconnect after a lost
   * connection; 30 seconds by default.
   *
   * @param max how long a watch or a stream of writes tries to reconnect
   * @return the changed options
   */
  public ConnectOptions reconnect(Duration max) {
    return new ConnectOptions(token, trusted, identity, deadline, tries, max, messageBytes);
  }

  /**
   * Sets the maximum length of a response in bytes; 64 MiB by default.
   *
   * @param max maximum length of a received message in bytes
   * @return the changed options
   */
  public ConnectOptions messageBytes(int max) {
    return new ConnectOptions(token, trusted, identity, deadline, tries, reconnect, max);
  }
}
