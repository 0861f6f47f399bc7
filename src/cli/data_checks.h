// What `kernelseek data check` collects.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace ks::cli {

/// Files looked at and what is wrong with them; one problem does not hide the next.
struct DataReport {
  int files = 0;
  std::string current;
  std::vector<std::string> problems;
  /// Counts a file and catches what `body` throws about it.
  void check(const std::string& file, const std::function<void()>& body);
  /// A further part of the same file.
  void check_part(const std::function<void()>& body);
};

/// Checks that other commands' files add.
std::vector<std::function<void(DataReport&)>>& more_data_checks();

}  // namespace ks::cli
