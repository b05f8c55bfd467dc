// Errors.
#ifndef NUTHATCH_ERROR_HPP
#define NUTHATCH_ERROR_HPP

#include <nuthatch.h>

#include <cstdint>
#include <stdexcept>
#include <string_view>

namespace nuthatch {

// An error of the library. The message names the file or the parameter, what was expected and what
// was found.
class error : public std::runtime_error {
  public:
    explicit error(const nuthatch_error &from)
        : std::runtime_error(reinterpret_cast<const char *>(from.message)),
          number_(from.code),
          system_(from.system),
          position_(from.position) {}

    error(std::int32_t number, const char *message)
        : std::runtime_error(message), number_(number), system_(0), position_(0) {}

    // Returns the code, such as "corrupt": a name of testdata/errors.csv, or "closed", "argument",
    // "handle" or "panic".
    std::string_view code() const noexcept { return nuthatch_code_name(number_); }

    // Returns the number of the code in nuthatch.h.
    std::int32_t number() const noexcept { return number_; }

    // Returns the error number of the operating system (errno), or 0.
    int system() const noexcept { return system_; }

    // Returns the offset in the file in bytes, for the codes "not-a-snapshot", "unsupported" and
    // "corrupt"; the number of the second row with the key, counted from 0, for "duplicate";
    // otherwise 0.
    std::uint64_t offset() const noexcept { return position_; }

  private:
    std::int32_t number_;
    int system_;
    std::uint64_t position_;
};

namespace detail {

[[noreturn]] inline void fail(const nuthatch_error &from) { throw error(from); }

// Calls a function of nuthatch.h, whose last parameter is the error. Throws its error.
template <class Function, class... Arguments>
void check(Function function, Arguments... arguments) {
    nuthatch_error failure;
    if (function(arguments..., &failure) != 0) fail(failure);
}

inline const std::uint8_t *data(std::string_view bytes) noexcept {
    return reinterpret_cast<const std::uint8_t *>(bytes.data());
}

inline std::string_view view(const nuthatch_snapshot_bytes &bytes) noexcept {
    return {reinterpret_cast<const char *>(bytes.data), bytes.len};
}

}  // namespace detail
}  // namespace nuthatch

#endif
