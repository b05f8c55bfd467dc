// Open snapshots.
#ifndef NUTHATCH_SNAPSHOT_HPP
#define NUTHATCH_SNAPSHOT_HPP

#include "error.hpp"
#include "iterator.hpp"
#include "value.hpp"
#include "view.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace nuthatch {

// Where the bytes of a snapshot are kept.
enum class residency : std::uint32_t {
    // Mapped and read on demand. All processes share the pages.
    mapped = NUTHATCH_SNAPSHOT_MAPPED,
    // Mapped, and every page is read when the snapshot is opened.
    populated = NUTHATCH_SNAPSHOT_POPULATED,
    // Copied into memory of this process, on huge pages if the system provides them.
    huge_pages = NUTHATCH_SNAPSHOT_HUGE_PAGES,
};

// Options for opening a snapshot.
struct open_options {
    nuthatch::residency residency = nuthatch::residency::mapped;
    // Lock the bytes in memory. Needs the privilege CAP_IPC_LOCK or a sufficient RLIMIT_MEMLOCK.
    bool lock = false;
    // Guard the map by a handler of SIGBUS, which is installed once in the process: a truncated
    // file does not end the process, but its missing bytes read as zeros, and check_readable(),
    // called after lookups, throws `unreadable`. At most 4,096 files are guarded at once.
    bool guard = false;

    nuthatch_snapshot_options raw() const noexcept {
        return {static_cast<std::uint32_t>(residency), lock, guard, 0};
    }
};

// Statistics, with the names of `nuthatch info --json`.
using stats = nuthatch_snapshot_stats;

namespace detail {

// Returns the buffer for decompressed values of this thread.
inline nuthatch_snapshot_scratch *scratch() {
    struct owner {
        nuthatch_snapshot_scratch *buffer = nullptr;
        owner() { check(nuthatch_snapshot_scratch_create, &buffer); }
        ~owner() { nuthatch_snapshot_scratch_free(buffer, nullptr); }
        owner(const owner &) = delete;
        owner &operator=(const owner &) = delete;
    };
    thread_local owner of_thread;
    return of_thread.buffer;
}

// Copies a decompressed value to memory of its own.
inline std::unique_ptr<std::uint64_t[]> own(nuthatch_snapshot_value &value) {
    std::size_t len = value.len;
    switch (static_cast<type>(value.type)) {
        case type::boolean:
        case type::i64:
        case type::f64:
        case type::empty_list: return nullptr;
        case type::i64_list:
        case type::f64_list: len *= 8; break;
        case type::f32_list: len *= 4; break;
        case type::string_list:
            len = string_list(value.data.string_list, value.len).stored().size();
            break;
        case type::bytes:
        case type::string: break;
    }
    auto owned = std::make_unique<std::uint64_t[]>(len / 8 + 1);
    std::memcpy(owned.get(), value.data.bytes, len);
    value.data.bytes = reinterpret_cast<const std::uint8_t *>(owned.get());
    return owned;
}

}  // namespace detail

// A value of any type. If it was compressed, it owns the decompressed bytes. Otherwise it refers to
// the file, and is valid as long as the snapshot.
class value : public value_view {
  public:
    value(const nuthatch_snapshot_value &from, std::unique_ptr<std::uint64_t[]> owned) noexcept
        : value_view(from), owned_(std::move(owned)) {}

  private:
    std::unique_ptr<std::uint64_t[]> owned_;
};

// The values of many keys, and buffers that are reused from call to call. One thread at a time may
// use it. Its values are valid until the next call of get_many with it, and as long as the
// snapshot.
class values {
  public:
    values() { detail::check(nuthatch_snapshot_scratch_create, &scratch_); }
    ~values() { nuthatch_snapshot_scratch_free(scratch_, nullptr); }
    values(const values &) = delete;
    values &operator=(const values &) = delete;

    // Returns the number of keys.
    std::size_t size() const noexcept { return values_.size(); }

    // Returns the value of the key at an index below size(), or nothing for a missing key.
    std::optional<value_view> operator[](std::size_t index) const noexcept {
        const nuthatch_snapshot_value &value = values_[index];
        if (value.type == NUTHATCH_SNAPSHOT_ABSENT) return std::nullopt;
        return value_view(value);
    }

