#include "evaluator/inspect.h"

#include <algorithm>
#include <sstream>

#include "base/file.h"
#include "base/subprocess.h"
#include "evaluator/build.h"
#include "evaluator/inspect_rules.h"
#include "sandbox/elf_file.h"

namespace ks::evaluator {
namespace {

namespace fs = base::fs;
using sandbox::ElfFile;

constexpr double kDisassembleLimitS = 120;
constexpr size_t kMaxDisassembly = 512u << 20;

/// The binary under inspection, and what was found so far.
struct Inspector {
  const Candidate& candidate;
  const std::string& shared_object;
  ElfFile elf;
  Inspection result;

  void record(const char* what, const std::string& detail) { add(what, detail, false); }
  void refuse(const char* what, const std::string& detail) { add(what, detail, true); }
  bool is_cuda() const { return candidate.device == "cuda"; }

 private:
  void add(const char* what, const std::string& detail, bool refuses) {
    result.findings.push_back({{"what", what}, {"detail", detail}, {"refuses", refuses}});
    if (!refuses || result.refused) return;
    result.refused = true;
    result.reason = detail;
  }
};

bool matches(const std::string& name, const std::string& pattern) {
  if (pattern.ends_with('*')) return name.compare(0, pattern.size() - 1, pattern, 0, pattern.size() - 1) == 0;
  return name == pattern;
}

bool is_listed(const std::string& name, const char* patterns) {
  std::istringstream stream(patterns);
  for (std::string pattern; stream >> pattern;)
    if (matches(name, pattern)) return true;
  return false;
}

/// What the candidate itself asks for: of a CUDA candidate that is what its objects leave undefined, since the runtime
/// that is linked in opens the driver, sockets and more.
std::vector<std::string> own_imports(const Inspector& inspector) {
  const auto summary = fs::path(inspector.shared_object).parent_path() / "build.json";
  if (inspector.is_cuda() && fs::exists(summary))
    return base::read_json_file(summary.string()).at("imports").get<std::vector<std::string>>();
  std::vector<std::string> names;
  for (const auto& symbol : inspector.elf.dynamic_symbols)
    if (!symbol.defined) names.push_back(symbol.name);
  return names;
}

void inspect_imports(Inspector& inspector) {
  for (const auto& name : own_imports(inspector)) {
    for (const auto& rule : kForbiddenImports)
      if (is_listed(name, rule.names))
        inspector.refuse("import", fmt::format("the binary imports {}: it {}", name, rule.what));
    if (is_listed(name, kRecordedImports.names)) inspector.record("import", "the binary uses " + name);
  }
}

void inspect_exports(Inspector& inspector) {
  const auto& symbols = inspector.elf.dynamic_symbols;
  for (const char* name : kRequiredExports) {
    const bool found =
        std::any_of(symbols.begin(), symbols.end(), [&](const auto& s) { return s.defined && s.name == name; });
    if (!found)
      inspector.refuse(
          "export",
          fmt::format("{} does not export {}; include the operator's header from abi/ and define what it declares",
                      inspector.candidate.path, name));
  }
  for (const auto& symbol : symbols) {
    if (symbol.is_ifunc)
      inspector.refuse("ifunc", fmt::format("{} is chosen by code that runs while the binary is loaded", symbol.name));
    if (!symbol.defined) continue;
    const bool is_ours =
        symbol.name.starts_with("ks_") && symbol.name != kOptionalExport &&
        std::find(kRequiredExports.begin(), kRequiredExports.end(), symbol.name) == kRequiredExports.end();
    if (is_ours)
      inspector.refuse("export", fmt::format("the binary exports {}, a name that is the evaluator's", symbol.name));
    for (const char* pattern : kShadowedNames)
      if (matches(symbol.name, pattern))
        inspector.refuse("export",
                         fmt::format("the binary exports {}, which stands in for the system's own", symbol.name));
  }
}

void inspect_libraries(Inspector& inspector) {
  for (const auto& name : inspector.elf.needed) {
    const bool allowed = std::any_of(kAllowedLibraries.begin(), kAllowedLibraries.end(),
                                     [&](const char* start) { return name.starts_with(start); });
    if (allowed || (inspector.is_cuda() && name.starts_with(kCudaDriver))) continue;
    inspector.refuse(
        "library",
        fmt::format("the binary needs {}; a candidate computes by itself (only the compiler's and the C library's "
                    "own libraries, OpenMP and Highway are allowed)",
                    name));
  }
  for (const auto& folder : inspector.elf.run_paths)
    inspector.record("library", "libraries are looked for in " + folder);
  if (inspector.elf.asks_for_auditors)
    inspector.refuse("library", "the binary asks the loader for an auditing or filtering library");
}

/// Marks of known libraries, among the symbols and the text that the program holds.
void inspect_copies(Inspector& inspector) {
  const std::string_view content = inspector.elf.content;
  for (const auto& mark : kLibraryMarks)
    if (content.find(mark.mark) != std::string_view::npos)
      inspector.refuse("copy", fmt::format("the binary carries a part of {} (\"{}\"), which it is compared with",
                                           mark.name, mark.mark));
}

void inspect_memory(Inspector& inspector) {
  if (inspector.elf.executable_stack) inspector.refuse("memory", "the binary wants an executable stack");
  if (inspector.elf.writable_code) inspector.refuse("memory", "the binary has code that it may write to");
  // One constructor is the compiler's own.
  if (inspector.elf.constructors > 1)
    inspector.record("constructor",
                     fmt::format("{} constructors run while the binary is loaded", inspector.elf.constructors - 1));
}

std::string disassemble(const Inspector& inspector) {
  base::SpawnOptions options;
  if (inspector.is_cuda()) {
    const auto cuobjdump = fs::path(find_nvcc()).parent_path() / "cuobjdump";
    if (!fs::exists(cuobjdump)) return "";
    options.argv = {cuobjdump.string(), "-sass", inspector.shared_object};
  } else {
    options.argv = {"objdump", "-d", "--no-show-raw-insn", inspector.shared_object};
  }
  options.timeout_s = kDisassembleLimitS;
  options.max_output_bytes = kMaxDisassembly;
  const auto result = base::run_process(options);
  if (!result.ok()) throw Error("{} could not read {}: {}", options.argv[0], inspector.shared_object, result.err);
  return result.out;
}

/// The line of a disassembly on which one of `mnemonics` stands as an instruction, "" if none.
std::string line_with(const std::string& text, const std::vector<std::string>& mnemonics) {
  for (const auto& mnemonic : mnemonics) {
    for (size_t at = text.find(mnemonic); at != std::string::npos; at = text.find(mnemonic, at + 1)) {
      const char before = at > 0 ? text[at - 1] : '\n';
      const char after = at + mnemonic.size() < text.size() ? text[at + mnemonic.size()] : '\n';
      if ((before != '\t' && before != ' ') || (std::isalnum(static_cast<unsigned char>(after)) != 0)) continue;
      const size_t start = text.rfind('\n', at) + 1;
      return text.substr(start, text.find('\n', at) - start);
    }
  }
  return "";
}

/// System calls without the C library, and instructions that the candidate promised.
void inspect_instructions(Inspector& inspector) {
  if (!inspector.is_cuda()) {
    const std::string text = disassemble(inspector);
    if (const auto line = line_with(text, {"syscall", "sysenter", "int    $0x80"}); !line.empty())
      inspector.refuse("instruction", "the binary makes system calls by itself: " + line);
    for (const auto& wanted : inspector.candidate.expect_instructions)
      if (line_with(text, {wanted}).empty())
        inspector.refuse("instruction",
                         fmt::format("the binary has no {} instruction, which candidate.toml promises", wanted));
    return;
  }
  if (inspector.candidate.expect_instructions.empty()) return;
  const std::string text = disassemble(inspector);
  if (text.empty())
    return inspector.record("instruction", "cuobjdump is not here: promised instructions were not looked for");
  for (const auto& wanted : inspector.candidate.expect_instructions)
    if (text.find(wanted) == std::string::npos)
      inspector.refuse("instruction",
                       fmt::format("the binary has no {} instruction, which candidate.toml promises", wanted));
}

void inspect_kernels(Inspector& inspector) {
  const auto summary = fs::path(inspector.shared_object).parent_path() / "build.json";
  if (!inspector.is_cuda() || !fs::exists(summary)) return;
  const auto note = [&](const std::string& detail) {
    inspector.candidate.strict ? inspector.refuse("kernel", detail) : inspector.record("kernel", detail);
  };
  for (const auto& kernel : base::read_json_file(summary.string()).at("ptxas")) {
    const auto name = kernel.at("name").get<std::string>();
    const int spilled = kernel.at("spill_store_bytes").get<int>() + kernel.at("spill_load_bytes").get<int>();
    if (spilled > 0) note(fmt::format("kernel {} spills {} bytes of registers", name, spilled));
    const auto serialized = kernel.at("wgmma_serialized").get<std::string>();
    if (!serialized.empty()) note(fmt::format("kernel {}: {}", name, serialized));
  }
}

}  // namespace

Inspection inspect_binary(const std::string& library, const Candidate& candidate) {
  Inspector inspector{candidate, library, {}, {}};
  sandbox::read_elf(library, inspector.elf);
  inspect_exports(inspector);
  inspect_libraries(inspector);
  inspect_copies(inspector);
  inspect_imports(inspector);
  inspect_memory(inspector);
  inspect_instructions(inspector);
  inspect_kernels(inspector);
  return std::move(inspector.result);
}

}  // namespace ks::evaluator
