// Tests the classes of nuthatch.hpp. Each test is named after what it shows.
#include "check.hpp"

#include <nuthatch.hpp>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace {

void write_one_of_each(const std::string &path) {
    nuthatch::writer writer(path);
    const std::byte raw[] = {std::byte{0xff}, std::byte{0}};
    writer.insert("bytes", raw);
    writer.insert("string", "Ada");
    writer.insert("string: std", std::string("Grace"));
    writer.insert("bool", true);
    writer.insert("i64", -36);
    writer.insert("i64: unsigned", 36u);
    writer.insert("f64", 2.5);
    writer.insert("f64: float", 0.25f);
    writer.insert("list of i64", std::vector<std::int64_t>{1, -2});
    writer.insert("list of f64", std::array<double, 2>{0.5, -0.0});
    writer.insert("list of f32", std::vector<float>{0.25f});
    writer.insert("list of string", std::vector<std::string>{"a", "", "bc"});
    writer.insert("list without elements", std::vector<double>{});
    writer.insert("empty list", nuthatch::empty_list);
    writer.set_metadata("source", "test");
    CHECK(writer.finish().entries == 14);
}

void typed_lookups_return_values_in_place() {
    temporary_folder folder;
    write_one_of_each(folder.file("a.nut"));
    nuthatch::snapshot snapshot(folder.file("a.nut"));
    CHECK(snapshot.get_bytes("bytes")->size() == 2);
    auto name = snapshot.get_string("string");
    CHECK(name && *name == "Ada" && name->in_place() && name->view() == "Ada");
    CHECK(*snapshot.get_string("string: std") == "Grace");
    CHECK(snapshot.get_bool("bool") == true);
    CHECK(snapshot.get_i64("i64") == -36 && snapshot.get_i64("i64: unsigned") == 36);
    CHECK(snapshot.get_f64("f64") == 2.5 && snapshot.get_f64("f64: float") == 0.25);
    auto integers = snapshot.get_i64_list("list of i64");
    CHECK(integers->size() == 2 && (*integers)[1] == -2);
    CHECK(std::signbit((*snapshot.get_f64_list("list of f64"))[1]));
    CHECK((*snapshot.get_f32_list("list of f32"))[0] == 0.25f);
    std::string joined;
    auto strings = snapshot.get_string_list("list of string");
    for (auto string : *strings) joined.append(string) += ',';
    CHECK(joined == "a,,bc,");
    CHECK(!snapshot.get_string("nobody") && !snapshot.get("nobody"));
}

void an_empty_list_is_a_list_of_any_type() {
    temporary_folder folder;
    write_one_of_each(folder.file("a.nut"));
    nuthatch::snapshot snapshot(folder.file("a.nut"));
    for (const char *key : {"empty list", "list without elements"}) {
        CHECK(snapshot.get_i64_list(key)->empty() && snapshot.get_string_list(key)->empty());
        CHECK(snapshot.get(key)->as_f32_list().empty());
        CHECK(snapshot.type_of(key) == nuthatch::type::empty_list);
        CHECK(code_of([&] { snapshot.get_i64(key); }) == "wrong-type");
    }
}

void a_wrong_type_names_both_types() {
    temporary_folder folder;
    write_one_of_each(folder.file("a.nut"));
    nuthatch::snapshot snapshot(folder.file("a.nut"));
    auto check = [](auto call) {
        try {
            call();
            CHECK(false);
        } catch (const nuthatch::error &error) {
            CHECK(error.code() == "wrong-type" && error.number() == NUTHATCH_ERROR_WRONG_TYPE);
            CHECK(std::string(error.what()) == "wrong type: requested i64, found string");
        }
    };
    check([&] { snapshot.get_i64("string"); });
    check([&] { snapshot.get("string")->as_i64(); });
}

void errors_have_code_offset_and_errno() {
    temporary_folder folder;
    try {
        nuthatch::snapshot snapshot(folder.file("none.nut"));
        CHECK(false);
    } catch (const nuthatch::error &error) {
        CHECK(error.code() == "io" && error.system() == ENOENT);
        CHECK(std::string(error.what()).find("none.nut") != std::string::npos);
    }
    write_one_of_each(folder.file("a.nut"));
    std::string bytes = read_bytes(folder.file("a.nut"));
    bytes[16] ^= 1;
    write_bytes(folder.file("a.nut"), bytes);
    try {
        nuthatch::snapshot snapshot(folder.file("a.nut"));
        CHECK(false);
    } catch (const nuthatch::error &error) {
        CHECK(error.code() == "corrupt" && error.offset() == 504);
    }
}

