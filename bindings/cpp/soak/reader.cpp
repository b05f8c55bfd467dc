// A reader for scripts/follow_soak: reader PATH INTERVAL_MS KEYS.
//
// Watches the snapshot at PATH, in which the keys key:0 to key:KEYS-1 all have the number of the
// generation as text. Prints "generation N" when it reads a later one than before. If it finds
// another value than expected, it prints both and fails. Runs until it is killed.
#include <nuthatch.hpp>

#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

// Time between two groups of lookups. Six readers share the processors with the follower.
constexpr std::chrono::milliseconds pause{1};

unsigned long value(const nuthatch::snapshot &snapshot, int key) {
    std::string name = "key:" + std::to_string(key);
    auto found = snapshot.get_string(name);
    if (!found) throw std::runtime_error(name + ": expected a number, found no value");
    return std::stoul(std::string(*found));
}

[[noreturn]] void fail(int key, const std::string &expected, unsigned long found) {
    throw std::runtime_error("key:" + std::to_string(key) + ": expected " + expected + ", found " +
                             std::to_string(found));
}

// Returns the generation of the newest snapshot.
unsigned long read(const nuthatch::snapshot &snapshot, int keys) {
    unsigned long generation = value(snapshot, 0);
    for (int key = 1; key < keys; key++) {
        // The follower may replace the file here: the snapshot stays readable.
        if (key == keys / 2) std::this_thread::sleep_for(pause);
        unsigned long found = value(snapshot, key);
        if (found != generation) fail(key, std::to_string(generation), found);
    }
    return generation;
}

// Reads until standard output is closed.
void run(const std::string &path, std::chrono::milliseconds interval, int keys) {
    nuthatch::watch_options options;
    options.poll_interval = interval;
    nuthatch::watch watch(path, options);
    auto reader = watch.reader();
    for (unsigned long last = 0;;) {
        unsigned long generation = read(reader.current(), keys);
        if (generation < last) fail(0, std::to_string(last) + " or more", generation);
        if (generation > last && std::printf("generation %lu\n", generation) < 0) return;
        if (std::fflush(stdout) != 0) return;
        last = generation;
    }
}

}  // namespace

int main(int argc, char **argv) {
    if (argc != 4) {
        std::fprintf(stderr, "usage: reader PATH INTERVAL_MS KEYS\n");
        return 2;
    }
    try {
        run(argv[1], std::chrono::milliseconds(std::stoi(argv[2])), std::stoi(argv[3]));
    } catch (const std::exception &error) {
        std::printf("%s\n", error.what());
        return 1;
    }
}
