// What a person sees of a run: a line for each evaluation, question and refusal, and on a terminal a last line that is
// rewritten: evaluations, best so far, the question asked, time left. Every line fits the terminal, however narrow;
// without a terminal only the lasting lines are printed.
#pragma once

#include <cstdio>
#include <mutex>
#include <string>

namespace ks::run {

class Progress {
 public:
  /// `width` 0: the terminal's. `is_live`: rewrite a status line on `status`.
  Progress(std::FILE* lasting, std::FILE* status, bool is_live, size_t width);
  ~Progress();
  /// A line that stays.
  void say(const std::string& line);
  /// The line that is rewritten, most important part first.
  void show(const std::string& line);

 private:
  std::string fit(const std::string& line) const;
  std::FILE *lasting_, *status_;
  bool is_live_;
  size_t width_;
  std::mutex mutex_;
};

/// "2:07" for seconds, "1:02:07" from an hour on; "-" without a limit.
std::string clock_text(double seconds);

}  // namespace ks::run
