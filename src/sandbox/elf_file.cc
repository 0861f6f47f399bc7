#include "sandbox/elf_file.h"

#include <elf.h>

#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"

namespace ks::sandbox {
namespace {

/// Bounds-checked reads from the file.
class Bytes {
 public:
  Bytes(std::string_view content, const std::string& path) : content_(content), path_(path) {}

  template <typename T>
  T at(uint64_t offset) const {
    T value;
    const auto piece = span(offset, sizeof value);
    std::memcpy(&value, piece.data(), sizeof value);
    return value;
  }
  std::string_view span(uint64_t offset, uint64_t bytes) const {
    if (offset > content_.size() || bytes > content_.size() - offset)
      throw Error("{}: {} bytes at {} lie past its end; the file is cut off or malformed", path_, bytes, offset);
    return content_.substr(offset, bytes);
  }

 private:
  std::string_view content_;
  const std::string& path_;
};

std::string text_at(std::string_view table, uint64_t offset) {
  if (offset >= table.size()) return "";
  const auto rest = table.substr(offset);
  return std::string(rest.substr(0, rest.find('\0')));
}

void split_paths(const std::string& text, std::vector<std::string>& paths) {
  for (size_t start = 0; start <= text.size();) {
    const size_t end = std::min(text.find(':', start), text.size());
    if (end > start) paths.push_back(text.substr(start, end - start));
    start = end + 1;
  }
}

void read_segments(const Bytes& bytes, const Elf64_Ehdr& header, ElfFile& file) {
  file.executable_stack = true;  // what the kernel assumes where nothing is said
  for (int i = 0; i < header.e_phnum; ++i) {
    const auto segment = bytes.at<Elf64_Phdr>(header.e_phoff + static_cast<uint64_t>(i) * header.e_phentsize);
    if (segment.p_type == PT_GNU_STACK) file.executable_stack = (segment.p_flags & PF_X) != 0;
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0 && (segment.p_flags & PF_W) != 0)
      file.writable_code = true;
  }
}

void read_dynamic(const Bytes& bytes, const Elf64_Shdr& section, std::string_view strings, ElfFile& file) {
  for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= section.sh_size; at += sizeof(Elf64_Dyn)) {
    const auto entry = bytes.at<Elf64_Dyn>(section.sh_offset + at);
    if (entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_NEEDED) file.needed.push_back(text_at(strings, entry.d_un.d_val));
    if (entry.d_tag == DT_RPATH || entry.d_tag == DT_RUNPATH)
      split_paths(text_at(strings, entry.d_un.d_val), file.run_paths);
    if (entry.d_tag == DT_INIT_ARRAYSZ || entry.d_tag == DT_PREINIT_ARRAYSZ) file.constructors += entry.d_un.d_val / 8;
    if (entry.d_tag == DT_AUDIT || entry.d_tag == DT_DEPAUDIT || entry.d_tag == DT_FILTER ||
        entry.d_tag == DT_AUXILIARY)
      file.asks_for_auditors = true;
  }
}

void read_symbols(const Bytes& bytes, const Elf64_Shdr& section, std::string_view strings,
                  std::vector<ElfSymbol>& symbols) {
  for (uint64_t at = sizeof(Elf64_Sym); at + sizeof(Elf64_Sym) <= section.sh_size; at += sizeof(Elf64_Sym)) {
    const auto entry = bytes.at<Elf64_Sym>(section.sh_offset + at);
    const int type = ELF64_ST_TYPE(entry.st_info);
    if (type == STT_SECTION || type == STT_FILE) continue;
    symbols.push_back({text_at(strings, entry.st_name), entry.st_shndx != SHN_UNDEF,
                       type == STT_FUNC || type == STT_GNU_IFUNC, type == STT_GNU_IFUNC});
  }
}

}  // namespace

void read_elf(const std::string& path, ElfFile& file) {
  file.content = base::read_file(path);
  const Bytes bytes(file.content, path);
  if (file.content.size() < sizeof(Elf64_Ehdr) || std::memcmp(file.content.data(), ELFMAG, SELFMAG) != 0 ||
      file.content[EI_CLASS] != ELFCLASS64 || file.content[EI_DATA] != ELFDATA2LSB)
    throw Error("{}: is not a 64-bit ELF shared object", path);
  const auto header = bytes.at<Elf64_Ehdr>(0);
  file.machine = header.e_machine;
  read_segments(bytes, header, file);
  std::vector<Elf64_Shdr> sections;
  for (int i = 0; i < header.e_shnum; ++i)
    sections.push_back(bytes.at<Elf64_Shdr>(header.e_shoff + static_cast<uint64_t>(i) * header.e_shentsize));
  const auto contents = [&](uint32_t index) {
    if (index >= sections.size() || sections[index].sh_type == SHT_NOBITS) return std::string_view();
    return bytes.span(sections[index].sh_offset, sections[index].sh_size);
  };
  const auto names = contents(header.e_shstrndx);
  for (size_t i = 0; i < sections.size(); ++i) {
    const auto& section = sections[i];
    if (section.sh_type == SHT_DYNAMIC) read_dynamic(bytes, section, contents(section.sh_link), file);
    if (section.sh_type == SHT_DYNSYM) read_symbols(bytes, section, contents(section.sh_link), file.dynamic_symbols);
    if (section.sh_type == SHT_SYMTAB) read_symbols(bytes, section, contents(section.sh_link), file.symbols);
    if (section.sh_type == SHT_NULL || section.sh_type == SHT_NOBITS) continue;
    file.sections.push_back({text_at(names, section.sh_name), section.sh_addr, contents(static_cast<uint32_t>(i)),
                             (section.sh_flags & SHF_EXECINSTR) != 0});
  }
}

std::vector<std::string> library_folders(const std::string& path) {
  ElfFile file;
  read_elf(path, file);
  const std::string origin = std::filesystem::path(path).parent_path().string();
  std::vector<std::string> folders;
  for (std::string folder : file.run_paths) {
    for (const std::string word : {"${ORIGIN}", "$ORIGIN"})
      if (const size_t at = folder.find(word); at != std::string::npos) folder.replace(at, word.size(), origin);
    folders.push_back(folder);
  }
  return folders;
}

}  // namespace ks::sandbox
