// Measures lookups of 1,000,000 keys in shuffled order. Prints one JSON object for each system.
//   lookups SNAPSHOT RUST_LIBRARY [RUNS]
// The snapshot has the keys key_0 to key_999999 with the strings val_0 to val_999999. RUST_LIBRARY
// is the example rust_lookups of the crate nuthatch-c: the same lookups in Rust. The systems are
// interleaved run by run. Also measures opening the file that BENCH_OPEN_FILE names, if it is set.
#include "lmdb_rival.hpp"

#include <nuthatch.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

constexpr std::size_t key_count = 1'000'000;
constexpr std::size_t batch_keys = 1024;

std::string key_of(std::size_t number) { return "key_" + std::to_string(number); }
std::string value_of(std::size_t number) { return "val_" + std::to_string(number); }

// Returns a number that depends on the length and the first byte of each value.
std::size_t use(const void *data, std::size_t len) {
    return len + *static_cast<const unsigned char *>(data);
}

struct system_under_test {
    const char *language;
    const char *name;
    const char *operation;
    // Looks up all keys, and returns the sum of use() of the values.
    std::function<std::size_t()> run;
    std::vector<double> ns;
};

std::size_t c_get(const nuthatch_snapshot *snapshot, const std::vector<std::string> &keys) {
    std::size_t sum = 0;
    nuthatch_snapshot_value value;
    nuthatch_error error;
    for (const auto &key : keys) {
        const auto *data = reinterpret_cast<const std::uint8_t *>(key.data());
        if (nuthatch_snapshot_get_string(snapshot, data, key.size(), nullptr, &value, &error) != 0)
            std::abort();
        if (value.type != NUTHATCH_SNAPSHOT_ABSENT) sum += use(value.data.bytes, value.len);
    }
    return sum;
}

std::size_t c_get_many(const nuthatch_snapshot *snapshot, const std::vector<std::string> &keys) {
    std::size_t sum = 0;
    nuthatch_snapshot_bytes batch[batch_keys];
    nuthatch_snapshot_value values[batch_keys];
    nuthatch_error error;
    for (std::size_t from = 0; from < keys.size(); from += batch_keys) {
        std::size_t count = std::min(batch_keys, keys.size() - from);
        for (std::size_t i = 0; i < count; i++) {
            const std::string &key = keys[from + i];
            batch[i] = {reinterpret_cast<const std::uint8_t *>(key.data()), key.size()};
        }
        if (nuthatch_snapshot_get_many(snapshot, batch, count, nullptr, values, &error) != 0)
            std::abort();
        for (std::size_t i = 0; i < count; i++) {
            if (values[i].type == NUTHATCH_SNAPSHOT_ABSENT) continue;
            sum += use(values[i].data.bytes, values[i].len);
        }
    }
    return sum;
}

std::size_t cpp_get(const nuthatch::snapshot &snapshot, const std::vector<std::string> &keys) {
    std::size_t sum = 0;
    for (const auto &key : keys) {
        if (auto value = snapshot.get_string(key)) sum += use(value->data(), value->size());
    }
    return sum;
}

std::size_t cpp_get_many(const nuthatch::snapshot &snapshot, const std::vector<std::string> &keys) {
    static nuthatch::values values;
    std::size_t sum = 0;
    for (std::size_t from = 0; from < keys.size(); from += batch_keys) {
        nuthatch::span<const std::string> batch(keys.data() + from,
                                                std::min(batch_keys, keys.size() - from));
        snapshot.get_many(batch, values);
        for (std::size_t i = 0; i < values.size(); i++) {
            if (auto value = values[i]) {
                std::string_view text = value->as_string();
                sum += use(text.data(), text.size());
            }
        }
    }
    return sum;
}

// The functions of the example rust_lookups.
struct rust_reader {
    using run_function = std::size_t (*)(const void *, const void *);
    const void *snapshot = nullptr;
    const void *keys = nullptr;
    run_function get = nullptr;
    run_function get_many = nullptr;

