// Views of values: strings, lists and bytes without a copy.
#ifndef NUTHATCH_VIEW_HPP
#define NUTHATCH_VIEW_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#if defined(__has_include)
#if __has_include(<version>)
#include <version>
#endif
#endif
#if defined(__cpp_lib_span)
#include <span>
#endif

namespace nuthatch {

#if defined(__cpp_lib_span)
template <class T>
using span = std::span<T>;
#else
// The part of std::span of C++20 that this library needs.
template <class T>
class span {
  public:
    using element_type = T;
    using value_type = std::remove_cv_t<T>;
    using iterator = T *;

    constexpr span() noexcept = default;
    constexpr span(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
    template <std::size_t N>
    constexpr span(T (&array)[N]) noexcept : data_(array), size_(N) {}
    template <class Container,
              class = std::enable_if_t<std::is_convertible_v<
                  std::remove_pointer_t<decltype(std::data(std::declval<Container &>()))> (*)[],
                  T (*)[]>>>
    constexpr span(Container &&container) noexcept
        : data_(std::data(container)), size_(std::size(container)) {}

    constexpr T *data() const noexcept { return data_; }
    constexpr std::size_t size() const noexcept { return size_; }
    constexpr bool empty() const noexcept { return size_ == 0; }
    constexpr T &operator[](std::size_t index) const { return data_[index]; }
    constexpr T *begin() const noexcept { return data_; }
    constexpr T *end() const noexcept { return data_ + size_; }

  private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};
#endif

// A view of a list of strings in its stored form, without alignment. Strings are in UTF-8. Does not
// own memory.
class string_list {
  public:
    class iterator;

    string_list() noexcept = default;
    string_list(const std::uint8_t *stored, std::size_t size) noexcept
        : stored_(stored), size_(size) {}

    // Returns the number of strings.
    std::size_t size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }

    // Returns the string at an index below size().
    std::string_view operator[](std::size_t index) const noexcept {
        std::size_t start = index == 0 ? 0 : end_of(index - 1);
        const auto *text = reinterpret_cast<const char *>(stored_ + 4 + 4 * size_);
        return {text + start, end_of(index) - start};
    }

    iterator begin() const noexcept;
    iterator end() const noexcept;

    // Returns the stored form, which writer::insert_stored accepts; empty without strings.
    span<const std::uint8_t> stored() const noexcept {
        if (size_ == 0) return {};
        return {stored_, 4 + 4 * size_ + end_of(size_ - 1)};
    }

  private:
    // Returns the offset of the end of a string in the text. Files are little-endian.
    std::size_t end_of(std::size_t index) const noexcept {
        std::uint32_t end;
        std::memcpy(&end, stored_ + 4 + 4 * index, sizeof end);
        return end;
    }

    const std::uint8_t *stored_ = nullptr;
    std::size_t size_ = 0;
};

// An iterator over the strings of a list. It does not refer to the list object.
class string_list::iterator {
  public:
    using iterator_category = std::input_iterator_tag;
    using value_type = std::string_view;
    using difference_type = std::ptrdiff_t;
    using pointer = const std::string_view *;
    using reference = std::string_view;

    iterator(string_list list, std::size_t index) noexcept : list_(list), index_(index) {}
    std::string_view operator*() const noexcept { return list_[index_]; }
    iterator &operator++() noexcept {
        ++index_;
        return *this;
    }
    iterator operator++(int) noexcept {
        iterator before = *this;
        ++index_;
        return before;
    }
    bool operator==(const iterator &other) const noexcept { return index_ == other.index_; }
    bool operator!=(const iterator &other) const noexcept { return index_ != other.index_; }

  private:
    string_list list_;
    std::size_t index_;
};

inline string_list::iterator string_list::begin() const noexcept { return {*this, 0}; }
inline string_list::iterator string_list::end() const noexcept { return {*this, size_}; }

// A view of a value. If the value was compressed, this object owns the decompressed bytes, which
// are valid as long as it. Otherwise the view refers to the file, and is valid as long as the
// snapshot.
template <class View>
class held : public View {
  public:
    held(View view, std::unique_ptr<std::uint64_t[]> owned) noexcept
        : View(view), owned_(std::move(owned)) {}

    // Returns the view. It does not own the memory.
    const View &view() const noexcept { return *this; }

    // Returns whether the value is in the file.
    bool in_place() const noexcept { return owned_ == nullptr; }

  private:
    std::unique_ptr<std::uint64_t[]> owned_;
};

using text = held<std::string_view>;
using bytes = held<span<const std::byte>>;
template <class T>
using list = held<span<const T>>;
using strings = held<string_list>;

}  // namespace nuthatch

#endif