  private:
    friend class snapshot;
    std::vector<nuthatch_snapshot_bytes> keys_;
    std::vector<nuthatch_snapshot_value> values_;
    nuthatch_snapshot_scratch *scratch_ = nullptr;
};

// An open snapshot: a file, or a set of shards by the path of its manifest.
//
// Any number of threads may read one object. Values in place are valid until the last object that
// shares the snapshot is destroyed. close() can be called while other threads read: their later
// lookups throw `closed`. But no other thread may use an object while it is destroyed: a thread
// that may outlive an object needs its own, from share().
class snapshot {
  public:
    // Opens the snapshot at a path.
    explicit snapshot(std::string_view path, const open_options &options = {}) {
        auto raw = options.raw();
        detail::check(nuthatch_snapshot_open, detail::data(path), path.size(), &raw, &handle_);
        find_compressed();
    }

    // Opens a snapshot from the bytes of one file. Copies the bytes.
    static snapshot from_bytes(span<const std::byte> bytes) {
        const nuthatch_snapshot *handle = nullptr;
        const auto *data = reinterpret_cast<const std::uint8_t *>(bytes.data());
        detail::check(nuthatch_snapshot_open_bytes, data, bytes.size(), &handle);
        return snapshot(handle);
    }

    // Takes ownership of a reference of nuthatch.h.
    explicit snapshot(const nuthatch_snapshot *handle) : handle_(handle) { find_compressed(); }

    snapshot(snapshot &&other) noexcept
        : handle_(std::exchange(other.handle_, nullptr)), compressed_(other.compressed_) {}
    snapshot &operator=(snapshot &&other) noexcept {
        std::swap(handle_, other.handle_);
        std::swap(compressed_, other.compressed_);
        return *this;
    }
    snapshot(const snapshot &) = delete;
    snapshot &operator=(const snapshot &) = delete;
    ~snapshot() {
        if (handle_ != nullptr) nuthatch_snapshot_close(handle_, nullptr);
    }

    // Returns another object for the same snapshot, for another thread or another owner.
    snapshot share() const {
        detail::check(nuthatch_snapshot_retain, handle_);
        return snapshot(handle_, compressed_);
    }

    // Ends reading: later lookups in all threads, of all objects that share the snapshot, throw
    // `closed`. The file is unmapped when the last object is destroyed. Values in place stay valid
    // until then.
    void close() { detail::check(nuthatch_snapshot_stop, handle_); }

    // Returns the value of a key, or nothing for a missing key.
    std::optional<value> get(std::string_view key) const {
        nuthatch_snapshot_value found;
        auto owned = find<nuthatch_snapshot_get>(key, found);
        if (found.type == NUTHATCH_SNAPSHOT_ABSENT) return std::nullopt;
        return value(found, std::move(owned));
    }

