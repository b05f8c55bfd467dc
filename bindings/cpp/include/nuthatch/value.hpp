// Values of any type.
#ifndef NUTHATCH_VALUE_HPP
#define NUTHATCH_VALUE_HPP

#include "error.hpp"
#include "view.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace nuthatch {

// The type of a value.
enum class type : std::uint32_t {
    bytes = NUTHATCH_SNAPSHOT_BYTES,
    string = NUTHATCH_SNAPSHOT_STRING,
    boolean = NUTHATCH_SNAPSHOT_BOOL,
    i64 = NUTHATCH_SNAPSHOT_I64,
    f64 = NUTHATCH_SNAPSHOT_F64,
    i64_list = NUTHATCH_SNAPSHOT_I64_LIST,
    f64_list = NUTHATCH_SNAPSHOT_F64_LIST,
    f32_list = NUTHATCH_SNAPSHOT_F32_LIST,
    string_list = NUTHATCH_SNAPSHOT_STRING_LIST,
    // A list without elements, which can be read as a list of any type.
    empty_list = NUTHATCH_SNAPSHOT_EMPTY_LIST,
};

// Returns the name of a type, as in messages and in `nuthatch info`.
inline const char *name(type of) noexcept {
    switch (of) {
        case type::bytes: return "bytes";
        case type::string: return "string";
        case type::boolean: return "bool";
        case type::i64: return "i64";
        case type::f64: return "f64";
        case type::i64_list: return "list of i64";
        case type::f64_list: return "list of f64";
        case type::f32_list: return "list of f32";
        case type::string_list: return "list of string";
        case type::empty_list: return "empty list";
    }
    return "unknown";
}

// A view of a value of any type. Does not own memory: the comment of the function that returns it
// says how long it is valid.
class value_view {
  public:
    explicit value_view(const nuthatch_snapshot_value &from) noexcept : value_(from) {}

    nuthatch::type type() const noexcept { return static_cast<nuthatch::type>(value_.type); }

    // Returns whether the value is in the file.
    bool in_place() const noexcept { return value_.in_place != 0; }

    // Each of these returns the value, and throws `wrong-type` if it has another type. An empty
    // list can be read as a list of any type.
    span<const std::byte> as_bytes() const {
        require(type::bytes);
        return {reinterpret_cast<const std::byte *>(value_.data.bytes), value_.len};
    }
    std::string_view as_string() const {
        require(type::string);
        return {reinterpret_cast<const char *>(value_.data.bytes), value_.len};
    }
    bool as_bool() const {
        require(type::boolean);
        return value_.data.i64 != 0;
    }
    std::int64_t as_i64() const {
        require(type::i64);
        return value_.data.i64;
    }
    double as_f64() const {
        require(type::f64);
        return value_.data.f64;
    }
    span<const std::int64_t> as_i64_list() const {
        if (!require_list(type::i64_list)) return {};
        return {value_.data.i64_list, value_.len};
    }
    span<const double> as_f64_list() const {
        if (!require_list(type::f64_list)) return {};
        return {value_.data.f64_list, value_.len};
    }
    span<const float> as_f32_list() const {
        if (!require_list(type::f32_list)) return {};
        return {value_.data.f32_list, value_.len};
    }
    nuthatch::string_list as_string_list() const {
        if (!require_list(type::string_list)) return {};
        return {value_.data.string_list, value_.len};
    }

    // Returns the struct of nuthatch.h.
    const nuthatch_snapshot_value &raw() const noexcept { return value_; }

  protected:
    nuthatch_snapshot_value value_;

  private:
    using type_of = nuthatch::type;

    void require(type_of requested) const {
        if (type() != requested) fail(requested);
    }

    // Returns whether the list has elements.
    bool require_list(type_of requested) const {
        if (type() == type_of::empty_list) return false;
        require(requested);
        return true;
    }

    [[noreturn]] void fail(type_of requested) const {
        std::string message = "wrong type: requested ";
        message += name(requested);
        message += ", found ";
        message += name(type());
        throw error(NUTHATCH_ERROR_WRONG_TYPE, message.c_str());
    }
};

}  // namespace nuthatch

#endif
