import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.KeyValue;
import io.lettuce.core.LettuceFutures;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScanArgs;
import io.lettuce.core.ScanIterator;
import io.lettuce.core.SetArgs;
import io.lettuce.core.TransactionResult;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.protocol.ProtocolVersion;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Lettuce, with both protocols. */
class LettuceTest {
    private static final RedisURI ADDRESS =
            RedisURI.builder()
                    .withHost(Addresses.host("NUTHATCH_RESP"))
                    .withPort(Addresses.port("NUTHATCH_RESP"))
                    .withClientName("given")
                    .build();

    private interface Body {
        void run(StatefulRedisConnection<String, String> connection, RedisClient client);
    }

    /** Runs a test with a client of this protocol, and an empty server. */
    private static void with(ProtocolVersion version, Body body) {
        try (RedisClient client = RedisClient.create(ADDRESS)) {
            client.setOptions(ClientOptions.builder().protocolVersion(version).build());
            try (var connection = client.connect()) {
                connection.sync().flushall();
                body.run(connection, client);
            }
        }
    }

    @ParameterizedTest
    @EnumSource
    void values(ProtocolVersion version) {
        with(version, (connection, client) -> {
            RedisCommands<String, String> redis = connection.sync();
            assertEquals("OK", redis.set("key", "Grüße", SetArgs.Builder.ex(100)));
            assertEquals("Grüße", redis.get("key"));
            assertNull(redis.get("nobody"));
            assertNull(redis.set("key", "x", SetArgs.Builder.nx()));
            assertEquals("Grüße", redis.setGet("key", "x", SetArgs.Builder.keepttl()));
            assertTrue(redis.ttl("key") > 0);
            assertEquals(3, redis.append("key", "yz"));
            assertEquals(42, redis.incrby("n", 42));
            assertEquals(42.5, redis.incrbyfloat("n", 0.5));
            assertEquals(0, redis.setbit("bits", 9, 1));
            assertEquals(9, redis.bitpos("bits", true));
            assertEquals(true, redis.expire("key", 1000));
            assertEquals(true, redis.persist("key"));
            assertEquals("xyz", redis.getdel("key"));
            assertThrows(RedisCommandExecutionException.class, () -> redis.incr("n"));
            var unknown =
                    assertThrows(
                            RedisCommandExecutionException.class, () -> redis.lpush("list", "1"));
            assertTrue(unknown.getMessage().contains("unknown command"), unknown.getMessage());
        });
    }

    @ParameterizedTest
    @EnumSource
    void bytes(ProtocolVersion version) {
        byte[] value = new byte[60_000];
        IntStream.range(0, value.length).forEach(at -> value[at] = (byte) at);
        with(version, (connection, client) -> {
            try (var bytes = client.connect(ByteArrayCodec.INSTANCE)) {
                bytes.sync().set(new byte[] {0, 13, 10, -1}, value);
                assertArrayEquals(value, bytes.sync().get(new byte[] {0, 13, 10, -1}));
            }
        });
    }

    @ParameterizedTest
    @EnumSource
    void manyKeysAtOnce(ProtocolVersion version) {
        Map<String, String> rows =
                IntStream.range(0, 2000)
                        .boxed()
                        .collect(Collectors.toMap(n -> "key:" + n, n -> "value " + n));
        with(version, (connection, client) -> {
            RedisCommands<String, String> redis = connection.sync();
            assertEquals("OK", redis.mset(rows));
            var found = redis.mget(rows.keySet().toArray(String[]::new));
            assertEquals(rows, found.stream().collect(
                    Collectors.toMap(KeyValue::getKey, KeyValue::getValue)));
            var scanned = new HashSet<String>();
            var arguments = ScanArgs.Builder.matches("key:*").limit(100);
            ScanIterator.scan(redis, arguments).forEachRemaining(scanned::add);
            assertEquals(rows.keySet(), scanned);
            // Sent without waiting, answered in order.
            List<RedisFuture<Long>> futures = new ArrayList<>();
            for (int n = 0; n < 1000; n++) {
                futures.add(connection.async().incr("n"));
            }
            RedisFuture<?>[] all = futures.toArray(RedisFuture[]::new);
            assertTrue(LettuceFutures.awaitAll(1, TimeUnit.MINUTES, all));
            assertEquals(1000, futures.get(999).toCompletableFuture().join());
        });
    }

    @ParameterizedTest
    @EnumSource
    void transactions(ProtocolVersion version) {
        with(version, (connection, client) -> {
            RedisCommands<String, String> redis = connection.sync();
            redis.multi();
            redis.set("a", "1");
            redis.incr("a");
            assertEquals(2L, redis.exec().<Long>get(1));
            try (var other = client.connect()) {
                redis.watch("n");
                other.sync().set("n", "theirs");
                redis.multi();
                redis.set("n", "mine");
                TransactionResult conflict = redis.exec();
                assertTrue(conflict.wasDiscarded());
                assertEquals("theirs", redis.get("n"));
            }
        });
    }

    @ParameterizedTest
    @EnumSource
    void whatClientsAskOfAServer(ProtocolVersion version) {
        with(version, (connection, client) -> {
            RedisCommands<String, String> redis = connection.sync();
            assertEquals("PONG", redis.ping());
            assertEquals("given", redis.clientGetname());
            assertTrue(redis.clientInfo().contains("lib-name=Lettuce"), redis.clientInfo());
            assertEquals(Map.of("maxmemory", "268435456"), redis.configGet("maxmemory"));
            assertTrue(redis.info("server").contains("redis_mode:standalone"));
            assertEquals(redis.commandCount(), redis.command().size());
        });
    }
}
