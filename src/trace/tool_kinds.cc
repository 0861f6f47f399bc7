// See tool_kinds.h.
#include "trace/tool_kinds.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>
#include <span>

#include "trace/importer.h"
#include "trace/shell_command.h"

namespace ks::trace {

namespace {

using Names = std::initializer_list<std::string_view>;

bool is_one_of(std::string_view name, std::span<const std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_one_of(std::string_view name, Names names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

/// The part of an MCP tool's name after its server: mcp__server__tool, server.tool.
std::string plain_tool_name(std::string_view tool) {
  if (tool.starts_with("mcp__")) tool.remove_prefix(tool.find_last_of('_') + 1);
  std::string name = lower(tool);
  for (const std::string_view ending : {"toolcall", "tool"})
    if (name.size() > ending.size() && name.ends_with(ending)) return name.substr(0, name.size() - ending.size());
  return name;
}

constexpr std::string_view kShellTools[] = {
    "bash",          "shell",       "local_shell", "run_shell_command", "exec_command",
    "execute_bash",  "terminal",    "run",         "run_terminal_cmd",  "container.exec",
    "shell_command", "run_command", "execute"};
constexpr std::string_view kEditTools[] = {
    "edit",        "multiedit", "write",  "notebookedit", "apply_patch",   "write_file",     "replace",
    "str_replace", "create",    "insert", "edit_file",    "write_to_file", "search_replace", "delete"};
constexpr std::string_view kReadTools[] = {"read", "read_file", "view", "notebookread", "read_many_files",
                                           "open", "view_image"};
constexpr std::string_view kSearchTools[] = {
    "grep",   "glob",     "ls",          "list_directory", "search_file_content", "find",        "codebase_search",
    "search", "list_dir", "grep_search", "file_search",    "search_dir",          "search_file", "find_file"};
constexpr std::string_view kWebTools[] = {"webfetch",          "websearch",  "web_fetch",       "web_search",
                                          "google_web_search", "browse",     "fetch",           "browse_interactive",
                                          "search_web",        "query-docs", "get-library-docs"};
constexpr std::string_view kHelperTools[] = {"task",          "agent", "spawn_agent", "delegate", "collab_tool_call",
                                             "dispatch_agent"};
constexpr std::string_view kEditorTools[] = {"str_replace_editor", "str_replace_based_edit", "file_editor"};
constexpr std::pair<std::string_view, std::string_view> kOurTools[] = {
    {"profile", "profiler"}, {"disassemble", "disassembly"}, {"evaluate", "benchmark"}};

constexpr std::string_view kProfilers[] = {"ncu",       "nsys",      "nvprof",   "perf",           "rocprof",
                                           "rocprofv2", "rocprofv3", "omniperf", "vtune",          "gprof",
                                           "valgrind",  "py-spy",    "ncu-ui",   "likwid-perfctr", "nv-nsight-cu-cli"};
constexpr std::string_view kDisassemblers[] = {"cuobjdump", "nvdisasm", "objdump", "llvm-objdump", "llvm-mca"};
constexpr std::string_view kBuilders[] = {"nvcc",  "gcc",   "g++",   "cc",    "c++",      "clang",  "clang++", "make",
                                          "gmake", "cmake", "ninja", "hipcc", "icpx",     "icx",    "meson",   "bazel",
                                          "ld",    "tsc",   "javac", "rustc", "gfortran", "ccache", "scons",   "ptxas"};
constexpr std::string_view kReaders[] = {"cat",    "head", "tail", "less",    "more", "nl",  "bat",
                                         "batcat", "tac",  "xxd",  "strings", "pr",   "cut", "awk"};
constexpr std::string_view kSearchers[] = {"grep", "rg", "ag", "egrep", "fgrep", "ack", "diff", "cmp", "comm"};
constexpr std::string_view kListers[] = {"ls", "find", "fd", "tree", "wc", "stat", "file", "du", "locate"};
constexpr std::string_view kManuals[] = {"man", "info", "tldr", "pydoc", "pydoc3", "apropos"};

bool is_option(const std::string& word) {
  return word.size() > 1 && word[0] == '-';
}

bool has_word(const std::vector<std::string>& args, Names words) {
  return std::any_of(args.begin(), args.end(), [&](const std::string& arg) { return is_one_of(arg, words); });
}

/// True where "bench" or "benchmark" is a word of a file's name: bench_gemm, run-bench.py, gemmBench.
bool names_benchmark(std::string_view path) {
  const size_t slash = path.find_last_of('/');
  const std::string name = lower(slash == std::string_view::npos ? path : path.substr(slash + 1));
  return name.find("bench") != std::string::npos || name.find("perftest") != std::string::npos;
}

bool is_interpreter(const std::string& name) {
  return name.starts_with("python") ||
         is_one_of(name, {"node", "bash", "sh", "zsh", "ruby", "perl", "julia", "uv", "torchrun"});
}

/// The script or module that an interpreter runs; "" where none is named.
std::string script_of(const ShellProgram& program) {
  for (size_t i = 0; i < program.args.size(); ++i) {
    if (program.args[i] == "-m" && i + 1 < program.args.size()) return program.args[i + 1];
    if (program.args[i] == "-c") return "";
    if (!is_option(program.args[i]) && program.args[i] != "run") return program.args[i];
  }
  return "";
}

bool is_benchmark(const ShellProgram& program) {
  if (program.name == "hyperfine" || program.name == "nvbench") return true;
  if (program.name == "kernelseek") return !program.args.empty() && program.args[0] == "evaluate";
  if (program.name == "cargo") return has_word(program.args, {"bench"});
  if (program.name == "go")
    return std::any_of(program.args.begin(), program.args.end(),
                       [](const std::string& arg) { return arg.starts_with("-bench"); });
  if (is_one_of(program.name, {"make", "ninja", "npm"}))
    return std::any_of(program.args.begin(), program.args.end(), [](const std::string& arg) {
      return !is_option(arg) && arg.find('/') == std::string::npos && names_benchmark(arg);
    });
  if (is_interpreter(program.name)) return names_benchmark(script_of(program));
  if (program.name == "pytest")
    return std::any_of(program.args.begin(), program.args.end(),
                       [](const std::string& arg) { return names_benchmark(arg); });
  return names_benchmark(program.name) && !is_one_of(program.name, kReaders);
}

bool is_build(const ShellProgram& program) {
  if (is_one_of(program.name, kBuilders)) return true;
  const bool builds = has_word(program.args, {"build", "install", "build_ext", "b"});
  if (is_one_of(program.name, {"cargo", "go", "npm", "zig"})) return builds || program.name == "zig";
  if (program.name.starts_with("python")) return builds && script_of(program).ends_with("setup.py");
  if (program.name.starts_with("pip"))
    return has_word(program.args, {"install"}) && has_word(program.args, {".", "-e"});
  return program.name.find("configure") == 0 || (program.name.starts_with("build") && program.name.ends_with(".sh"));
}

bool is_disassembly(const ShellProgram& program) {
  if (is_one_of(program.name, kDisassemblers)) return true;
  if (is_one_of(program.name, {"gcc", "g++", "clang", "clang++", "cc", "c++"})) return has_word(program.args, {"-S"});
  if (program.name == "kernelseek") return !program.args.empty() && program.args[0] == "disassemble";
  return is_one_of(program.name, {"gdb", "cuda-gdb", "lldb"}) &&
         std::any_of(program.args.begin(), program.args.end(),
                     [](const std::string& arg) { return arg.find("disas") != std::string::npos; });
}

bool is_profiler(const ShellProgram& program) {
  if (is_one_of(program.name, kProfilers)) return true;
  return program.name == "kernelseek" && !program.args.empty() && program.args[0] == "profile";
}

/// Words of a reading program that are files: not options, their numbers, or the script of sed, awk and grep.
std::vector<std::string> file_operands(const ShellProgram& program) {
  std::vector<std::string> files;
  bool has_script = is_one_of(program.name, {"sed", "awk", "grep", "rg", "ag", "egrep", "fgrep", "ack"});
  for (size_t i = 0; i < program.args.size(); ++i) {
    const std::string& arg = program.args[i];
    if (is_option(arg)) {
      const bool takes_word = is_one_of(arg, {"-n", "-c"}) && is_one_of(program.name, {"head", "tail"});
      const bool takes_pattern = is_one_of(arg, {"-e", "-f", "-A", "-B", "-C", "-m", "-g", "-t"}) && has_script;
      if (is_one_of(arg, {"-e", "-f"})) has_script = false;
      if (takes_word || takes_pattern) ++i;
      continue;
    }
    if (has_script) {
      has_script = false;
      continue;
    }
    if (arg.find_first_of("*?$") == std::string::npos) files.push_back(resolve_path(program.folder, arg));
  }
  return files;
}

bool edits_in_place(const ShellProgram& program) {
  const auto has_in_place = [](const std::string& arg) {
    return arg.starts_with("-i") || arg.starts_with("--in-place");
  };
  return (program.name == "sed" || program.name == "perl") &&
         std::any_of(program.args.begin(), program.args.end(), has_in_place);
}

/// Files that a program of a command writes as text: "cat > f <<E", echo, printf, tee, sed -i.
std::vector<std::string> written_files(const ShellProgram& program) {
  if (edits_in_place(program)) {
    auto files = file_operands(program);
    return files;
  }
  if (program.name == "tee") return file_operands(program);
  const bool is_text = is_one_of(program.name, {"cat", "echo", "printf"});
  if (is_text && !program.writes.empty() && !program.writes.starts_with("/dev/"))
    return {resolve_path(program.folder, program.writes)};
  return {};
}

bool is_documentation_path(const std::string& path) {
  const std::string text = "/" + lower(path);
  for (const std::string_view part : {"/doc/", "/docs/", "/documentation/", "/man/"})
    if (text.find(part) != std::string::npos) return true;
  return false;
}

std::string path_of(const Json& input) {
  for (const char* key :
       {"file_path", "path", "filePath", "absolute_path", "notebook_path", "target_file", "file", "filename"})
    if (auto text = text_at(input, key); !text.empty()) return text;
  return "";
}

/// The text of a patch call, wherever the tool keeps it.
std::string patch_of(const Json& input) {
  if (input.is_string()) return input.get<std::string>();
  for (const char* key : {"input", "patch", "diff"})
    if (auto text = text_at(input, key); !text.empty()) return text;
  return "";
}

std::vector<std::string> patched_files(const std::string& patch) {
  std::vector<std::string> files;
  for (size_t at = 0; at < patch.size();) {
    const size_t end = std::min(patch.find('\n', at), patch.size());
    const std::string_view line(patch.data() + at, end - at);
    for (const std::string_view prefix : {"*** Update File: ", "*** Add File: ", "+++ b/", "*** Move to: "})
      if (line.starts_with(prefix)) files.emplace_back(line.substr(prefix.size()));
    at = end + 1;
  }
  return files;
}

std::string added_lines(const std::string& patch) {
  std::string text;
  for (size_t at = 0; at < patch.size();) {
    const size_t end = std::min(patch.find('\n', at), patch.size());
    const std::string_view line(patch.data() + at, end - at);
    if (line.starts_with("+") && !line.starts_with("+++")) text.append(line.substr(1)).push_back('\n');
    at = end + 1;
  }
  return text;
}

}  // namespace

void OwnFiles::add(const std::string& path) {
  if (path.empty() || contains(path)) return;
  by_name_[path.substr(path.find_last_of('/') + 1)].push_back(path);
}

bool OwnFiles::contains(const std::string& path) const {
  const auto found = by_name_.find(path.substr(path.find_last_of('/') + 1));
  if (found == by_name_.end()) return false;
  return std::any_of(found->second.begin(), found->second.end(), [&](const std::string& own) {
    if (own == path) return true;
    if (path[0] != '/' && own.size() > path.size())
      return own.ends_with(path) && own[own.size() - path.size() - 1] == '/';
    return own[0] != '/' && path.size() > own.size() && path.ends_with(own) &&
           path[path.size() - own.size() - 1] == '/';
  });
}

bool is_read_tool(const std::string& tool) {
  return is_one_of(plain_tool_name(tool), kReadTools);
}

std::string shell_command_of(const std::string& tool, const Json& input) {
  if (!is_one_of(plain_tool_name(tool), kShellTools) || !input.is_object()) return "";
  for (const char* key : {"command", "cmd", "script", "code"}) {
    const auto found = input.find(key);
    if (found == input.end()) continue;
    if (found->is_string()) return found->get<std::string>();
    if (!found->is_array()) continue;
    std::vector<std::string> words;
    for (const Json& word : *found) words.push_back(word.is_string() ? word.get<std::string>() : word.dump());
    if (words.size() >= 3 && is_one_of(words[1], {"-c", "-lc", "-ic"})) return words[2];
    std::string command;
    for (const std::string& word : words) command += (command.empty() ? "" : " ") + word;
    return command;
  }
  return "";
}

void ToolClassifier::classify_shell(const std::string& command, const std::string& folder, ToolUse& use,
                                    std::vector<std::string>& kinds) {
  for (const ShellProgram& program : parse_shell(command, folder)) {
    const auto files = written_files(program);
    use.writes.insert(use.writes.end(), files.begin(), files.end());
    if (is_profiler(program)) kinds.push_back("profiler");
    if (is_disassembly(program)) kinds.push_back("disassembly");
    if (is_benchmark(program)) kinds.push_back("benchmark");
    if (is_build(program)) kinds.push_back("build");
    const bool is_patch = program.name == "patch" || program.name == "apply_patch" ||
                          (program.name == "git" && has_word(program.args, {"apply"}));
    if (!files.empty() || is_patch) {
      kinds.push_back("edit");
      for (const std::string& file : patched_files(program.here_text))
        use.writes.push_back(resolve_path(program.folder, file));
      continue;
    }
    const bool shows = is_one_of(program.name, kReaders) || program.name == "sed";
    if (shows || is_one_of(program.name, kSearchers)) {
      const auto read = file_operands(program);
      use.reads.insert(use.reads.end(), read.begin(), read.end());
      if (!read.empty()) kinds.push_back("other_read");
    }
    const bool asks_git =
        program.name == "git" && has_word(program.args, {"diff", "show", "log", "blame", "status", "grep"});
    if (asks_git && has_word(program.args, {"diff", "show", "blame"})) {
      for (const std::string& arg : program.args)
        if (arg.find('.') != std::string::npos && !is_option(arg))
          use.reads.push_back(resolve_path(program.folder, arg));
    }
    if (asks_git || is_one_of(program.name, kListers)) kinds.push_back("other_read");
    const bool asks_web = (program.name == "curl" || program.name == "wget") &&
                          std::any_of(program.args.begin(), program.args.end(),
                                      [](const std::string& arg) { return arg.starts_with("http"); });
    if (asks_web || is_one_of(program.name, kManuals)) kinds.push_back("documentation");
  }
}

/// Kinds of a call to a tool that is no shell.
void ToolClassifier::classify_tool(const std::string& name, const Json& input, const std::string& folder, ToolUse& use,
                                   std::vector<std::string>& kinds) {
  const std::string place = path_of(input), path = resolve_path(folder, place);
  const bool views = is_one_of(name, kEditorTools) && text_at(input, "command") == "view";
  if (views || is_one_of(name, kReadTools) || is_one_of(name, kSearchTools)) {
    kinds.push_back("other_read");
    if (!place.empty()) use.reads.push_back(path);
  } else if (is_one_of(name, kEditorTools) || is_one_of(name, kEditTools)) {
    kinds.push_back("edit");
    if (!place.empty()) use.writes.push_back(path);
    for (const std::string& file : patched_files(patch_of(input))) use.writes.push_back(resolve_path(folder, file));
    if (const Json& changes = value_at(input, "changes"); changes.is_array())
      for (const Json& change : changes) use.writes.push_back(resolve_path(folder, text_at(change, "path")));
  } else if (is_one_of(name, kWebTools)) {
    kinds.push_back("documentation");
  } else if (is_one_of(name, kHelperTools)) {
    kinds.push_back("helper");
  }
  for (const auto& [tool, kind] : kOurTools)
    if (name == tool) kinds.emplace_back(kind);
}

ToolUse ToolClassifier::classify(const std::string& tool, const Json& input, const std::string& folder) {
  ToolUse use;
  std::vector<std::string> kinds;
  const std::string name = plain_tool_name(tool);
  if (is_one_of(name, kShellTools)) {
    const std::string place = text_at(input, "workdir");
    classify_shell(shell_command_of(tool, input), place.empty() ? folder : place, use, kinds);
  } else {
    classify_tool(name, input, folder, use, kinds);
  }
  for (const std::string& file : use.reads) {
    if (own_.contains(file))
      kinds.push_back("own_source_read");
    else if (is_documentation_path(file))
      kinds.push_back("documentation");
  }
  for (const std::string& file : use.writes) own_.add(file);
  for (const std::string_view kind : kToolKinds) {
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) continue;
    if (use.kind.empty())
      use.kind = kind;
    else
      use.also.emplace_back(kind);
  }
  if (use.kind.empty()) use.kind = "other";
  return use;
}

std::vector<std::string> written_texts(const std::string& tool, const Json& input) {
  std::vector<std::string> texts;
  const std::string command = shell_command_of(tool, input);
  if (!command.empty()) {
    for (ShellProgram& program : parse_shell(command)) {
      const bool prints = (program.name == "echo" || program.name == "printf") && !written_files(program).empty();
      if (prints)
        for (std::string& arg : program.args) texts.push_back(std::move(arg));
      if (program.here_text.empty()) continue;
      const bool is_patch = program.name == "apply_patch" || program.name == "patch" || program.name == "git";
      const bool is_file = !written_files(program).empty();
      if (is_patch) texts.push_back(added_lines(program.here_text));
      if (!is_patch && is_file) texts.push_back(std::move(program.here_text));
    }
    return texts;
  }
  const std::string name = plain_tool_name(tool);
  const bool is_edit = is_one_of(name, kEditTools) || is_one_of(name, kEditorTools);
  if (!is_edit) return texts;
  if (name == "apply_patch") return {added_lines(patch_of(input))};
  for (const char* key :
       {"content", "new_string", "new_str", "file_text", "new_source", "contents", "code_edit", "insert_text"})
    if (auto text = text_at(input, key); !text.empty()) texts.push_back(std::move(text));
  if (input.is_object() && input.contains("edits") && input["edits"].is_array())
    for (const Json& edit : input["edits"]) texts.push_back(text_at(edit, "new_string"));
  return texts;
}

}  // namespace ks::trace
