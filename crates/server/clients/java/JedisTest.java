import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.stream.IntStream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.Transaction;
import redis.clients.jedis.args.BitOP;
import redis.clients.jedis.exceptions.JedisAccessControlException;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.params.ClientKillParams;
import redis.clients.jedis.params.ScanParams;
import redis.clients.jedis.params.SetParams;
import redis.clients.jedis.resps.ScanResult;

/** Jedis, with both protocols. */
class JedisTest {
    private static final HostAndPort ADDRESS =
            new HostAndPort(Addresses.host("NUTHATCH_RESP"), Addresses.port("NUTHATCH_RESP"));

    private static DefaultJedisClientConfig.Builder config() {
        return DefaultJedisClientConfig.builder().timeoutMillis(60_000);
    }

    /** A client with this protocol, and an empty server. */
    private static Jedis connect(RedisProtocol protocol) {
        Jedis redis = new Jedis(ADDRESS, config().protocol(protocol).clientName("given").build());
        redis.flushAll();
        return redis;
    }

    @ParameterizedTest
    @EnumSource(names = {"RESP2", "RESP3"})
    void values(RedisProtocol protocol) {
        try (Jedis redis = connect(protocol)) {
            assertEquals("OK", redis.set("key", "Grüße", SetParams.setParams().ex(100)));
            assertEquals("Grüße", redis.get("key"));
            assertNull(redis.get("nobody"));
            assertNull(redis.set("key", "x", SetParams.setParams().nx()));
            assertEquals("Grüße", redis.setGet("key", "x", SetParams.setParams().keepTtl()));
            assertTrue(redis.ttl("key") > 0);
            assertEquals(3, redis.append("key", "yz"));
            assertEquals("yz", redis.getrange("key", 1, -1));
            assertEquals(3, redis.setrange("key", 1, "YZ"));
            assertEquals("xYZ", redis.getDel("key"));
            assertEquals(0, redis.exists("key", "nobody"));
            assertEquals(41, redis.incrBy("n", 41));
            assertEquals(41.5, redis.incrByFloat("n", 0.5));
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"RESP2", "RESP3"})
    void bytes(RedisProtocol protocol) {
        byte[] value = new byte[60_000];
        IntStream.range(0, value.length).forEach(at -> value[at] = (byte) at);
        try (Jedis redis = connect(protocol)) {
            for (byte[] key : List.of(new byte[0], new byte[] {0, 13, 10, -1}, value)) {
                redis.set(key, value);
                assertArrayEquals(value, redis.get(key));
                assertEquals(1, redis.del(key));
            }
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"RESP2", "RESP3"})
    void bits(RedisProtocol protocol) {
        try (Jedis redis = connect(protocol)) {
            assertEquals(false, redis.setbit("bits", 9, true));
            assertEquals(true, redis.getbit("bits", 9));
            assertEquals(1, redis.bitcount("bits"));
            assertEquals(9, redis.bitpos("bits", true));
            assertEquals(2, redis.bitop(BitOP.NOT, "not", "bits"));
            assertEquals(15, redis.bitcount("not"));
            List<Long> answers = redis.bitfield("bits", "SET", "u8", "0", "7", "GET", "u8", "0");
            assertEquals(List.of(0L, 7L), answers);
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"RESP2", "RESP3"})
    void manyKeys(RedisProtocol protocol) {
        String[] names = IntStream.range(0, 2000).mapToObj(n -> "key:" + n).toArray(String[]::new);
        try (Jedis redis = connect(protocol)) {
            String[] pairs =
                    Arrays.stream(names).flatMap(n -> Arrays.stream(new String[] {n, n}))
                            .toArray(String[]::new);
            assertEquals("OK", redis.mset(pairs));
            assertEquals(Arrays.asList(names), redis.mget(names));
            var found = new TreeSet<String>();
            String cursor = ScanParams.SCAN_POINTER_START;
            do {
                var params = new ScanParams().match("key:*").count(100);
                ScanResult<String> part = redis.scan(cursor, params);
                found.addAll(part.getResult());
                cursor = part.getCursor();
            } while (!cursor.equals(ScanParams.SCAN_POINTER_START));
            assertEquals(new TreeSet<>(Arrays.asList(names)), found);
            assertEquals(2000, redis.unlink(names));
            assertEquals(0, redis.dbSize());
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"RESP2", "RESP3"})
    void expiry(RedisProtocol protocol) {
        try (Jedis redis = connect(protocol)) {
            redis.set("key", "value");
            assertEquals(-1, redis.ttl("key"));
            assertEquals(1, redis.pexpire("key", 60_000));
            assertTrue(redis.pttl("key") > 0);
            assertEquals(1, redis.expireAt("key", 4_102_444_800L));
            assertEquals(4_102_444_800L, redis.expireTime("key"));
            assertEquals(1, redis.persist("key"));
            assertTrue(redis.copy("key", "copy", false));
            assertEquals("OK", redis.rename("copy", "moved"));
            assertEquals(1, redis.expireAt("moved", 1));
            assertNull(redis.get("moved"));
            assertThrows(JedisDataException.class, () -> redis.rename("nobody", "somebody"));
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"RESP2", "RESP3"})
    void pipelines(RedisProtocol protocol) {
        try (Jedis redis = connect(protocol)) {
            Pipeline pipeline = redis.pipelined();
            Response<Long> sum = null;
            for (int n = 0; n < 1000; n++) {
                sum = pipeline.incrBy("n", n);
            }
            pipeline.sync();
            assertEquals(1000 * 999 / 2, sum.get());
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"RESP2", "RESP3"})
    void transactions(RedisProtocol protocol) {
        try (Jedis redis = connect(protocol);
                Jedis other = new Jedis(ADDRESS, config().build())) {
            Transaction whole = redis.multi();
            whole.set("a", "1");
            Response<Long> incremented = whole.incr("a");
            whole.mget("a", "nobody");
            assertEquals(3, whole.exec().size());
            assertEquals(2, incremented.get());

            Transaction partly = redis.multi();
            partly.set("a", "text");
            partly.incr("a");
            partly.set("b", "1");
            assertInstanceOf(JedisDataException.class, partly.exec().get(1));
            assertEquals(List.of("text", "1"), redis.mget("a", "b"));

            redis.watch("n");
            other.set("n", "theirs");
            Transaction conflict = redis.multi();
            conflict.set("n", "mine");
            assertNull(conflict.exec());
            assertEquals("theirs", redis.get("n"));
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"RESP2", "RESP3"})
    void whatClientsAskOfAServer(RedisProtocol protocol) {
        try (Jedis redis = connect(protocol);
                Jedis other = new Jedis(ADDRESS, config().build())) {
            assertEquals("PONG", redis.ping());
            assertEquals("given", redis.clientGetname());
            assertTrue(redis.clientInfo().contains(" lib-name=jedis"), redis.clientInfo());
            assertTrue(redis.info("server").contains("redis_mode:standalone"));
            assertEquals(Map.of("maxmemory", "268435456"), redis.configGet("maxmemory"));
            assertEquals("OK", redis.configSet("slowlog-max-len", "128"));
            assertTrue(redis.commandList().contains("client|setinfo"));
            assertEquals("default", redis.aclWhoAmI());
            long victim = other.clientId();
            var filter = new ClientKillParams().id(String.valueOf(victim));
            assertEquals(1, redis.clientKill(filter));
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"RESP2", "RESP3"})
    void errors(RedisProtocol protocol) {
        try (Jedis redis = connect(protocol)) {
            redis.set("text", "abc");
            assertThrows(JedisDataException.class, () -> redis.incr("text"));
            var unknown = assertThrows(JedisDataException.class, () -> redis.lpush("list", "1"));
            assertTrue(unknown.getMessage().contains("unknown command"), unknown.getMessage());
            assertThrows(JedisAccessControlException.class, () -> redis.auth("nobody", "wrong"));
            assertEquals("PONG", redis.ping());
        }
    }

    @org.junit.jupiter.api.Test
    void aPoolThatMakesUpItsMind() throws InterruptedException {
        var pool = RedisClient.builder().hostAndPort(ADDRESS).clientConfig(config().build());
        try (RedisClient redis = pool.build()) {
            redis.flushAll();
            var threads =
                    IntStream.range(0, 8)
                            .mapToObj(n -> new Thread(() -> {
                                IntStream.range(0, 100).forEach(i -> redis.incr("n"));
                            }))
                            .toList();
            threads.forEach(Thread::start);
            for (Thread thread : threads) {
                thread.join();
            }
            assertEquals("800", redis.get("n"));
        }
    }
}
