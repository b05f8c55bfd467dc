// The tables of typed lookups, key hashes, watches, and of a file beyond 4 GiB.
#ifndef TABLES_HPP
#define TABLES_HPP

#include "bad_files.hpp"
#include "check.hpp"
#include "expected.hpp"

#include <nuthatch.hpp>

#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

// Looks up a key as a type. Returns its value as a value of that type.
inline std::optional<nuthatch_snapshot_value> typed_lookup(const nuthatch::snapshot &snapshot,
                                                           const std::string &key,
                                                           const std::string &as) {
    using function = decltype(&nuthatch_snapshot_get);
    const std::map<std::string, function> functions = {
        {"bytes", nuthatch_snapshot_get_bytes},
        {"string", nuthatch_snapshot_get_string},
        {"bool", nuthatch_snapshot_get_bool},
        {"i64", nuthatch_snapshot_get_i64},
        {"f64", nuthatch_snapshot_get_f64},
        {"list of i64", nuthatch_snapshot_get_i64_list},
        {"list of f64", nuthatch_snapshot_get_f64_list},
        {"list of f32", nuthatch_snapshot_get_f32_list},
        {"list of string", nuthatch_snapshot_get_string_list},
    };
    nuthatch_snapshot_value value;
    nuthatch::detail::check(functions.at(as), snapshot.raw(), nuthatch::detail::data(key),
                            key.size(), nuthatch::detail::scratch(), &value);
    if (value.type == NUTHATCH_SNAPSHOT_ABSENT) return std::nullopt;
    return value;
}

// Looks up a key as a type, by the methods of C++. Returns whether it exists.
inline bool typed_lookup_of_cpp(const nuthatch::snapshot &snapshot, const std::string &key,
                                const std::string &as) {
    const std::map<std::string, std::function<bool()>> methods = {
        {"bytes", [&] { return snapshot.get_bytes(key).has_value(); }},
        {"string", [&] { return snapshot.get_string(key).has_value(); }},
        {"bool", [&] { return snapshot.get_bool(key).has_value(); }},
        {"i64", [&] { return snapshot.get_i64(key).has_value(); }},
        {"f64", [&] { return snapshot.get_f64(key).has_value(); }},
        {"list of i64", [&] { return snapshot.get_i64_list(key).has_value(); }},
        {"list of f64", [&] { return snapshot.get_f64_list(key).has_value(); }},
        {"list of f32", [&] { return snapshot.get_f32_list(key).has_value(); }},
        {"list of string", [&] { return snapshot.get_string_list(key).has_value(); }},
    };
    return methods.at(as)();
}

inline void check_typed_lookup(const nuthatch::snapshot &snapshot, const json &lookup) {
    std::string key = bytes_of(lookup["key"]), as = lookup["as"].text, message;
    std::optional<nuthatch_snapshot_value> found;
    bool is_found = false;
    std::string code = code_of([&] {
        try {
            found = typed_lookup(snapshot, key, as);
        } catch (const nuthatch::error &error) {
            message = error.what();
            throw;
        }
    });
    CHECK(code == code_of([&] { is_found = typed_lookup_of_cpp(snapshot, key, as); }));
    CHECK(found.has_value() == is_found);
    if (const json *other = lookup.find("found")) {
        CHECK(code == "wrong-type");
        CHECK(message.find("requested " + as + ", found " + other->text) != std::string::npos);
        return;
    }
    CHECK(code.empty() && is_found == (lookup.find("absent") == nullptr));
    if (!is_found) return;
    bool is_empty_list = as.rfind("list", 0) == 0 && found->len == 0;
    if (is_empty_list) found->type = NUTHATCH_SNAPSHOT_EMPTY_LIST;
    const json &value = lookup["value"], *list = &value;
    if (value.find("$f32") != nullptr) list = value.find("$f32");
    CHECK(equal(nuthatch::value_view(*found), is_empty_list ? *list : value));
}

template <class Run>
void check_typed_lookups(const std::filesystem::path &folder, Run run) {
    for (const json &lookup : json_reader::read_file((folder / "typed.json").string()).items) {
        run(lookup["name"].text, [&] {
            nuthatch::snapshot snapshot((folder / lookup["file"].text).string());
            check_typed_lookup(snapshot, lookup);
        });
    }
}

