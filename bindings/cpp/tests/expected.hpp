// Keys and values in the JSON form of testdata/snapshot.
#ifndef EXPECTED_HPP
#define EXPECTED_HPP

#include "json.hpp"

#include <nuthatch.hpp>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

inline std::string from_base64(const std::string &text) {
    const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string bytes;
    unsigned bits = 0, count = 0;
    for (char digit : text) {
        if (digit == '=') break;
        bits = bits << 6 | static_cast<unsigned>(digits.find(digit));
        count += 6;
        if (count >= 8) {
            count -= 8;
            bytes += static_cast<char>(bits >> count & 0xff);
        }
    }
    return bytes;
}

// Returns the bytes of a key, of bytes or of a string.
inline std::string bytes_of(const json &value) {
    const json *encoded = value.find("$bytes");
    return encoded == nullptr ? value.text : from_base64(encoded->text);
}

// Returns the bits of a float. `Bits` is the integer of the same size.
template <class Float, class Bits>
Bits bits_of(const json &value) {
    using limits = std::numeric_limits<Float>;
    if (value.kind == json::string && value.text.rfind("0x", 0) == 0) {
        return static_cast<Bits>(std::strtoull(value.text.c_str(), nullptr, 16));
    }
    Float number;
    if (value.text == "NaN") {
        number = limits::quiet_NaN();
    } else if (value.text == "Infinity") {
        number = limits::infinity();
    } else if (value.text == "-Infinity") {
        number = -limits::infinity();
    } else {
        number = static_cast<Float>(std::strtod(value.text.c_str(), nullptr));
    }
    Bits bits;
    std::memcpy(&bits, &number, sizeof bits);
    return bits;
}

// Returns whether a list has these floats, bit by bit.
template <class Bits, class Float>
bool equal_floats(nuthatch::span<const Float> found, const json &expected) {
    if (found.size() != expected.items.size()) return false;
    for (std::size_t i = 0; i < found.size(); i++) {
        Bits bits;
        std::memcpy(&bits, &found[i], sizeof bits);
        if (bits != bits_of<Float, Bits>(expected.items[i])) return false;
    }
    return true;
}

inline bool equal_strings(const nuthatch::string_list &found, const json &expected) {
    std::size_t at = 0;
    for (std::string_view text : found) {
        if (at >= expected.items.size() || text != expected.items[at++].text) return false;
    }
    return at == expected.items.size();
}

inline bool equal_integers(nuthatch::span<const std::int64_t> found, const json &expected) {
    if (found.size() != expected.items.size()) return false;
    for (std::size_t i = 0; i < found.size(); i++) {
        if (std::to_string(found[i]) != expected.items[i].text) return false;
    }
    return true;
}

// Returns whether a value has this JSON form. Floats are compared bit by bit.
inline bool equal(const nuthatch::value_view &found, const json &expected) {
    using nuthatch::type;
    const json *f64 = expected.find("$f64"), *f32 = expected.find("$f32");
    switch (found.type()) {
        case type::bytes: {
            auto bytes = found.as_bytes();
            std::string wanted = bytes_of(expected);
            return expected.find("$bytes") != nullptr && bytes.size() == wanted.size() &&
                   (wanted.empty() || std::memcmp(bytes.data(), wanted.data(), wanted.size()) == 0);
        }
        case type::string:
            return expected.kind == json::string && found.as_string() == expected.text;
        case type::boolean:
            return expected.kind == json::boolean && found.as_bool() == expected.is_true();
        case type::i64: return std::to_string(found.as_i64()) == expected.text;
        case type::f64: {
            double number = found.as_f64();
            return equal_floats<std::uint64_t>(nuthatch::span<const double>(&number, 1),
                                               json{json::array, {}, {f64 ? *f64 : expected}, {}});
        }
        case type::i64_list: return equal_integers(found.as_i64_list(), expected);
        case type::f64_list:
            return equal_floats<std::uint64_t>(found.as_f64_list(), f64 ? *f64 : expected);
        case type::f32_list: return f32 && equal_floats<std::uint32_t>(found.as_f32_list(), *f32);
        case type::string_list: return equal_strings(found.as_string_list(), expected);
        case type::empty_list: return expected.kind == json::array && expected.items.empty();
    }
    return false;
}

#endif
