package io.nuthatch.rx.remote;

import io.grpc.ChannelCredentials;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.TlsChannelCredentials;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.shaded.io.netty.channel.ChannelOption;
import io.nuthatch.rx.ConnectOptions;
import io.nuthatch.rx.StoreException;
import java.io.IOException;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.X509Certificate;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.KeyManager;
import javax.net.ssl.KeyManagerFactory;

/** Creates gRPC channels, which connect at the first call. */
final class Channels {

  /** The flow-control window of a call: bytes that the server may send before the client reads. */
  private static final int WINDOW = 2 << 20;

  private static final int CONNECT_MS = 10_000;
  /** Maximum time for the response to a ping; after that the connection counts as lost. */
  private static final long SIGN_OF_LIFE_S = 20;

  private Channels() {}

  static ManagedChannel open(Address address, ConnectOptions options) {
    if (options.token().isPresent()) {
      checkToken(address, options.token().get());
    }
    var credentials = credentials(address, options);
    try {
      return NettyChannelBuilder.forAddress(address.host(), address.port(), credentials)
          .flowControlWindow(WINDOW)
          .maxInboundMessageSize(options.messageBytes())
          .keepAliveTime(SIGN_OF_LIFE_S, TimeUnit.SECONDS)
          .keepAliveTimeout(SIGN_OF_LIFE_S, TimeUnit.SECONDS)
          .withOption(ChannelOption.CONNECT_TIMEOUT_MILLIS, CONNECT_MS)
          .build();
    } catch (IllegalArgumentException thrown) {
      // The files were checked before: the TLS library does not support something in them.
      var problem = "TLS cannot be used with these options: " + thrown.getMessage();
      throw StoreException.of("options", address.text() + ": " + problem, thrown);
    }
  }

  private static void checkToken(Address address, String token) {
    if (!address.isTls() && !address.isHere()) {
      throw address.wrong("the token would be sent unencrypted; expected grpcs://");
    }
    if (token.isEmpty() || !token.chars().allMatch(c -> c > ' ' && c < 127)) {
      throw address.wrong("token: expected printable ASCII without spaces");
    }
  }

  private static ChannelCredentials credentials(Address address, ConnectOptions options) {
    if (!address.isTls()) {
      if (options.trusted().isPresent() || options.identity().isPresent()) {
        throw address.wrong("expected grpcs://, which certificates are for");
      }
      return InsecureChannelCredentials.create();
    }
    var tls = TlsChannelCredentials.newBuilder().trustManager(Trust.of(options.trusted()));
    options.identity().ifPresent(identity -> tls.keyManager(keys(identity)));
    return tls.build();
  }

  /** Reads the client certificate and its private key. */
  private static KeyManager[] keys(ConnectOptions.Identity identity) {
    var option = "ConnectOptions.identity";
    var chain = TlsFiles.certificates(identity.certificate(), option);
    var key = TlsFiles.key(identity.key(), chain.getFirst(), identity.certificate(), option);
    try {
      var none = new char[0];
      var store = KeyStore.getInstance("PKCS12");
      store.load(null, null);
      store.setKeyEntry("identity", key, none, chain.toArray(X509Certificate[]::new));
      var factory = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
      factory.init(store, none);
      return factory.getKeyManagers();
    } catch (GeneralSecurityException | IOException thrown) {
      var problem = identity.certificate() + ": not usable for TLS: " + thrown.getMessage();
      throw StoreException.of("options", problem, thrown);
    }
  }
}
