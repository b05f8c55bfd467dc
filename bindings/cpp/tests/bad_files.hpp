// The damaged files.
#ifndef BAD_FILES_HPP
#define BAD_FILES_HPP

#include "check.hpp"
#include "expected.hpp"
#include "good_files.hpp"

#include <nuthatch.hpp>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

inline std::string from_hex(const std::string &text) {
    std::string bytes;
    for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
        bytes += static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16));
    }
    return bytes;
}

// Writes the bytes of patches into the bytes of a file.
inline void apply(const json &patches, std::string &bytes) {
    for (const json &patch : patches.items) {
        std::string patched = from_hex(patch["hex"].text);
        bytes.replace(patch["at"].u64(), patched.size(), patched);
    }
}

// The code of an error and its offset.
using failure = std::pair<std::string, unsigned long long>;

// Returns the error that a call throws.
template <class Call>
std::optional<failure> failure_of(Call call) {
    try {
        call();
    } catch (const nuthatch::error &error) {
        return failure{error.code(), error.offset()};
    }
    return std::nullopt;
}

// Checks the error of a step, which the case has in a field.
inline void check_failure(const json &of_case, const char *field,
                          const std::optional<failure> &found) {
    const json *expected = of_case.find(field);
    std::string text = found ? found->first + " at " + std::to_string(found->second) : "none";
    bool is_same = expected == nullptr
                       ? !found
                       : found && found->first == (*expected)["code"].text &&
                             found->second == (*expected)["offset"].u64();
    if (!is_same) throw std::runtime_error(std::string(field) + ": another error: " + text);
}

// Looks up a key by all ways. Returns "a value", "absent" or "corrupt".
inline std::string look_up(const nuthatch::snapshot &snapshot, const std::string &key) {
    bool is_found = false;
    std::string code = code_of([&] { is_found = snapshot.get(key).has_value(); });
    CHECK(code.empty() || code == "corrupt");
    nuthatch::values values;
    std::vector<std::string> keys{key};
    std::string of_many = code_of([&] { snapshot.get_many(keys, values); });
    CHECK(of_many == code && (!code.empty() || values[0].has_value() == is_found));
    auto is_allowed = [](const std::string &typed) {
        return typed.empty() || typed == "corrupt" || typed == "wrong-type";
    };
    CHECK(is_allowed(code_of([&] { snapshot.get_string(key); })));
    CHECK(is_allowed(code_of([&] { snapshot.get_bool(key); })));
    CHECK(is_allowed(code_of([&] { snapshot.get_f64_list(key); })));
    CHECK(is_allowed(code_of([&] { snapshot.get_f32_list(key); })));
    CHECK(is_allowed(code_of([&] { snapshot.get_string_list(key); })));
    return code.empty() ? is_found ? "a value" : "absent" : code;
}

// Iterates until the first error. Returns its code.
template <class Entries>
std::string iterate(const Entries &entries) {
    return code_of([&] {
        for (const auto &entry : entries) CHECK(entry.value.raw().type != 0);
    });
}

// Checks a file by the lookups of a damaged one.
inline void check_damaged(const nuthatch::snapshot &snapshot, const json &of_case,
                          const json &document) {
    bool is_corrupt = false;
    for (const json &entry : document["entries"].items) {
        is_corrupt |= look_up(snapshot, bytes_of(entry["key"])) == "corrupt";
    }
    for (const json &absent : document["absent"].items) look_up(snapshot, bytes_of(absent));
    std::string iteration = iterate(snapshot);
    CHECK(iteration == "corrupt" || (iteration.empty() && !is_corrupt));
    std::string verified = iterate(snapshot.verified());
    CHECK(verified.empty() || verified == "corrupt");
    if (const json *get = of_case.find("get")) {
        std::string found = look_up(snapshot, bytes_of((*get)["key"]));
        if (found != (*get)["answer"].text) throw std::runtime_error("the lookup gives " + found);
    }
}

inline void check_case(const std::string &path, const json &of_case, const json &document) {
    std::optional<nuthatch::snapshot> snapshot;
    check_failure(of_case, "open", failure_of([&] { snapshot.emplace(path); }));
    if (!snapshot) return;
    check_failure(of_case, "verify", failure_of([&] { snapshot->verify(); }));
    if (of_case.find("verify") == nullptr) {
        check_entries(*snapshot, document);
    } else {
        check_damaged(*snapshot, of_case, document);
    }
}

// Copies the shards of all sets to a folder.
inline void copy_shards(const std::filesystem::path &from, const std::filesystem::path &to) {
    for (const auto &file : std::filesystem::directory_iterator(from / "v1")) {
        if (file.path().extension() != ".shard") continue;
        std::filesystem::copy_file(file.path(), to / file.path().filename());
    }
}

// Calls `run` with the name of each case and its check.
template <class Run>
void check_bad_files(const std::filesystem::path &folder, Run run) {
    temporary_folder temporary;
    copy_shards(folder, temporary.path());
    std::map<std::string, json> documents;
    json cases = json_reader::read_file((folder / "bad/cases.json").string());
    for (const json &of_case : cases.items) {
        const std::string &file = of_case["file"].text;
        const json *of = of_case.find("of");
        std::string good = of == nullptr ? file : of->text;
        run(file + ": " + of_case["name"].text, [&] {
            std::filesystem::path document = folder / good;
            document.replace_extension(".json");
            auto [known, is_new] = documents.try_emplace(good);
            if (is_new) known->second = json_reader::read_file(document.string());
            std::string bytes = read_bytes(folder / file);
            if (const json *length = of_case.find("length")) bytes.resize(length->u64());
            if (const json *patch = of_case.find("patch")) apply(*patch, bytes);
            std::string path = temporary.file("case.nut");
            write_bytes(path, bytes);
            check_case(path, of_case, known->second);
        });
    }
}

#endif
