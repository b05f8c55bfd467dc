// Iteration over the entries of a snapshot.
#ifndef NUTHATCH_ITERATOR_HPP
#define NUTHATCH_ITERATOR_HPP

#include "error.hpp"
#include "value.hpp"

#include <cstddef>
#include <iterator>
#include <memory>
#include <string_view>

namespace nuthatch {

// An entry of a snapshot. The key, and a value in place, are valid as long as the snapshot. A
// decompressed value is valid until the iterator is incremented or destroyed.
struct entry {
    std::string_view key;
    value_view value;
};

// The end of all entries.
struct end_of_entries {};

// An iterator over entries. It keeps the snapshot open. begin() and the increment throw if the file
// is damaged or the snapshot was closed. After an increment that throws, the iterator is at the
// end.
class iterator {
  public:
    using iterator_category = std::input_iterator_tag;
    using value_type = entry;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = entry;

    explicit iterator(nuthatch_snapshot_iterator *from) : from_(from) { fill(); }

    entry operator*() const noexcept {
        const nuthatch_snapshot_entry &entry = entries_[at_];
        const auto *key = reinterpret_cast<const char *>(entry.key);
        return {{key, entry.key_len}, value_view(entry.value)};
    }

    iterator &operator++() {
        if (++at_ == count_) fill();
        return *this;
    }

    bool operator==(end_of_entries) const noexcept { return count_ == 0; }
    bool operator!=(end_of_entries) const noexcept { return count_ != 0; }

  private:
    struct closer {
        void operator()(nuthatch_snapshot_iterator *iterator) const noexcept {
            nuthatch_snapshot_iterator_close(iterator, nullptr);
        }
    };

    void fill() {
        at_ = count_ = 0;
        detail::check(nuthatch_snapshot_iterator_next, from_.get(), &entries_, &count_);
    }

    std::unique_ptr<nuthatch_snapshot_iterator, closer> from_;
    const nuthatch_snapshot_entry *entries_ = nullptr;
    std::size_t count_ = 0;
    std::size_t at_ = 0;
};

// All entries of a snapshot, as a range. begin() must be called while the snapshot object exists.
class entries {
  public:
    entries(const nuthatch_snapshot *snapshot, bool verified) noexcept
        : snapshot_(snapshot), verified_(verified) {}

    iterator begin() const {
        nuthatch_snapshot_iterator *opened = nullptr;
        detail::check(nuthatch_snapshot_iterator_open, snapshot_,
                      static_cast<std::uint32_t>(verified_), &opened);
        return iterator(opened);
    }
    end_of_entries end() const noexcept { return {}; }

  private:
    const nuthatch_snapshot *snapshot_;
    bool verified_;
};

}  // namespace nuthatch

#endif
