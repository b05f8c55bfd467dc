import io.lettuce.core.RedisURI;
import io.lettuce.core.cluster.ClusterClientOptions;
import io.lettuce.core.cluster.ClusterTopologyRefreshOptions;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.cluster.api.StatefulRedisClusterConnection;
import io.lettuce.core.cluster.api.sync.RedisAdvancedClusterCommands;
import java.time.Duration;
import java.util.List;
import java.util.Map;

/** A cluster client of Lettuce. */
final class LettuceClient implements Workload.Client {
    private final RedisClusterClient client;
    private final StatefulRedisClusterConnection<String, String> connection;
    private final RedisAdvancedClusterCommands<String, String> redis;

    LettuceClient(List<String> addresses) {
        client = RedisClusterClient.create(addresses.stream().map(LettuceClient::uri).toList());
        // Lettuce recommends it for clusters whose nodes change.
        var refresh = ClusterTopologyRefreshOptions.builder()
                .enablePeriodicRefresh(Duration.ofSeconds(5)).build();
        client.setOptions(ClusterClientOptions.builder().topologyRefreshOptions(refresh).build());
        connection = client.connect();
        redis = connection.sync();
    }

    private static RedisURI uri(String address) {
        int colon = address.lastIndexOf(':');
        int port = Integer.parseInt(address.substring(colon + 1));
        return RedisURI.builder().withHost(address.substring(0, colon)).withPort(port)
                .withTimeout(Duration.ofSeconds(1)).build();
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
        return redis.mget(first, second).stream().map(pair -> pair.getValueOrElse(null)).toList();
    }

    @Override
    public void mset(String first, String second, String value) {
        redis.mset(Map.of(first, value, second, value));
    }

    @Override
    public long incrBy(String key, long amount) {
        return redis.incrby(key, amount);
    }

    @Override
    public void close() {
        connection.close();
        client.shutdown();
    }
}