    rust_reader(const char *library, const std::string &path, const std::vector<std::string> &of) {
        void *opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
        if (opened == nullptr) throw std::runtime_error(dlerror());
        std::vector<nuthatch_snapshot_bytes> raw;
        for (const auto &key : of) {
            raw.push_back({reinterpret_cast<const std::uint8_t *>(key.data()), key.size()});
        }
        using keys_function = const void *(*)(const nuthatch_snapshot_bytes *, std::size_t);
        auto open = reinterpret_cast<const void *(*)(const char *)>(dlsym(opened, "rust_open"));
        auto convert = reinterpret_cast<keys_function>(dlsym(opened, "rust_keys"));
        get = reinterpret_cast<run_function>(dlsym(opened, "rust_get"));
        get_many = reinterpret_cast<run_function>(dlsym(opened, "rust_get_many"));
        snapshot = open(path.c_str());
        keys = convert(raw.data(), raw.size());
    }
};

void measure(std::vector<system_under_test> &systems, int runs) {
    std::size_t expected = systems[0].run();
    for (int run = -1; run < runs; run++) {
        for (auto &system : systems) {
            auto start = std::chrono::steady_clock::now();
            std::size_t sum = system.run();
            auto end = std::chrono::steady_clock::now();
            double ns = std::chrono::duration<double, std::nano>(end - start).count();
            if (sum != expected) throw std::runtime_error("a wrong sum");
            if (run >= 0) system.ns.push_back(ns / key_count);
        }
    }
}

// Returns the measurement of opening and closing a file.
system_under_test measure_opening(const char *path) {
    system_under_test opening = {"c++", "nuthatch open", "open", {}, {}};
    for (int run = 0; run < 101; run++) {
        auto start = std::chrono::steady_clock::now();
        { nuthatch::snapshot opened{std::string(path)}; }
        auto end = std::chrono::steady_clock::now();
        opening.ns.push_back(std::chrono::duration<double, std::nano>(end - start).count());
    }
    return opening;
}

void print(std::vector<system_under_test> &systems) {
    for (auto &[language, name, operation, run, ns] : systems) {
        std::sort(ns.begin(), ns.end());
        std::printf("{\"language\": \"%s\", \"system\": \"%s\", \"operation\": \"%s\", "
                    "\"ns\": %.1f, \"runs\": %zu, \"min\": %.1f, \"max\": %.1f}\n",
                    language, name, operation, ns[ns.size() / 2], ns.size(), ns.front(), ns.back());
    }
}

}  // namespace

int main(int argc, char **argv) {
    if (argc < 3) return std::fprintf(stderr, "usage: lookups SNAPSHOT LIBRARY [RUNS]\n"), 2;
    std::string path = argv[1];
    std::vector<std::size_t> order(key_count);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937_64(42));
    std::vector<std::string> keys;
    std::unordered_map<std::string, std::string> map;
    for (auto number : order) keys.push_back(key_of(number));
    for (std::size_t i = 0; i < key_count; i++) map.emplace(key_of(i), value_of(i));

    nuthatch::snapshot snapshot(path);
    const nuthatch_snapshot *raw = snapshot.raw();
    std::vector<system_under_test> systems = {
        {"c", "nuthatch get_string", "get", [&] { return c_get(raw, keys); }, {}},
        {"c", "nuthatch get_many", "get_many", [&] { return c_get_many(raw, keys); }, {}},
        {"c++", "nuthatch get_string", "get", [&] { return cpp_get(snapshot, keys); }, {}},
        {"c++", "nuthatch get_many", "get_many", [&] { return cpp_get_many(snapshot, keys); }, {}},
    };
    auto find = [&] {
        std::size_t sum = 0;
        for (const auto &key : keys) {
            auto found = map.find(key);
            if (found != map.end()) sum += use(found->second.data(), found->second.size());
        }
        return sum;
    };
    systems.push_back({"c++", "std::unordered_map", "get", find, {}});
    lmdb_rival lmdb(path + ".lmdb", key_count, key_of, value_of);
    systems.push_back({"c", lmdb_rival::name, "get", [&] { return lmdb.get(keys, use); }, {}});
    rust_reader rust(argv[2], path, keys);
    auto run = [&](auto function) { return function(rust.snapshot, rust.keys); };
    auto get = [&] { return run(rust.get); };
    auto get_many = [&] { return run(rust.get_many); };
    systems.push_back({"rust", "nuthatch get_string", "get", get, {}});
    systems.push_back({"rust", "nuthatch get_many", "get_many", get_many, {}});
    measure(systems, argc > 3 ? std::atoi(argv[3]) : 7);
    if (const char *file = std::getenv("BENCH_OPEN_FILE")) systems.push_back(measure_opening(file));
    print(systems);
}