    // Each of these returns the value of a key, or nothing for a missing key, and throws
    // `wrong-type` for a value of another type. An empty list can be read as a list of any type.
    std::optional<bytes> get_bytes(std::string_view key) const {
        return get_span<const std::byte, nuthatch_snapshot_get_bytes>(key);
    }
    std::optional<text> get_string(std::string_view key) const {
        nuthatch_snapshot_value found;
        auto owned = find<nuthatch_snapshot_get_string>(key, found);
        if (found.type == NUTHATCH_SNAPSHOT_ABSENT) return std::nullopt;
        const auto *data = reinterpret_cast<const char *>(found.data.bytes);
        return text({data, found.len}, std::move(owned));
    }
    std::optional<bool> get_bool(std::string_view key) const {
        nuthatch_snapshot_value found;
        find<nuthatch_snapshot_get_bool>(key, found);
        if (found.type == NUTHATCH_SNAPSHOT_ABSENT) return std::nullopt;
        return found.data.i64 != 0;
    }
    std::optional<std::int64_t> get_i64(std::string_view key) const {
        nuthatch_snapshot_value found;
        find<nuthatch_snapshot_get_i64>(key, found);
        if (found.type == NUTHATCH_SNAPSHOT_ABSENT) return std::nullopt;
        return found.data.i64;
    }
    std::optional<double> get_f64(std::string_view key) const {
        nuthatch_snapshot_value found;
        find<nuthatch_snapshot_get_f64>(key, found);
        if (found.type == NUTHATCH_SNAPSHOT_ABSENT) return std::nullopt;
        return found.data.f64;
    }
    std::optional<list<std::int64_t>> get_i64_list(std::string_view key) const {
        return get_span<const std::int64_t, nuthatch_snapshot_get_i64_list>(key);
    }
    std::optional<list<double>> get_f64_list(std::string_view key) const {
        return get_span<const double, nuthatch_snapshot_get_f64_list>(key);
    }
    std::optional<list<float>> get_f32_list(std::string_view key) const {
        return get_span<const float, nuthatch_snapshot_get_f32_list>(key);
    }
    std::optional<strings> get_string_list(std::string_view key) const {
        nuthatch_snapshot_value found;
        auto owned = find<nuthatch_snapshot_get_string_list>(key, found);
        if (found.type == NUTHATCH_SNAPSHOT_ABSENT) return std::nullopt;
        return strings({found.data.string_list, found.len}, std::move(owned));
    }

    // Returns whether a key exists.
    bool contains(std::string_view key) const {
        std::uint32_t is_found = 0;
        auto *data = detail::data(key);
        detail::check(nuthatch_snapshot_contains, handle_, data, key.size(), &is_found);
        return is_found != 0;
    }

    // Returns the type of the value of a key, or nothing for a missing key. Does not decode the
    // value.
    std::optional<type> type_of(std::string_view key) const {
        std::uint32_t code = 0;
        auto *data = detail::data(key);
        detail::check(nuthatch_snapshot_type_of, handle_, data, key.size(), &code);
        if (code == NUTHATCH_SNAPSHOT_ABSENT) return std::nullopt;
        return static_cast<type>(code);
    }

    // Looks up all keys of a range of strings that has a size, and puts their values into `into`,
    // in the order of the keys. Faster than single lookups in large files, because memory accesses
    // of several keys overlap. If it throws, the contents of `into` are unspecified.
    template <class Keys>
    void get_many(const Keys &keys, values &into) const {
        into.keys_.resize(std::size(keys));
        into.values_.resize(into.keys_.size());
        std::size_t at = 0;
        for (const auto &key : keys) {
            std::string_view view = key;
            into.keys_[at++] = {detail::data(view), view.size()};
        }
        detail::check(nuthatch_snapshot_get_many, handle_, into.keys_.data(), into.keys_.size(),
                      into.scratch_, into.values_.data());
    }

    // Returns the number of entries.
    std::uint64_t size() const {
        std::uint64_t len = 0;
        detail::check(nuthatch_snapshot_len, handle_, &len);
        return len;
    }
    bool empty() const { return size() == 0; }

    // Returns an iterator over all entries, in the order of the file, which is unrelated to the
    // order of the keys.
    iterator begin() const { return entries(handle_, false).begin(); }
    end_of_entries end() const noexcept { return {}; }

    // Returns the entries as a range that checks the checksums of each partition of the file before
    // it returns an entry of it. Use it to copy entries: damage is then an error, not a wrong
    // value.
    entries verified() const noexcept { return {handle_, true}; }

    // Returns statistics. Reads headers only.
    nuthatch::stats stats() const {
        nuthatch::stats stats;
        detail::check(nuthatch_snapshot_stats_of, handle_, &stats);
        return stats;
    }

    // Returns names and values of the metadata, in ascending order of the names. They are valid as
    // long as the snapshot. Throws `corrupt` if the checksum of the metadata is wrong.
    std::vector<std::pair<std::string_view, std::string_view>> metadata() const {
        std::size_t count = 0;
        auto *none = static_cast<nuthatch_snapshot_metadata_pair *>(nullptr);
        detail::check(nuthatch_snapshot_metadata, handle_, none, std::size_t{0}, &count);
        std::vector<nuthatch_snapshot_metadata_pair> raw(count);
        detail::check(nuthatch_snapshot_metadata, handle_, raw.data(), count, &count);
        std::vector<std::pair<std::string_view, std::string_view>> pairs;
        for (const auto &pair : raw) {
            pairs.emplace_back(detail::view(pair.name), detail::view(pair.value));
        }
        return pairs;
    }