void a_moved_object_keeps_the_snapshot() {
    temporary_folder folder;
    write_one_of_each(folder.file("a.nut"));
    nuthatch::snapshot first(folder.file("a.nut"));
    auto name = first.get_string("string");
    nuthatch::snapshot second(std::move(first));
    CHECK(code_of([&] { first.get("string"); }) == "argument");
    first = std::move(second);
    CHECK(*first.get_string("string") == "Ada" && *name == "Ada");
    CHECK(code_of([&] { second.size(); }) == "argument");
}

void closing_ends_all_objects_that_share_a_snapshot() {
    temporary_folder folder;
    write_one_of_each(folder.file("a.nut"));
    nuthatch::snapshot first(folder.file("a.nut")), other(folder.file("a.nut"));
    auto second = first.share();
    auto iterator = second.begin();
    auto name = first.get_string("string");
    first.close();
    CHECK(*name == "Ada");
    CHECK(code_of([&] { second.get_string("string"); }) == "closed");
    CHECK(code_of([&] { second.begin(); }) == "closed");
    CHECK(code_of([&] { for (int i = 0; i < 2000; i++) ++iterator; }) == "closed");
    CHECK(*other.get_string("string") == "Ada");
}

void iteration_returns_each_entry_once() {
    temporary_folder folder;
    nuthatch::writer writer(folder.file("a.nut"));
    for (int i = 0; i < 5000; i++) writer.insert(std::to_string(i), i);
    writer.finish();
    nuthatch::snapshot snapshot(folder.file("a.nut"));
    std::map<std::string, std::int64_t> found;
    for (const auto &[key, value] : snapshot) found.emplace(key, value.as_i64());
    CHECK(found.size() == 5000 && found["4711"] == 4711);
    std::size_t verified = 0;
    for (const auto &entry : snapshot.verified()) verified += entry.value.in_place();
    CHECK(verified == 5000);
    nuthatch::writer(folder.file("empty.nut")).finish();
    for (const auto &entry : nuthatch::snapshot(folder.file("empty.nut"))) CHECK(entry.key.empty());
}

void many_keys_are_looked_up_at_once() {
    temporary_folder folder;
    write_one_of_each(folder.file("a.nut"));
    nuthatch::snapshot snapshot(folder.file("a.nut"));
    nuthatch::values values;
    snapshot.get_many(std::vector<std::string>{"i64", "nobody", "string"}, values);
    CHECK(values.size() == 3 && values[0]->as_i64() == -36 && !values[1]);
    CHECK(values[2]->as_string() == "Ada");
    const char *keys[] = {"bool"};
    snapshot.get_many(keys, values);
    CHECK(values.size() == 1 && values[0]->as_bool());
    snapshot.get_many(std::vector<std::string_view>{}, values);
    CHECK(values.size() == 0);
}

void compressed_values_own_their_bytes() {
    temporary_folder folder;
    nuthatch::writer_options options;
    options.zstd_level = 3;
    nuthatch::writer writer(folder.file("a.nut"), options);
    for (int i = 0; i < 100; i++) {
        std::string key = std::to_string(i);
        writer.insert("text " + key, key + std::string(1000, 'x'));
        writer.insert("list " + key, std::vector<std::int64_t>(500, i));
        writer.insert("strings " + key, std::vector<std::string>(100, "entry " + key));
    }
    writer.finish();
    nuthatch::snapshot snapshot(folder.file("a.nut"));
    CHECK(snapshot.stats().compressed_entries > 200);
    auto first = snapshot.get_string("text 1"), second = snapshot.get_string("text 2");
    CHECK(first->substr(0, 2) == "1x" && second->substr(0, 2) == "2x" && !first->in_place());
    auto list = snapshot.get_i64_list("list 7");
    auto strings = snapshot.get("strings 8");
    CHECK(list->size() == 500 && (*list)[499] == 7);
    CHECK(strings->as_string_list()[99] == "entry 8" && !strings->in_place());
    nuthatch::values values;
    snapshot.get_many(std::vector<std::string>{"text 3", "text 4"}, values);
    CHECK(values[0]->as_string()[0] == '3' && values[1]->as_string()[0] == '4');
    std::size_t entries = 0;
    for (const auto &entry : snapshot) entries += entry.value.raw().len > 0;
    CHECK(entries == 300);
}

