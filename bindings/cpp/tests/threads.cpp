// Tests what happens when a snapshot is closed or replaced while threads read it.
#include "check.hpp"

#include <nuthatch.hpp>

#include <atomic>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int thread_count = 4;
constexpr int key_count = 1000;

void write(const std::string &path, int generation) {
    nuthatch::writer_options options;
    options.threads = 1;
    nuthatch::writer writer(path, options);
    std::string suffix = " of generation " + std::to_string(generation);
    for (int i = 0; i < key_count; i++) {
        std::string key = std::to_string(i);
        writer.insert(key, key + suffix);
    }
    writer.insert("generation", generation);
    writer.finish();
}

// Looks up keys until a lookup throws. Returns the code.
std::string read_until_closed(const nuthatch::snapshot &snapshot, std::atomic<int> &lookups) {
    nuthatch::values values;
    return code_of([&] {
        for (int i = 0;; i = (i + 1) % key_count) {
            std::string key = std::to_string(i);
            auto text = snapshot.get_string(key);
            CHECK(text && text->substr(0, key.size()) == key);
            snapshot.get_many(std::vector<std::string>{key, "nobody"}, values);
            CHECK(values[0]->as_string() == *text && !values[1]);
            lookups.fetch_add(1, std::memory_order_relaxed);
        }
    });
}

// Waits until all threads together have done some lookups.
void wait_for(const std::atomic<int> &lookups) {
    while (lookups.load(std::memory_order_relaxed) < 10 * key_count) std::this_thread::yield();
}

void lookups_of_one_object_throw_after_it_is_closed(const std::string &path) {
    auto snapshot = std::make_shared<nuthatch::snapshot>(path);
    std::atomic<int> lookups{0}, closed{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < thread_count; i++) {
        threads.emplace_back([snapshot, kept = snapshot->get_string("7"), &lookups, &closed] {
            if (read_until_closed(*snapshot, lookups) == "closed" && kept->substr(0, 1) == "7") {
                closed++;
            }
        });
    }
    wait_for(lookups);
    snapshot->close();
    // The threads keep the object, and with it the values in place.
    snapshot.reset();
    for (auto &thread : threads) thread.join();
    CHECK(closed == thread_count);
}

void objects_of_threads_outlive_the_first_one(const std::string &path) {
    auto first = std::make_unique<nuthatch::snapshot>(path);
    std::atomic<int> lookups{0}, closed{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < thread_count; i++) {
        threads.emplace_back([own = first->share(), &lookups, &closed] {
            if (read_until_closed(own, lookups) == "closed") closed++;
        });
    }
    auto last = first->share();
    first.reset();
    wait_for(lookups);
    last.close();
    for (auto &thread : threads) thread.join();
    CHECK(closed == thread_count);
}

void iterations_end_with_an_error(const std::string &path) {
    nuthatch::snapshot snapshot(path);
    std::atomic<int> iterations{0}, closed{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < thread_count; i++) {
        threads.emplace_back([own = snapshot.share(), &iterations, &closed] {
            std::string code = code_of([&] {
                for (;;) {
                    int count = 0;
                    for (const auto &entry : own) count += !entry.key.empty();
                    CHECK(count == key_count + 1);
                    iterations++;
                }
            });
            if (code == "closed") closed++;
        });
    }
    while (iterations < 20) std::this_thread::yield();
    snapshot.close();
    for (auto &thread : threads) thread.join();
    CHECK(closed == thread_count);
}

// Readers see whole generations, in ascending order, while files are renamed over the path.
void readers_follow_a_watch(const temporary_folder &folder) {
    constexpr int last = 20;
    std::string path = folder.file("watched.nut");
    write(path, 0);
    nuthatch::watch_options options;
    options.poll_interval = std::chrono::milliseconds(1);
    nuthatch::watch watch(path, options);
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < thread_count; i++) {
        threads.emplace_back([reader = watch.reader(), &wrong]() mutable {
            for (std::int64_t seen = 0; seen < last;) {
                const auto &snapshot = reader.current();
                std::int64_t generation = *snapshot.get_i64("generation");
                std::string suffix = " of generation " + std::to_string(generation);
                if (generation < seen || *snapshot.get_string("1") != "1" + suffix) wrong++;
                seen = generation;
            }
        });
    }
    for (int generation = 1; generation <= last; generation++) {
        write(path, generation);
        watch.refresh();
    }
    for (auto &thread : threads) thread.join();
    CHECK(wrong == 0 && watch.status().rejected == 0);
}

}  // namespace

int main() {
    temporary_folder folder;
    std::string path = folder.file("a.nut");
    write(path, 0);
    lookups_of_one_object_throw_after_it_is_closed(path);
    objects_of_threads_outlive_the_first_one(path);
    iterations_end_with_an_error(path);
    readers_follow_a_watch(folder);
    std::puts("4 tests, 0 failed");
}
