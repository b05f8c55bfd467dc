// Watches: readers switch to a new file while they read.
#ifndef NUTHATCH_WATCH_HPP
#define NUTHATCH_WATCH_HPP

#include "error.hpp"
#include "snapshot.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace nuthatch {

// Options of a watch.
struct watch_options {
    // How files are opened.
    open_options open;
    // Time between polls for a new file. Zero, or more than 49 days: only refresh() polls.
    std::chrono::milliseconds poll_interval{250};
    // Verify every byte of a file before readers switch to it. Otherwise a file is only opened,
    // which checks its header.
    bool verify = false;

    nuthatch_snapshot_watch_options raw() const noexcept {
        auto ms = poll_interval.count();
        bool polls = ms > 0 && ms < NUTHATCH_SNAPSHOT_NO_POLLING;
        auto interval = polls ? static_cast<std::uint32_t>(ms) : NUTHATCH_SNAPSHOT_NO_POLLING;
        return {open.raw(), interval, verify};
    }
};

// The status of a watch.
struct watch_status {
    // Number of switches to a new file.
    std::uint64_t switched;
    // Number of times that the newest file could not be opened or verified, or that there was no
    // file. The same error in successive polls counts once.
    std::uint64_t rejected;
    // The error that prevents the switch to the newest file, or nothing if readers have that file.
    std::optional<std::string> error;
    // The path of the file that readers read.
    std::string path;
};

// A reader of a watch. One thread at a time may use it. It stays usable when its watch is
// destroyed.
class reader {
  public:
    // Takes ownership of a reader of nuthatch.h.
    explicit reader(nuthatch_snapshot_reader *handle) : handle_(handle), current_(newest()) {}

    // Returns the newest snapshot. It, and its values in place, are valid until the next call of
    // current(), or until the reader is destroyed. snapshot::share() keeps it for longer. Takes no
    // lock, unless there is a new file.
    const snapshot &current() {
        const nuthatch_snapshot *now = nullptr;
        detail::check(nuthatch_snapshot_reader_current, handle_.get(), &now);
        if (now != current_.raw()) current_ = newest();
        return current_;
    }

  private:
    struct closer {
        void operator()(nuthatch_snapshot_reader *reader) const noexcept {
            nuthatch_snapshot_reader_close(reader, nullptr);
        }
    };

    snapshot newest() {
        const nuthatch_snapshot *now = nullptr;
        detail::check(nuthatch_snapshot_reader_current, handle_.get(), &now);
        detail::check(nuthatch_snapshot_retain, now);
        return snapshot(now);
    }

    std::unique_ptr<nuthatch_snapshot_reader, closer> handle_;
    snapshot current_;
};

// A watch of a snapshot that is replaced while it is read. Any thread may use it. The destructor
// waits while the watch opens or verifies a file.
class watch {
  public:
    // Opens the snapshot at a path, and watches for files that are renamed over it.
    explicit watch(std::string_view path, const watch_options &options = {}) {
        auto raw = options.raw();
        detail::check(nuthatch_snapshot_watch_open, detail::data(path), path.size(), &raw,
                      &handle_);
    }

    // Opens the latest of the generations of a name, and watches for later ones. Generation 42 of
    // the name `dir/users` is the file `dir/users.42.nut`; `dir/users.latest` has the number of the
    // latest one.
    static watch generations(std::string_view name, const watch_options &options = {}) {
        watch opened;
        auto raw = options.raw();
        detail::check(nuthatch_snapshot_watch_open_generations, detail::data(name), name.size(),
                      &raw, &opened.handle_);
        return opened;
    }

    watch(watch &&other) noexcept : handle_(std::exchange(other.handle_, 0)) {}
    watch &operator=(watch &&other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    watch(const watch &) = delete;
    watch &operator=(const watch &) = delete;
    ~watch() {
        if (handle_ != 0) nuthatch_snapshot_watch_close(handle_, nullptr);
    }

    // Returns a reader for one thread.
    nuthatch::reader reader() const {
        nuthatch_snapshot_reader *opened = nullptr;
        detail::check(nuthatch_snapshot_reader_open, handle_, &opened);
        return nuthatch::reader(opened);
    }

    // Polls for a new file now. Returns whether readers switch to one. If the newest file is
    // rejected, status() has the error. Waits while another thread opens or verifies a file.
    bool refresh() {
        std::uint32_t switched = 0;
        detail::check(nuthatch_snapshot_watch_refresh, handle_, &switched);
        return switched != 0;
    }

    // Returns the status. Does not wait while a file is opened or verified.
    watch_status status() const {
        auto raw = std::make_unique<nuthatch_snapshot_watch_status>();
        detail::check(nuthatch_snapshot_watch_status_of, handle_, raw.get());
        std::optional<std::string> error;
        if (raw->has_error != 0) error = reinterpret_cast<const char *>(raw->error);
        return {raw->switched, raw->rejected, std::move(error),
                reinterpret_cast<const char *>(raw->path)};
    }

  private:
    watch() = default;

    nuthatch_snapshot_watch handle_ = 0;
};

// Publishes the generation in the file NAME.GENERATION.nut: watches switch their readers to it.
// Throws
// `io` if that file does not exist.
inline void publish_generation(std::string_view name, std::uint64_t generation) {
    detail::check(nuthatch_snapshot_publish_generation, detail::data(name), name.size(),
                  generation);
}

}  // namespace nuthatch

#endif
