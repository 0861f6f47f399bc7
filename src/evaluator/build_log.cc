// What compilers print: the first errors for a person, and ptxas's figures for the record.
#include <regex>
#include <sstream>

#include "evaluator/build.h"

namespace ks::evaluator {
namespace {

constexpr size_t kMaxLineBytes = 400;

/// The number before `what` in a line such as "8 bytes stack frame, 0 bytes spill stores", 0 if absent.
int number_before(const std::string& line, const std::string& what) {
  const size_t at = line.find(what);
  if (at == std::string::npos) return 0;
  size_t start = at;
  while (start > 0 && (std::isdigit(static_cast<unsigned char>(line[start - 1])) || line[start - 1] == ' ')) --start;
  return std::atoi(line.c_str() + start);
}

PtxasKernel& kernel_named(std::vector<PtxasKernel>& kernels, const std::string& name) {
  for (auto& kernel : kernels)
    if (kernel.name == name) return kernel;
  kernels.push_back({.name = name});
  return kernels.back();
}

}  // namespace

std::vector<PtxasKernel> parse_ptxas(const std::string& log) {
  static const std::regex kEntry("Compiling entry function '([^']+)' for '([^']+)'");
  static const std::regex kProperties("Function properties for ([^ ]+)");
  static const std::regex kSerialized(
      R"((wgmma\.mma_async instructions are serialized[^\n]*?) in (?:the )?function '([^']+)')");
  std::vector<PtxasKernel> kernels;
  std::istringstream stream(log);
  std::string line, current, properties;
  std::smatch match;
  while (std::getline(stream, line)) {
    if (std::regex_search(line, match, kEntry)) {
      current = match[1];
      kernel_named(kernels, current).arch = match[2];
    } else if (std::regex_search(line, match, kProperties)) {
      properties = match[1];
    } else if (line.find("spill stores") != std::string::npos && !properties.empty()) {
      auto& kernel = kernel_named(kernels, properties);
      kernel.stack_bytes = number_before(line, " bytes stack frame");
      kernel.spill_store_bytes = number_before(line, " bytes spill stores");
      kernel.spill_load_bytes = number_before(line, " bytes spill loads");
    } else if (line.find("Used ") != std::string::npos && !current.empty()) {
      auto& kernel = kernel_named(kernels, current);
      kernel.registers = number_before(line, " registers");
      kernel.smem_bytes = number_before(line, " bytes smem");
    }
    if (std::regex_search(line, match, kSerialized)) kernel_named(kernels, match[2]).wgmma_serialized = match[1];
  }
  return kernels;
}

Json to_json(const PtxasKernel& kernel) {
  return {{"name", kernel.name},
          {"arch", kernel.arch},
          {"registers", kernel.registers},
          {"stack_bytes", kernel.stack_bytes},
          {"spill_store_bytes", kernel.spill_store_bytes},
          {"spill_load_bytes", kernel.spill_load_bytes},
          {"smem_bytes", kernel.smem_bytes},
          {"wgmma_serialized", kernel.wgmma_serialized}};
}

std::string first_errors(const std::string& output, size_t max_lines) {
  std::vector<std::string> lines;
  std::istringstream stream(output);
  for (std::string line; std::getline(stream, line);) {
    if (line.size() > kMaxLineBytes) line = line.substr(0, kMaxLineBytes) + " …";
    lines.push_back(std::move(line));
  }
  // From the first error on, with the lines right above it that say how the compiler came there.
  size_t first = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].find("error") == std::string::npos && lines[i].find("undefined reference") == std::string::npos)
      continue;
    first = i;
    while (first > 0 && i - first < 4 &&
           (lines[first - 1].find("In file included") != std::string::npos ||
            lines[first - 1].find("In function") != std::string::npos ||
            lines[first - 1].starts_with("                 from")))
      --first;
    break;
  }
  std::string result;
  size_t taken = 0;
  for (size_t i = first; i < lines.size() && taken < max_lines; ++i, ++taken) result += lines[i] + "\n";
  const size_t left = lines.size() - first - taken;
  if (left > 0) result += fmt::format("({} more lines)\n", left);
  return result;
}

}  // namespace ks::evaluator
