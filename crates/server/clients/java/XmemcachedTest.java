import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import net.rubyeye.xmemcached.GetsResponse;
import net.rubyeye.xmemcached.MemcachedClient;
import net.rubyeye.xmemcached.XMemcachedClient;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** XMemcached: memcached's text protocol. */
class XmemcachedTest {
    private MemcachedClient client;

    @BeforeEach
    void connect() throws Exception {
        String name = "NUTHATCH_MEMCACHE";
        client = new XMemcachedClient(Addresses.host(name), Addresses.port(name));
        client.setOpTimeout(60_000);
        client.flushAll();
    }

    @AfterEach
    void disconnect() throws Exception {
        client.shutdown();
    }

    @Test
    void values() throws Exception {
        assertTrue(client.set("key", 1000, "Grüße"));
        assertEquals("Grüße", client.get("key"));
        assertTrue(client.set("bytes", 1000, new byte[60_000]));
        assertArrayEquals(new byte[60_000], client.get("bytes"));
        assertNull(client.get("nobody"));
        assertFalse(client.add("key", 1000, "x"));
        assertTrue(client.replace("key", 1000, "b"));
        assertTrue(client.append("key", "c"));
        assertTrue(client.prepend("key", "a"));
        assertEquals("abc", client.get("key"));
        assertTrue(client.delete("key"));
        assertFalse(client.delete("key"));
    }

    @Test
    void manyKeys() throws Exception {
        List<String> names = new ArrayList<>();
        for (int n = 0; n < 500; n++) {
            names.add("key:" + n);
            client.setWithNoReply("key:" + n, 1000, n);
        }
        Map<String, Integer> found = client.get(names);
        assertEquals(500, found.size());
        found.forEach((name, n) -> assertEquals(name, "key:" + n));
    }

    @Test
    void tokens() throws Exception {
        client.set("key", 1000, "1");
        GetsResponse<String> found = client.gets("key");
        assertTrue(client.cas("key", 1000, "2", found.getCas()));
        assertFalse(client.cas("key", 1000, "3", found.getCas()));
        assertEquals("2", client.get("key"));
    }

    @Test
    void numbersAndTimes() throws Exception {
        assertEquals(40, client.incr("n", 2, 40));
        assertEquals(42, client.incr("n", 2));
        assertEquals(0, client.decr("n", 50));
        assertTrue(client.touch("n", 1000));
        assertFalse(client.touch("nobody", 1000));
        assertEquals(1, client.getStats().size());
        assertEquals(1, client.getVersions().size());
    }
}
