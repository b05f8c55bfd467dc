import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/** The workload of ../../README.md, with Jedis or Lettuce. */
final class Workload {
    /** Number of keys of each kind. */
    private static final int KEYS = 40;

    private final Client redis;
    private final OutputStream log;
    private final CountDownLatch stopped = new CountDownLatch(1);

    private Workload(Client redis, OutputStream log) {
        this.redis = redis;
        this.log = log;
    }

    /** The operations of a client of a cluster. */
    interface Client extends AutoCloseable {
        /** Returns the value of a key, or null. */
        String get(String key);

        /** Sets a key. */
        void set(String key, String value);

        /** Returns the values of two keys of a slot, or null for each. */
        List<String> mget(String first, String second);

        /** Sets two keys of a slot. */
        void mset(String first, String second, String value);

        /** Adds an amount to a key, and returns the sum. */
        long incrBy(String key, long amount);

        @Override
        void close();
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments.length != 5) {
            throw new IllegalArgumentException("expected NAME ADDRESSES FILE THREADS PAUSE_MS");
        }
        String name = arguments[0];
        List<String> addresses = List.of(arguments[1].split(","));
        // Each write is one call of the system, so lines of threads do not mix.
        try (Client redis = connect(name, addresses);
                OutputStream log = new FileOutputStream(arguments[2], true)) {
            var workload = new Workload(redis, log);
            workload.run(name, Integer.parseInt(arguments[3]), Long.parseLong(arguments[4]));
        }
    }

    private static Client connect(String name, List<String> addresses) {
        return switch (name) {
            case "jedis" -> new JedisClient(addresses);
            case "lettuce" -> new LettuceClient(addresses);
            default -> throw new IllegalArgumentException("expected jedis or lettuce: " + name);
        };
    }

    /** Executes operations until the end of the standard input. */
    private void run(String name, int count, long pauseMs) throws Exception {
        var threads = new ArrayList<Thread>();
        for (int at = 0; at < count; at++) {
            String client = name + "." + at;
            threads.add(new Thread(() -> work(client, pauseMs)));
        }
        threads.forEach(Thread::start);
        System.in.transferTo(OutputStream.nullOutputStream());
        stopped.countDown();
        for (Thread thread : threads) {
            thread.join();
        }
    }

    private void work(String client, long pauseMs) {
        try {
            for (int number = 1; !stopped.await(pauseMs, TimeUnit.MILLISECONDS); number++) {
                int key = ThreadLocalRandom.current().nextInt(KEYS);
                step(client, key, client + "." + number);
            }
        } catch (InterruptedException | IOException error) {
            throw new IllegalStateException(error);
        }
    }

    /** Executes an operation with keys of this number, or writes this value. */
    private void step(String client, int number, String value) throws IOException {
        String key = "key" + number;
        String sum = "sum" + number;
        String first = "{pair" + number + "}a";
        String second = "{pair" + number + "}b";
        List<String> pair = List.of(first, second);
        switch (ThreadLocalRandom.current().nextInt(8)) {
            case 0, 1 -> execute(client, "get", List.of(key), "-",
                    () -> Collections.singletonList(redis.get(key)));
            case 2, 3 -> execute(client, "set", List.of(key), value, () -> {
                redis.set(key, value);
                return List.of("-");
            });
            case 4, 5 -> execute(client, "get", pair, "-", () -> redis.mget(first, second));
            case 6 -> execute(client, "set", pair, value, () -> {
                redis.mset(first, second, value);
                return List.of("-", "-");
            });
            default -> {
                long amount = ThreadLocalRandom.current().nextLong(1, 1L << 40);
                execute(client, "incrby", List.of(sum), Long.toString(amount),
                        () -> List.of(Long.toString(redis.incrBy(sum, amount))));
            }
        }
    }

    /** Calls a function, and writes a line with its result for each key. */
    private void execute(String client, String operation, List<String> keys, String argument,
            Callable<List<String>> call) throws IOException {
        // CLOCK_MONOTONIC on Linux.
        long start = System.nanoTime();
        List<String> results;
        String outcome = "ok";
        try {
            results = call.call();
        } catch (Exception error) {
            results = Collections.nCopies(keys.size(), error.toString().replaceAll("\\s+", " "));
            outcome = "error";
        }
        long end = System.nanoTime();
        var lines = new StringBuilder();
        for (int at = 0; at < keys.size(); at++) {
            String result = results.get(at);
            String last = result == null ? "miss\t-" : outcome + "\t" + result;
            lines.append(String.join("\t", Long.toString(start), Long.toString(end), client,
                    operation, keys.get(at), argument, last)).append('\n');
        }
        log.write(lines.toString().getBytes(StandardCharsets.UTF_8));
    }
}
