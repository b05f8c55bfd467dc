// Writers of snapshots.
#ifndef NUTHATCH_WRITER_HPP
#define NUTHATCH_WRITER_HPP

#include "error.hpp"
#include "value.hpp"
#include "view.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace nuthatch {

// How rows with the same key are handled.
enum class on_duplicate : std::uint32_t {
    // finish() throws `duplicate`.
    error = NUTHATCH_SNAPSHOT_DUPLICATE_ERROR,
    // The row that was added first is kept.
    first = NUTHATCH_SNAPSHOT_DUPLICATE_FIRST,
    // The row that was added last is kept.
    last = NUTHATCH_SNAPSHOT_DUPLICATE_LAST,
};

// Options of a writer.
struct writer_options {
    nuthatch::on_duplicate on_duplicate = nuthatch::on_duplicate::error;
    // Compress values with zstd at this level, from 1 to 22; 0: no compression. Values that would
    // shrink by less than an eighth stay uncompressed.
    std::uint32_t zstd_level = 0;
    // Maximum number of threads; 0: all cores.
    std::uint32_t threads = 0;
    // Memory budget in bytes, at least 16 MiB; 0: 1 GiB. Rows beyond it are written to temporary
    // files in the folder of the snapshot.
    std::uint64_t memory_bytes = 0;
    // Seed of the key hash.
    std::uint64_t seed = 0;
    // Number of shards of a set, at most 65,536; 0: one file. Each shard needs 16 KiB of the memory
    // budget.
    std::uint32_t shards = 0;

    nuthatch_snapshot_writer_options raw() const noexcept {
        auto compression = zstd_level == 0 ? NUTHATCH_SNAPSHOT_COMPRESSION_NONE
                                           : NUTHATCH_SNAPSHOT_COMPRESSION_ZSTD;
        return {static_cast<std::uint32_t>(on_duplicate),
                static_cast<std::uint32_t>(compression),
                zstd_level,
                threads,
                memory_bytes,
                seed,
                shards,
                0};
    }
};

// The result of a build.
using summary = nuthatch_snapshot_summary;

// A value for writer::insert: a list without elements.
struct empty_list_t {};
inline constexpr empty_list_t empty_list{};

// A writer of a snapshot. Rows are added in any order. Destroying it abandons the snapshot, unless
// finish() was called. One thread at a time may use it.
class writer {
  public:
    // Starts a snapshot that finish() publishes at a path. Until then, a file at the path is
    // unchanged, and the bytes are in a temporary file in the same folder.
    explicit writer(std::string_view path, const writer_options &options = {}) {
        auto raw = options.raw();
        detail::check(nuthatch_snapshot_writer_create, detail::data(path), path.size(), &raw,
                      &handle_);
    }