void an_abandoned_writer_leaves_no_file() {
    temporary_folder folder;
    {
        nuthatch::writer writer(folder.file("a.nut"));
        writer.insert("key", 1);
        nuthatch::writer moved(std::move(writer));
        moved.insert("other", 2);
    }
    CHECK(std::filesystem::is_empty(folder.path()));
    nuthatch::writer writer(folder.file("a.nut"));
    writer.insert("key", 1);
    writer.insert("key", 2);
    CHECK(code_of([&] { writer.finish(); }) == "duplicate");
    CHECK(std::filesystem::is_empty(folder.path()));
    CHECK(code_of([&] { writer.insert("key", 3); }) == "handle");
}

void verification_reports_progress_and_passes_exceptions_on() {
    temporary_folder folder;
    write_one_of_each(folder.file("a.nut"));
    nuthatch::snapshot snapshot(folder.file("a.nut"));
    std::uint64_t last = 0;
    snapshot.verify(1, [&](std::uint64_t done, std::uint64_t all) { last = done + all; });
    CHECK(last == 28);
    try {
        snapshot.verify(0, [](auto, auto) { throw std::runtime_error("stop"); });
        CHECK(false);
    } catch (const std::runtime_error &error) {
        CHECK(std::string(error.what()) == "stop");
    }
    CHECK(snapshot.metadata().size() == 1 && snapshot.metadata()[0].second == "test");
}

void a_guarded_file_that_is_truncated_is_unreadable() {
    temporary_folder folder;
    nuthatch::writer writer(folder.file("a.nut"));
    for (int i = 0; i < 100; i++) writer.insert(std::to_string(i), std::string(4096, '0' + i % 10));
    writer.finish();
    nuthatch::open_options options;
    options.guard = true;
    nuthatch::snapshot snapshot(folder.file("a.nut"), options);
    snapshot.check_readable();
    std::filesystem::resize_file(folder.file("a.nut"), 4096);
    CHECK(code_of([&] { snapshot.verify(); }) == "unreadable");
    CHECK(code_of([&] { snapshot.check_readable(); }) == "unreadable");
}

void a_watch_of_generations_follows_the_pointer() {
    temporary_folder folder;
    std::string name = folder.file("users");
    for (int generation : {1, 2}) {
        nuthatch::writer writer(name + "." + std::to_string(generation) + ".nut");
        writer.insert("generation", generation);
        writer.finish();
    }
    nuthatch::publish_generation(name, 1);
    nuthatch::watch_options options;
    options.poll_interval = std::chrono::milliseconds(0);
    auto watch = nuthatch::watch::generations(name, options);
    auto reader = watch.reader();
    CHECK(reader.current().get_i64("generation") == 1 && !watch.refresh());
    auto kept = reader.current().share();
    nuthatch::publish_generation(name, 2);
    CHECK(watch.refresh() && reader.current().get_i64("generation") == 2);
    CHECK(kept.get_i64("generation") == 1 && watch.status().path == name + ".2.nut");
    watch = nuthatch::watch(name + ".1.nut", options);
    CHECK(reader.current().get_i64("generation") == 2);
}

}  // namespace

int main() {
    const std::pair<const char *, void (*)()> tests[] = {
        {"typed lookups return values in place", typed_lookups_return_values_in_place},
        {"an empty list is a list of any type", an_empty_list_is_a_list_of_any_type},
        {"a wrong type names both types", a_wrong_type_names_both_types},
        {"errors have code, offset and errno", errors_have_code_offset_and_errno},
        {"a moved object keeps the snapshot", a_moved_object_keeps_the_snapshot},
        {"closing ends all objects", closing_ends_all_objects_that_share_a_snapshot},
        {"iteration returns each entry once", iteration_returns_each_entry_once},
        {"many keys are looked up at once", many_keys_are_looked_up_at_once},
        {"compressed values own their bytes", compressed_values_own_their_bytes},
        {"an abandoned writer leaves no file", an_abandoned_writer_leaves_no_file},
        {"verification reports progress", verification_reports_progress_and_passes_exceptions_on},
        {"a truncated file is unreadable", a_guarded_file_that_is_truncated_is_unreadable},
        {"a watch follows generations", a_watch_of_generations_follows_the_pointer},
    };
    int failed = 0;
    for (auto [name, test] : tests) {
        try {
            test();
        } catch (const std::exception &error) {
            failed++;
            std::fprintf(stderr, "%s: %s\n", name, error.what());
        }
    }
    std::printf("%zu tests, %d failed\n", std::size(tests), failed);
    return failed == 0 ? 0 : 1;
}
