import java.util.List;
import java.util.stream.Collectors;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.RedisClusterClient;

/** A cluster client of Jedis. */
final class JedisClient implements Workload.Client {
    private final RedisClusterClient redis;

    JedisClient(List<String> addresses) {
        redis = RedisClusterClient.builder()
                .nodes(addresses.stream().map(HostAndPort::from).collect(Collectors.toSet()))
                .clientConfig(DefaultJedisClientConfig.builder().timeoutMillis(1000).build())
                .build();
    }

    @Override
    public String get(String key) {
        return redis.get(key);
    }

    @Override
    public void set(String key, String value) {
        redis.set(key, value);
    }

    @Override
    public List<String> mget(String first, String second) {
        return redis.mget(first, second);
    }

    @Override
    public void mset(String first, String second, String value) {
        redis.mset(first, value, second, value);
    }

    @Override
    public long incrBy(String key, long amount) {
        return redis.incrBy(key, amount);
    }

    @Override
    public void close() {
        redis.close();
    }
}
