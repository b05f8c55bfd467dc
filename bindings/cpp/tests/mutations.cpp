// Reads good files with bytes changed at random, from a fixed seed. No read may crash or hang, and
// the only errors are those that the format page describes.
//   mutations TESTDATA_SNAPSHOT [COUNT]
#include "check.hpp"

#include <nuthatch.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace {

using file = std::string;

nuthatch::snapshot open(file &bytes) {
    auto *data = reinterpret_cast<std::byte *>(bytes.data());
    return nuthatch::snapshot::from_bytes({data, bytes.size()});
}

// Returns the keys of a file.
std::vector<std::string> keys_of(file &bytes) {
    std::vector<std::string> keys;
    nuthatch::snapshot snapshot = open(bytes);
    for (const auto &entry : snapshot) {
        if (keys.size() < 30) keys.emplace_back(entry.key);
    }
    keys.emplace_back("nobody");
    return keys;
}

// Writes the computed checksum in place of a stored one. The message of the error ends with it.
bool mend(file &bytes, const nuthatch::error &error) {
    std::string message = error.what();
    bool is_checksum = message.find("checksum") != std::string::npos;
    if (!is_checksum || error.offset() + 8 > bytes.size()) return false;
    std::uint64_t computed = std::strtoull(message.substr(message.rfind(' ')).c_str(), nullptr, 16);
    std::memcpy(bytes.data() + error.offset(), &computed, sizeof computed);
    return true;
}

// Corrects checksums until the file opens and verifies, or has another error.
void mend_checksums(file &bytes) {
    for (int round = 0; round < 12; round++) {
        try {
            open(bytes).verify(1);
            return;
        } catch (const nuthatch::error &error) {
            if (!mend(bytes, error)) return;
        }
    }
}

void mutate(file &bytes, std::mt19937_64 &random) {
    for (std::uint64_t left = 1 + random() % 4; left > 0; left--) {
        std::size_t at = random() % bytes.size();
        switch (random() % 4) {
            case 0: bytes[at] ^= static_cast<char>(1 << random() % 8); break;
            case 1: bytes[at] = static_cast<char>(random()); break;
            case 2: bytes[at] = random() % 2 ? '\0' : '\xff'; break;
            default:
                if (random() % 8 == 0) bytes.resize(1 + at);
        }
    }
}

template <class Entries>
void iterate(const Entries &entries) {
    for (const auto &entry : entries) CHECK(entry.value.raw().type <= 10);
}

// Reads a file by all ways. Counts the codes of errors.
void read(file &bytes, const std::vector<std::string> &keys, std::map<std::string, int> &codes) {
    std::string opened = code_of([&] {
        nuthatch::snapshot snapshot = open(bytes);
        nuthatch::values values;
        auto count = [&](auto call) { codes[code_of(call)]++; };
        for (const auto &key : keys) {
            count([&] { snapshot.get(key); });
            count([&] { snapshot.get_string(key); });
            count([&] { snapshot.get_i64_list(key); });
            count([&] { snapshot.get_string_list(key); });
        }
        count([&] { snapshot.get_many(keys, values); });
        count([&] { iterate(snapshot); });
        count([&] { iterate(snapshot.verified()); });
        count([&] { snapshot.verify(1); });
        count([&] { snapshot.metadata(); });
    });
    codes[opened]++;
}

}  // namespace

int main(int argc, char **argv) {
    if (argc < 2) return std::fprintf(stderr, "usage: mutations TESTDATA_SNAPSHOT [COUNT]\n"), 2;
    int count = argc > 2 ? std::atoi(argv[2]) : 10'000;
    std::vector<file> files;
    const char *names[] = {"types", "overflow", "shared", "zstd", "zstd-dictionary", "metadata"};
    for (const char *name : names) {
        files.push_back(read_bytes(argv[1] + ("/v1/" + std::string(name) + ".nut")));
    }
    std::vector<std::vector<std::string>> keys;
    for (auto &bytes : files) keys.push_back(keys_of(bytes));
    std::mt19937_64 random(20261124);
    std::map<std::string, int> codes;
    for (int i = 0; i < count; i++) {
        std::size_t which = random() % files.size();
        file bytes = files[which];
        mutate(bytes, random);
        if (i % 2 == 0) mend_checksums(bytes);
        read(bytes, keys[which], codes);
    }
    for (const auto &[code, times] : codes) {
        std::printf("%8d %s\n", times, code.empty() ? "ok" : code.c_str());
        CHECK(code.empty() || code == "corrupt" || code == "wrong-type" || code == "unsupported" ||
              code == "not-a-snapshot");
    }
    // Mutations reach the code behind opening.
    CHECK(codes["corrupt"] > count && codes[""] > count);
}
