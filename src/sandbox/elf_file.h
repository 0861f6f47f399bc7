// Reads a shared object without loading it: what it needs, imports and exports, how it wants its memory, its code.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ks::sandbox {

/// A symbol of a dynamic or static symbol table.
struct ElfSymbol {
  std::string name;
  bool defined = false;
  bool is_function = false;
  bool is_ifunc = false;  ///< resolved by code that runs at load
};

/// A section that is in the file.
struct ElfSection {
  std::string name;
  uint64_t address = 0;
  std::string_view bytes;  ///< into ElfFile::content
  bool executable = false;
};

/// A shared object for x86-64 (or any little-endian 64-bit machine), read.
struct ElfFile {
  std::string content;
  uint16_t machine = 0;
  std::vector<std::string> needed;     ///< DT_NEEDED
  std::vector<std::string> run_paths;  ///< DT_RPATH and DT_RUNPATH, split at ':'
  std::vector<ElfSymbol> dynamic_symbols, symbols;
  std::vector<ElfSection> sections;
  bool executable_stack = false;
  bool writable_code = false;      ///< a segment that is writable and executable
  uint64_t constructors = 0;       ///< entries of .init_array and .preinit_array
  bool asks_for_auditors = false;  ///< an audit or auxiliary library is asked for (DT_AUDIT, DT_FILTER, …)

  ElfFile() = default;
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;
  ElfFile(ElfFile&&) = delete;
};

/// Reads `path` into `file`. Throws ks::Error where it is not such an object or is cut off.
void read_elf(const std::string& path, ElfFile& file);

/// Folders outside the system's in which the loader looks for what `path` needs: its run paths.
std::vector<std::string> library_folders(const std::string& path);

}  // namespace ks::sandbox
