// Errors. What stops us (disk full, bad data file) is one exception type with a message for the person; what cannot
// happen is KS_CHECK, always on. What we measure (a wrong or crashing candidate) is neither: it is a value.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ks {

/// Something that stops the work at hand. The message reads like a sentence and names the file, line and mend.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(message) {}
  template <typename... Args>
  requires(sizeof...(Args) > 0) explicit Error(fmt::format_string<Args...> format, Args&&... args)
      : std::runtime_error(fmt::format(format, std::forward<Args>(args)...)) {}
};

namespace base {
[[noreturn]] void check_failed(const char* condition, const char* why, const char* file, int line);

/// The entry of `known` that is nearest to `word` by edit distance, or "" if none is near (for "did you mean").
std::string nearest_word(const std::string& word, const std::vector<std::string>& known);
}  // namespace base
}  // namespace ks

/// Aborts with `why` if `condition` is false: a programmer's error, never a user's.
#define KS_CHECK(condition, why) ((condition) ? (void)0 : ::ks::base::check_failed(#condition, why, __FILE__, __LINE__))
