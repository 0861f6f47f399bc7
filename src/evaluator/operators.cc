#include "evaluator/operators.h"

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "base/subprocess.h"

namespace ks::evaluator {
namespace {

using base::fs::path;

/// Every file under the folder that the library is made from, with its content, hashed.
std::string folder_hash(const path& folder) {
  std::vector<path> files;
  for (const auto& entry : base::fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && (entry.path().extension() == ".cc" || entry.path().extension() == ".h"))
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::string text = base::read_file(base::project_root() / "operators/operator.h");
  for (const auto& file : files) text += file.string() + "\n" + base::read_file(file);
  return base::sha256_hex(text);
}

/// Compiles the sources of an operator outside the tree together with the support code that it may use.
path build_library(const path& folder, const std::string& name) {
  const path root = base::project_root();
  const path target = base::cache_folder() / "operators" / (name + "-" + folder_hash(folder).substr(0, 16) + ".so");
  if (base::fs::exists(target)) return target;
  base::make_folder(target.parent_path());
  const path temporary = target.string() + ".tmp";
  std::vector<std::string> command = {"g++",
                                      "-std=c++20",
                                      "-O3",
                                      "-march=native",
                                      "-fPIC",
                                      "-shared",
                                      "-pthread",
                                      "-fvisibility=hidden",
                                      "-I" + (root / "src").string(),
                                      "-I" + root.string(),
                                      "-I" + (root / "abi").string(),
                                      "-I" + folder.string()};
  for (const auto& entry : base::fs::directory_iterator(folder))
    if (entry.path().extension() == ".cc" && !entry.path().stem().string().ends_with("_test"))
      command.push_back(entry.path().string());
  for (const auto& entry : base::fs::directory_iterator(root / "operators"))
    if (entry.path().extension() == ".cc" && !entry.path().stem().string().ends_with("_test"))
      command.push_back(entry.path().string());
  for (const char* source :
       {"src/core/dtype.cc", "src/core/grid.cc", "src/base/error.cc", "src/base/hash.cc", "src/base/file.cc"})
    command.push_back((root / source).string());
  command.insert(command.end(),
                 {"-DKS_SOURCE_DIR=\"" + root.string() + "\"", "-lfmt", "-lcrypto", "-o", temporary.string()});
  const auto result = base::run_process({.argv = command, .timeout_s = 600});
  if (!result.ok()) throw Error("{}: the operator does not compile:\n{}", folder.string(), result.err.substr(0, 4000));
  base::fs::rename(temporary, target);
  return target;
}

}  // namespace

std::vector<std::string> known_operators() {
  std::vector<std::string> names;
  for (const auto& entry : base::fs::directory_iterator(base::project_root() / "operators"))
    if (base::fs::is_directory(entry.path() / "grids")) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

OperatorFolder find_operator(const std::string& name_or_path) {
  const auto names = known_operators();
  const path root = base::project_root();
  if (std::find(names.begin(), names.end(), name_or_path) != names.end())
    return {name_or_path, root / "operators" / name_or_path,
            base::executable_folder().parent_path() / "lib/operators" / ("libks_operator_" + name_or_path + ".so"),
            root / "abi"};
  path folder = name_or_path;
  if (name_or_path.find('/') == std::string::npos && !base::fs::is_directory(folder)) {
    const auto near = base::nearest_word(name_or_path, names);
    throw Error("unknown operator \"{}\"{}; known: {}; or give the path of an operator's folder", name_or_path,
                near.empty() ? "" : " (did you mean " + near + "?)", fmt::join(names, ", "));
  }
  if (!base::fs::is_directory(folder / "grids"))
    throw Error("{}: not an operator's folder: it has no grids/", folder.string());
  folder = base::fs::canonical(folder);
  const std::string name = folder.filename().string();
  return {name, folder, build_library(folder, name), folder};
}

core::Grid load_grid(const OperatorFolder& the_operator, const std::string& name_or_file) {
  const path named = the_operator.folder / "grids" / (name_or_file + ".tsv");
  if (base::fs::exists(named)) return core::read_grid(named);
  if (base::fs::is_regular_file(name_or_file)) return core::read_grid(name_or_file);
  std::vector<std::string> names;
  for (const auto& entry : base::fs::directory_iterator(the_operator.folder / "grids"))
    if (entry.path().extension() == ".tsv") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  const auto near = base::nearest_word(name_or_file, names);
  throw Error("unknown grid \"{}\" of operator {}{}; known: {}; or give a file", name_or_file, the_operator.name,
              near.empty() ? "" : " (did you mean " + near + "?)", fmt::join(names, ", "));
}

}  // namespace ks::evaluator
