// Constants that a candidate's author offers for tuning: lines such as
//   constexpr int kRows = 8;  // @tune kRows {4, 8, 16}
// The name is the one before "=" (or after #define); the braces hold every value that may stand there, as text.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"

namespace ks::agents {

/// One tunable constant.
struct TunePoint {
  std::string name;
  std::string file;  ///< relative to the candidate's folder ("" names the single file itself)
  int line = 0;
  std::string value;                ///< as it stands now
  std::vector<std::string> values;  ///< what may stand there
};

/// A value for each name.
using Settings = std::map<std::string, std::string>;

/// The tune points of a text. Throws ks::Error "file:line: …" where a mark cannot be understood.
std::vector<TunePoint> find_tune_points(const std::string& text, const std::string& file);

/// The same of a candidate: a file, or every source file of a folder. Throws where a name occurs twice.
std::vector<TunePoint> read_tune_points(const base::fs::path& candidate);

/// `text` with the values of `settings` in the places of its tune points.
std::string with_settings(const std::string& text, const Settings& settings, const std::string& file);

/// Rewrites the candidate's files where a value differs.
void write_settings(const base::fs::path& candidate, const Settings& settings);

}  // namespace ks::agents
