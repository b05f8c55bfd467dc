// The good files: all ways to read them, and builds from their rows.
#ifndef GOOD_FILES_HPP
#define GOOD_FILES_HPP

#include "check.hpp"
#include "expected.hpp"

#include <nuthatch.hpp>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

inline void check_stats(const nuthatch::stats &found, const json &document) {
    const json &expected = document["stats"];
    CHECK(found.file_bytes == expected["file_bytes"].u64());
    CHECK(found.entries == expected["entries"].u64());
    CHECK(found.key_bytes == expected["key_bytes"].u64());
    CHECK(found.value_bytes == expected["value_bytes"].u64());
    CHECK(found.stored_value_bytes == expected["stored_value_bytes"].u64());
    CHECK(found.shared_entries == expected["shared_entries"].u64());
    CHECK(found.compressed_entries == expected["compressed_entries"].u64());
    CHECK(found.dictionary_bytes == expected["dictionary_bytes"].u64());
    CHECK(found.index_bytes == expected["index_bytes"].u64());
    CHECK(found.data_bytes == expected["data_bytes"].u64());
    CHECK(found.partitions == expected["partitions"].u64());
    CHECK(found.lines == expected["lines"].u64());
    CHECK(found.max_probe == expected["max_probe"].u64());
    CHECK(found.seed == expected["seed"].u64());
    const json *shards = document.find("shards");
    CHECK(found.shards == (shards == nullptr ? 0 : shards->u64()));
    for (unsigned code = 1; code <= 10; code++) {
        const char *name = nuthatch::name(static_cast<nuthatch::type>(code));
        const json *count = expected["entries_by_type"].find(name);
        CHECK(found.entries_by_type[code] == (count == nullptr ? 0 : count->u64()));
    }
}

// Checks the lookups of one key.
inline void check_lookups(const nuthatch::snapshot &snapshot, const json &entry) {
    std::string key = bytes_of(entry["key"]);
    auto value = snapshot.get(key);
    CHECK(value && nuthatch::name(value->type()) == entry["type"].text);
    CHECK(equal(*value, entry["value"]));
    CHECK(snapshot.contains(key) && snapshot.type_of(key) == value->type());
    auto expected = [&](nuthatch::type type) { return value->type() == type ? "" : "wrong-type"; };
    CHECK(code_of([&] { snapshot.get_string(key); }) == expected(nuthatch::type::string));
    CHECK(code_of([&] { snapshot.get_bytes(key); }) == expected(nuthatch::type::bytes));
    CHECK(code_of([&] { snapshot.get_i64(key); }) == expected(nuthatch::type::i64));
}

// Checks all entries, by all ways to read them.
inline void check_entries(const nuthatch::snapshot &snapshot, const json &document) {
    const auto &entries = document["entries"].items;
    std::size_t at = 0;
    std::vector<std::string> keys;
    for (const auto &entry : snapshot) {
        CHECK(at < entries.size() && entry.key == bytes_of(entries[at]["key"]));
        CHECK(equal(entry.value, entries[at]["value"]));
        keys.emplace_back(entry.key);
        check_lookups(snapshot, entries[at++]);
    }
    CHECK(at == entries.size() && snapshot.size() == at);
    std::size_t verified = 0;
    for (const auto &entry : snapshot.verified()) {
        CHECK(entry.key == keys[verified] && equal(entry.value, entries[verified]["value"]));
        verified++;
    }
    CHECK(verified == at);
    for (const json &absent : document["absent"].items) {
        keys.push_back(bytes_of(absent));
        CHECK(!snapshot.get(keys.back()) && !snapshot.contains(keys.back()));
        CHECK(!snapshot.type_of(keys.back()) && !snapshot.get_string(keys.back()));
    }
    nuthatch::values values;
    snapshot.get_many(keys, values);
    CHECK(values.size() == keys.size());
    for (std::size_t i = 0; i < keys.size(); i++) {
        CHECK(values[i].has_value() == (i < at));
        CHECK(i >= at || equal(*values[i], entries[i]["value"]));
    }
}

// Checks a file that is valid.
inline void check_valid(const nuthatch::snapshot &snapshot, const json &document) {
    check_stats(snapshot.stats(), document);
    snapshot.verify();
    const json none, *metadata = document.find("metadata");
    auto pairs = snapshot.metadata();
    const auto &expected = metadata == nullptr ? none.fields : metadata->fields;
    CHECK(pairs.size() == expected.size());
    for (std::size_t i = 0; i < pairs.size(); i++) {
        CHECK(pairs[i].first == expected[i].first);
        CHECK(pairs[i].second == bytes_of(expected[i].second));
    }
    check_entries(snapshot, document);
}

// Builds a snapshot from the rows of a good file, in the opposite order. All bytes must be equal.
inline void check_build(const nuthatch::snapshot &snapshot, const std::filesystem::path &good) {
    temporary_folder folder;
    auto stats = snapshot.stats();
    nuthatch::writer_options options;
    options.seed = stats.seed;
    options.shards = stats.shards;
    options.zstd_level = stats.compressed_entries > 0 ? 3 : 0;
    nuthatch::writer writer(folder.file(good.filename().string()), options);
    for (const auto &[name, value] : snapshot.metadata()) writer.set_metadata(name, value);
    std::vector<std::string> keys;
    for (const auto &entry : snapshot) keys.emplace_back(entry.key);
    std::reverse(keys.begin(), keys.end());
    for (const auto &key : keys) writer.insert(key, *snapshot.get(key));
    auto summary = writer.finish();
    CHECK(summary.entries == stats.entries && summary.rows == stats.entries);
    std::size_t files = 0;
    for (const auto &file : std::filesystem::directory_iterator(folder.path())) {
        CHECK(read_bytes(file.path()) == read_bytes(good.parent_path() / file.path().filename()));
        files++;
    }
    CHECK(files == 1 + stats.shards);
}

// Calls `run` with the name of each good file and its check.
template <class Run>
void check_good_files(const std::filesystem::path &folder, Run run) {
    for (const auto &file : std::filesystem::directory_iterator(folder / "v1")) {
        std::filesystem::path path = file.path(), document = path;
        if (path.extension() != ".nut") continue;
        document.replace_extension(".json");
        run("v1/" + path.filename().string(), [&] {
            nuthatch::snapshot snapshot(path.string());
            check_valid(snapshot, json_reader::read_file(document.string()));
            check_build(snapshot, path);
            if (snapshot.stats().shards == 0) {
                std::string bytes = read_bytes(path);
                nuthatch::span<const std::byte> span(reinterpret_cast<std::byte *>(bytes.data()),
                                                     bytes.size());
                check_valid(nuthatch::snapshot::from_bytes(span),
                            json_reader::read_file(document.string()));
            }
        });
    }
}

#endif
