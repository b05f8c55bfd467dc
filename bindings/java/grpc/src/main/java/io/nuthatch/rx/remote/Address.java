package io.nuthatch.rx.remote;

import io.nuthatch.rx.StoreException;
import java.util.regex.Pattern;

/**
 * The address of a store server.
 *
 * @param text the address as the caller gave it
 * @param isTls whether the connection uses TLS
 * @param host a name or an IP address; IPv6 without brackets
 */
record Address(String text, boolean isTls, String host, int port) {

  static final int DEFAULT_PORT = 7380;

  private static final Pattern PLACE =
      Pattern.compile("(?:\\[([0-9A-Fa-f:.]+)]|([A-Za-z0-9._-]+))(?::([0-9]{1,5}))?/?");
  private static final Pattern LOOPBACK = Pattern.compile("127(\\.[0-9]{1,3}){3}|::1|localhost");

  static Address parse(String text) {
    var scheme = text.startsWith("grpcs://") ? "grpcs://" : "grpc://";
    if (!text.startsWith(scheme)) {
      throw wrong(text, "expected grpc://host:port or grpcs://host:port");
    }
    var place = PLACE.matcher(text.substring(scheme.length()));
    if (!place.matches()) {
      throw wrong(text, "expected a host and a port, and nothing else");
    }
    int port = place.group(3) == null ? DEFAULT_PORT : Integer.parseInt(place.group(3));
    if (port < 1 || port > 65535) {
      throw wrong(text, "expected a port from 1 to 65535, found " + port);
    }
    var host = place.group(1) != null ? place.group(1) : place.group(2);
    return new Address(text, scheme.equals("grpcs://"), host, port);
  }

  /** Returns whether the address is certainly on this machine. */
  boolean isHere() {
    return LOOPBACK.matcher(host).matches();
  }

  /** Returns the exception for options that contradict the address. */
  StoreException wrong(String problem) {
    return wrong(text, problem);
  }

  private static StoreException wrong(String text, String problem) {
    return StoreException.of("options", text + ": " + problem);
  }
}