// The library does not export its hash function. A snapshot with one key has 15 bits of the hash as
// the first fingerprint of its only line, and 14 more bits as the number of a shard.
template <class Run>
void check_hashes(const std::filesystem::path &folder, Run run) {
    temporary_folder temporary;
    for (const json &row : json_reader::read_file((folder / "hashes.json").string()).items) {
        run(row["name"].text, [&] {
            std::uint64_t hash = std::stoull(row["hash"].text, nullptr, 16);
            nuthatch::writer_options options;
            options.seed = std::stoull(row["seed"].text, nullptr, 16);
            options.threads = 1;
            std::string path = temporary.file("one.nut"), key = bytes_of(row["key"]);
            nuthatch::writer writer(path, options);
            writer.insert(key, nuthatch::empty_list);
            writer.finish();
            std::string bytes = read_bytes(path);
            std::uint64_t index;
            std::uint16_t fingerprint;
            std::memcpy(&index, bytes.data() + 88, sizeof index);
            std::memcpy(&fingerprint, bytes.data() + index, sizeof fingerprint);
            CHECK(fingerprint == ((hash & 0x7fff) | 0x8000));
            CHECK(nuthatch::snapshot(path).contains(key));
        });
    }
}

// Copies a file beside the path of a watch, and renames it to the path.
inline void publish(const std::filesystem::path &file, const std::string &path) {
    std::filesystem::copy_file(file, path + ".new");
    std::filesystem::rename(path + ".new", path);
}

// Checks what a watch reads after a step.
inline void check_step(const json &step, const nuthatch::watch &watch, nuthatch::reader &reader,
                       const std::filesystem::path &folder) {
    const nuthatch::snapshot &current = reader.current();
    CHECK(current.size() == step["entries"].u64());
    CHECK(current.stats().file_bytes ==
          nuthatch::snapshot((folder / step["current"].text).string()).stats().file_bytes);
    auto status = watch.status();
    CHECK(status.switched == step["switched"].u64());
    CHECK(status.rejected == step["rejected"].u64());
    CHECK(status.error.has_value() == step["error"].is_true());
}

template <class Run>
void check_watches(const std::filesystem::path &folder, Run run) {
    for (const json &of_case : json_reader::read_file((folder / "watch.json").string()).items) {
        run(of_case["name"].text, [&] {
            temporary_folder temporary;
            copy_shards(folder, temporary.path());
            std::string path = temporary.file("watched.nut");
            nuthatch::watch_options options;
            options.poll_interval = std::chrono::milliseconds(0);
            options.verify = of_case["verify"].is_true();
            std::optional<nuthatch::watch> watch;
            std::optional<nuthatch::reader> reader;
            for (const json &step : of_case["steps"].items) {
                if (const json *file = step.find("publish")) publish(folder / file->text, path);
                if (step.find("remove") != nullptr) std::filesystem::remove(path);
                if (watch) {
                    watch->refresh();
                } else {
                    watch.emplace(path, options);
                    reader.emplace(watch->reader());
                }
                check_step(step, *watch, *reader, folder);
            }
        });
    }
}

// Writes a sparse file.
inline void write_sparse(const std::string &path, const json &document) {
    write_bytes(path, "");
    std::filesystem::resize_file(path, document["length"].u64());
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    for (const json &patch : document["patch"].items) {
        std::string bytes = from_hex(patch["hex"].text);
        file.seekp(static_cast<std::streamoff>(patch["at"].u64()));
        file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    }
    CHECK(file.flush());
}

template <class Run>
void check_large_file(const std::filesystem::path &folder, Run run) {
    json document = json_reader::read_file((folder / "large.json").string());
    run(document["name"].text, [&] {
        temporary_folder temporary;
        std::string path = temporary.file("large.nut");
        write_sparse(path, document);
        nuthatch::snapshot snapshot(path);
        std::size_t at = 0;
        for (const auto &entry : snapshot) {
            const json &expected = document["entries"].items.at(at++);
            CHECK(entry.key == bytes_of(expected["key"]) && equal(entry.value, expected["value"]));
            check_lookups(snapshot, expected);
        }
        CHECK(at == document["entries"].items.size());
        for (const json &absent : document["absent"].items) CHECK(!snapshot.get(bytes_of(absent)));
    });
}

#endif