    // Verifies every byte on `threads` threads; 0: one for each core. Throws `corrupt` at the first
    // damage. Several threads call `progress` at once, with the number of verified entries and of
    // all entries. After `progress` has thrown an exception, it is not called again, and verify()
    // throws the exception when the verification has succeeded.
    void verify(std::uint32_t threads = 0,
                std::function<void(std::uint64_t, std::uint64_t)> progress = nullptr) const {
        reporter reporter{std::move(progress), {}, nullptr};
        detail::check(nuthatch_snapshot_verify, handle_, threads,
                      reporter.report ? &reporter::call : nullptr, static_cast<void *>(&reporter));
        if (reporter.thrown) std::rethrow_exception(reporter.thrown);
    }

    // Throws `unreadable` if the file was truncated or its device failed since it was opened with
    // the option `guard`. If it does not throw, everything read before the call came from the file.
    void check_readable() const { detail::check(nuthatch_snapshot_check_readable, handle_); }

    // Returns the pointer of nuthatch.h, which this object owns.
    const nuthatch_snapshot *raw() const noexcept { return handle_; }

  private:
    // Memory of a decompressed value, or null for a value in place.
    using owner = std::unique_ptr<std::uint64_t[]>;

    using getter = decltype(&nuthatch_snapshot_get);

    // The callback of a verification.
    struct reporter {
        std::function<void(std::uint64_t, std::uint64_t)> report;
        std::mutex mutex;
        std::exception_ptr thrown;

        static void call(void *user, std::uint64_t done, std::uint64_t all) noexcept {
            auto &self = *static_cast<reporter *>(user);
            try {
                {
                    std::lock_guard<std::mutex> lock(self.mutex);
                    if (self.thrown) return;
                }
                self.report(done, all);
            } catch (...) {
                std::lock_guard<std::mutex> lock(self.mutex);
                self.thrown = std::current_exception();
            }
        }
    };

    snapshot(const nuthatch_snapshot *handle, bool compressed) noexcept
        : handle_(handle), compressed_(compressed) {}

    void find_compressed() {
        try {
            compressed_ = stats().compressed_entries > 0;
        } catch (...) {
            nuthatch_snapshot_close(handle_, nullptr);
            throw;
        }
    }

    // Looks up a key, and writes the value. Small, so that it is part of the caller.
    template <getter look_up>
    owner find(std::string_view key, nuthatch_snapshot_value &found) const {
        auto *data = detail::data(key);
        bool is_found = !compressed_ &&
                        look_up(handle_, data, key.size(), nullptr, &found, nullptr) == 0;
        return is_found ? nullptr : find_compressed(look_up, key, found);
    }

    // Looks up a key. If the value is compressed, decompresses it into memory of its own. In a
    // damaged file a value can be compressed although the header counts none.
    [[gnu::noinline]] owner find_compressed(getter look_up, std::string_view key,
                                            nuthatch_snapshot_value &found) const {
        detail::check(look_up, handle_, detail::data(key), key.size(), detail::scratch(), &found);
        bool is_owned = found.in_place == 0 && found.type != NUTHATCH_SNAPSHOT_ABSENT;
        return is_owned ? detail::own(found) : nullptr;
    }

    // Looks up a value whose elements are in place.
    template <class T, getter look_up>
    std::optional<held<span<T>>> get_span(std::string_view key) const {
        nuthatch_snapshot_value found;
        auto owned = find<look_up>(key, found);
        if (found.type == NUTHATCH_SNAPSHOT_ABSENT) return std::nullopt;
        const auto *data = reinterpret_cast<T *>(found.data.bytes);
        return held<span<T>>({data, found.len}, std::move(owned));
    }

    const nuthatch_snapshot *handle_ = nullptr;
    bool compressed_ = false;
};

}  // namespace nuthatch

#endif