    writer(writer &&other) noexcept : handle_(std::exchange(other.handle_, 0)) {}
    writer &operator=(writer &&other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    writer(const writer &) = delete;
    writer &operator=(const writer &) = delete;
    ~writer() { abandon(); }

    // Adds a row. The type of the argument determines the type of the value: bool; an integer of up
    // to 64 bits with a sign; a float, stored with 64 bits; text in UTF-8; bytes as a contiguous
    // range of std::byte; a list as a contiguous range of std::int64_t, double or float, or as a
    // range of text; empty_list; or a value of a snapshot. Throws `limit` for a key above 65,535
    // bytes or a value above 4 GiB.
    template <class T>
    void insert(std::string_view key, const T &value) {
        using plain = std::decay_t<T>;
        if constexpr (std::is_same_v<plain, bool>) {
            call(nuthatch_snapshot_writer_insert_bool, key, std::uint32_t{value});
        } else if constexpr (std::is_integral_v<plain>) {
            static_assert(sizeof(plain) < 8 || std::is_signed_v<plain>, "may not fit in 64 bits");
            call(nuthatch_snapshot_writer_insert_i64, key, std::int64_t{value});
        } else if constexpr (std::is_floating_point_v<plain>) {
            call(nuthatch_snapshot_writer_insert_f64, key, static_cast<double>(value));
        } else if constexpr (std::is_convertible_v<const T &, std::string_view>) {
            std::string_view text = value;
            call(nuthatch_snapshot_writer_insert_string, key, detail::data(text), text.size());
        } else if constexpr (std::is_same_v<plain, empty_list_t>) {
            auto *none = static_cast<const std::uint8_t *>(nullptr);
            call(nuthatch_snapshot_writer_insert, key, NUTHATCH_SNAPSHOT_EMPTY_LIST, none,
                 std::size_t{0});
        } else if constexpr (std::is_base_of_v<value_view, plain>) {
            insert_value(key, value);
        } else {
            insert_range(key, value);
        }
    }

    // Adds a row with a value in its stored form, as nuthatch_snapshot_writer_insert.
    void insert_stored(std::string_view key, type type, span<const std::uint8_t> value) {
        call(nuthatch_snapshot_writer_insert, key, static_cast<std::uint32_t>(type), value.data(),
             value.size());
    }

    // Sets a value of the metadata: any bytes, under a name in UTF-8 of 1 to 255 bytes. Replaces an
    // earlier value of that name. All metadata takes at most 1 MiB.
    void set_metadata(std::string_view name, std::string_view value) {
        call(nuthatch_snapshot_writer_set_metadata, name, detail::data(value), value.size());
    }

    // Writes the file, syncs it and publishes it at its path. The writer cannot be used again, even
    // after an error. If this throws, the path is unchanged, except after `not-durable`.
    summary finish() {
        summary summary;
        detail::check(nuthatch_snapshot_writer_finish, std::exchange(handle_, 0), &summary);
        return summary;
    }

    // Abandons the snapshot: removes its temporary files.
    void abandon() noexcept {
        if (handle_ != 0) nuthatch_snapshot_writer_abandon(std::exchange(handle_, 0), nullptr);
    }

  private:
    template <class Function, class... Arguments>
    void call(Function function, std::string_view key, Arguments... arguments) {
        detail::check(function, handle_, detail::data(key), key.size(), arguments...);
    }

    void insert_value(std::string_view key, const value_view &value) {
        switch (value.type()) {
            case type::bytes: return insert(key, value.as_bytes());
            case type::string: return insert(key, value.as_string());
            case type::boolean: return insert(key, value.as_bool());
            case type::i64: return insert(key, value.as_i64());
            case type::f64: return insert(key, value.as_f64());
            case type::i64_list: return insert(key, value.as_i64_list());
            case type::f64_list: return insert(key, value.as_f64_list());
            case type::f32_list: return insert(key, value.as_f32_list());
            case type::string_list:
                return insert_stored(key, type::string_list, value.as_string_list().stored());
            case type::empty_list: return insert(key, empty_list);
        }
    }

    template <class Range>
    void insert_range(std::string_view key, const Range &range) {
        using element = std::decay_t<decltype(*std::begin(range))>;
        if constexpr (std::is_convertible_v<element, std::string_view>) {
            std::vector<nuthatch_snapshot_bytes> strings;
            for (const auto &string : range) {
                std::string_view text = string;
                strings.push_back({detail::data(text), text.size()});
            }
            call(nuthatch_snapshot_writer_insert_string_list, key, strings.data(), strings.size());
        } else if constexpr (std::is_same_v<element, std::byte>) {
            auto *bytes = reinterpret_cast<const std::uint8_t *>(std::data(range));
            call(nuthatch_snapshot_writer_insert_bytes, key, bytes, std::size(range));
        } else if constexpr (std::is_same_v<element, double>) {
            call(nuthatch_snapshot_writer_insert_f64_list, key, std::data(range), std::size(range));
        } else if constexpr (std::is_same_v<element, float>) {
            call(nuthatch_snapshot_writer_insert_f32_list, key, std::data(range), std::size(range));
        } else {
            static_assert(std::is_same_v<element, std::int64_t>, "no type of a snapshot");
            call(nuthatch_snapshot_writer_insert_i64_list, key, std::data(range), std::size(range));
        }
    }

    nuthatch_snapshot_writer handle_ = 0;
};

}  // namespace nuthatch

#endif
