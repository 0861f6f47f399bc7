#include "evaluator/build.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <iterator>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>

#include "base/clock.h"
#include "base/hash.h"
#include "base/subprocess.h"
#include "evaluator/baselines.h"
#include "evaluator/build_sources.h"
#include "sandbox/elf_file.h"

namespace ks::evaluator {
namespace {

namespace fs = base::fs;

constexpr double kCompileLimitS = 300;      // one run of g++
constexpr double kCudaCompileLimitS = 900;  // one run of nvcc: wgmma kernels take minutes
constexpr size_t kMaxOutputBytes = 4u << 20;

/// A compiler and how it is called.
struct Toolchain {
  std::string program;
  std::string version;  ///< its version line
  std::vector<std::string> compile_flags, link_flags;
  double limit_s = kCompileLimitS;
};

/// What one compiler run left.
struct Step {
  bool ok = true;
  std::string output;
};

/// Runs a compiler with an environment of our own: nothing that a user has set changes the result.
Step run_compiler(const std::vector<std::string>& argv, const fs::path& folder, double limit_s) {
  base::SpawnOptions options;
  options.argv = argv;
  options.folder = folder.string();
  options.clear_env = true;
  const char* path = std::getenv("PATH");
  options.env = {{"PATH", path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin"},
                 {"LC_ALL", "C.UTF-8"},
                 {"HOME", folder.string()},
                 {"TMPDIR", folder.string()}};
  options.timeout_s = limit_s;
  options.max_output_bytes = kMaxOutputBytes;
  const auto result = base::run_process(options);
  Step step{result.ok(), result.out + result.err};
  if (result.timed_out)
    step.output += fmt::format("error: {} did not end within {:.0f} s\n", argv[0], limit_s);
  else if (result.signal != 0)
    step.output += fmt::format("error: {} was ended by signal {}\n", argv[0], result.signal);
  return step;
}

/// Once a program's version is known it is not asked for again.
std::string version_of(const std::string& program) {
  static std::mutex mutex;
  static std::map<std::string, std::string> known;
  const std::lock_guard lock(mutex);
  auto& version = known[program];
  if (!version.empty()) return version;
  base::SpawnOptions options;
  options.argv = {program, "--version"};
  options.timeout_s = 30;
  const auto result = base::run_process(options);
  if (!result.ok()) throw Error("{} --version failed: {}", program, result.err);
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);)
    if (version.empty() || line.starts_with("Build ")) version = line;
  return version = program == "g++" ? version : "nvcc " + version;
}

/// -march=native means this processor; a cache that travels must notice.
std::string processor() {
  std::ifstream info("/proc/cpuinfo");
  std::string text;
  for (std::string line; std::getline(info, line) && !line.empty();)
    if (line.starts_with("model name") || line.starts_with("flags") || line.starts_with("Features"))
      text += line + "\n";
  return base::sha256_hex(text);
}

bool has_gencode(const Candidate& candidate) {
  for (const auto& flag : candidate.flags)
    if (flag.find("-gencode") != std::string::npos || flag.find("-arch") == 0) return true;
  return false;
}

Toolchain toolchain_for(const Candidate& candidate, const std::string& device) {
  Toolchain tools;
  if (device == "cuda") {
    tools.program = find_nvcc();
    if (tools.program.empty())
      throw Error(
          "no nvcc found: install the CUDA toolkit, or put nvcc into PATH, to build candidates for device cuda");
    tools.compile_flags = {"-std=c++20", "-O3", "-lineinfo", "-Xcompiler", "-fPIC,-fvisibility=hidden,-pthread",
                           "-Xptxas",    "-v"};
    if (!has_gencode(candidate)) {
      tools.compile_flags.push_back("-gencode");
      tools.compile_flags.push_back(fmt::format("arch=compute_{0},code=sm_{0}", candidate.arch));
    }
    tools.link_flags = {"-shared", "-cudart", "static"};
    // The driver itself need not be here to build against it.
    for (const char* stubs : {"../lib64/stubs", "../targets/x86_64-linux/lib/stubs", "../lib/stubs"}) {
      const auto folder = fs::path(tools.program).parent_path() / stubs;
      if (!fs::exists(folder / "libcuda.so")) continue;
      tools.link_flags.insert(tools.link_flags.end(), {"-L" + folder.lexically_normal().string(), "-lcuda"});
      break;
    }
    tools.limit_s = kCudaCompileLimitS;
  } else {
    tools.program = "g++";
    tools.compile_flags = {
        "-std=c++20", "-O3", "-march=native", "-fPIC", "-pthread", "-fvisibility=hidden", "-fdiagnostics-color=never"};
    tools.link_flags = {"-shared", "-pthread", "-Wl,-z,relro,-z,now"};
  }
  tools.version = version_of(tools.program);
  return tools;
}

/// One candidate on its way to a shared object.
struct Workshop {
  const Candidate& candidate;
  const Toolchain& tools;
  fs::path folder;  ///< clean, ours
  std::vector<fs::path> includes;
  std::string hash;

  fs::path object(size_t index) const { return folder / fmt::format("{}.o", index); }
  fs::path depfile(size_t index) const { return folder / fmt::format("{}.d", index); }
  fs::path shared_object() const { return folder / "candidate.so"; }
};

std::vector<std::string> compile_command(const Workshop& shop, size_t index) {
  std::vector<std::string> argv = {shop.tools.program};
  argv.insert(argv.end(), shop.tools.compile_flags.begin(), shop.tools.compile_flags.end());
  for (const auto& include : shop.includes) argv.push_back("-I" + include.string());
  argv.push_back(fmt::format("-DKS_SOURCE_HASH=\"{}\"", shop.hash));
  argv.insert(argv.end(), shop.candidate.flags.begin(), shop.candidate.flags.end());
  const fs::path source = fs::path(shop.candidate.folder) / shop.candidate.sources[index];
  if (shop.tools.program == "g++" && source.extension() == ".cu") argv.insert(argv.end(), {"-x", "c++"});
  argv.insert(argv.end(),
              {"-MMD", "-MF", shop.depfile(index).string(), "-c", source.string(), "-o", shop.object(index).string()});
  return argv;
}

/// Compiles every source by itself, as many at once as there are threads.
Step compile_sources(const Workshop& shop, int threads) {
  const size_t count = shop.candidate.sources.size();
  std::vector<Step> steps(count);
  std::vector<std::exception_ptr> problems(count);
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < count; i = next++) {
      try {
        steps[i] = run_compiler(compile_command(shop, i), shop.folder, shop.tools.limit_s);
      } catch (...) {
        problems[i] = std::current_exception();
      }
    }
  };
  std::vector<std::thread> workers;
  for (size_t i = 1; i < std::min<size_t>(count, static_cast<size_t>(std::max(threads, 1))); ++i)
    workers.emplace_back(work);
  work();
  for (auto& worker : workers) worker.join();
  Step all;
  for (size_t i = 0; i < count; ++i) {
    if (problems[i]) std::rethrow_exception(problems[i]);
    all.ok &= steps[i].ok;
    all.output += steps[i].output;
  }
  return all;
}

Step link_objects(const Workshop& shop) {
  std::vector<std::string> argv = {shop.tools.program};
  argv.insert(argv.end(), shop.tools.link_flags.begin(), shop.tools.link_flags.end());
  for (size_t i = 0; i < shop.candidate.sources.size(); ++i) argv.push_back(shop.object(i).string());
  argv.insert(argv.end(), {"-o", shop.shared_object().string()});
  argv.insert(argv.end(), shop.candidate.flags.begin(), shop.candidate.flags.end());
  for (const auto& name : shop.candidate.libs) argv.push_back("-l" + name);
  return run_compiler(argv, shop.folder, shop.tools.limit_s);
}

/// A file of the candidate that the compiler read and the hash does not cover: "" if there is none.
std::string missed_file(const Workshop& shop, const std::map<std::string, std::string>& hashed) {
  for (size_t i = 0; i < shop.candidate.sources.size(); ++i) {
    std::ifstream stream(shop.depfile(i));
    for (std::string word; stream >> word;) {
      if (word == "\\" || word.ends_with(":")) continue;
      const auto path = fs::path(word).lexically_normal();
      const auto place = path.lexically_relative(shop.candidate.folder).string();
      const bool is_own = path.is_absolute() && !place.empty() && !place.starts_with("..");
      if (is_own && !hashed.contains(path.string())) return place;
    }
  }
  return "";
}

/// Paths in messages as the person gave them.
std::string with_given_paths(std::string text, const Candidate& candidate) {
  const std::string from = candidate.folder + "/";
  std::string to = candidate.is_single_file ? fs::path(candidate.path).parent_path().string() : candidate.path;
  if (!to.empty() && !to.ends_with('/')) to += '/';
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

/// What is in Build::ptxas need not be in the log as well.
std::string without_ptxas_figures(const std::string& text) {
  std::istringstream stream(text);
  std::string result;
  for (std::string line; std::getline(stream, line);)
    if (line.find("ptxas info") == std::string::npos && line.find("bytes stack frame") == std::string::npos)
      result += line + "\n";
  return result;
}

void sync_path(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

/// Names that the objects use and none of them defines.
std::vector<std::string> undefined_names(const Workshop& shop) {
  std::set<std::string> used, defined;
  for (size_t i = 0; i < shop.candidate.sources.size(); ++i) {
    sandbox::ElfFile object;
    sandbox::read_elf(shop.object(i).string(), object);
    for (const auto& symbol : object.symbols) (symbol.defined ? defined : used).insert(symbol.name);
  }
  std::vector<std::string> result;
  std::set_difference(used.begin(), used.end(), defined.begin(), defined.end(), std::back_inserter(result));
  return result;
}

Json summary_of(const Build& build, const std::string& library_hash) {
  Json kernels = Json::array();
  for (const auto& kernel : build.ptxas) kernels.push_back(to_json(kernel));
  return {{"hash", build.hash},         {"source_hash", build.source_hash},
          {"compiler", build.compiler}, {"library_hash", library_hash},
          {"seconds", build.seconds},   {"log", build.log},
          {"ptxas", kernels},           {"imports", build.imports}};
}

/// Puts a finished build where the next call finds it, whole or not at all.
void keep_in_cache(Build& build, const Workshop& shop, const fs::path& place) {
  base::make_folder(place.parent_path());
  const fs::path temporary = place.string() + fmt::format(".{}.new", ::getpid());
  fs::remove_all(temporary);
  base::make_folder(temporary);
  try {
    fs::copy_file(shop.shared_object(), temporary / "candidate.so");
  } catch (const fs::filesystem_error& e) {
    throw Error("cannot write {}: {}", (temporary / "candidate.so").string(), e.code().message());
  }
  sync_path(temporary / "candidate.so");
  base::write_file_atomically(temporary / "build.json",
                              summary_of(build, base::sha256_hex(base::read_file(shop.shared_object()))).dump(1));
  sync_path(temporary);
  std::error_code failed;
  fs::rename(temporary, place, failed);
  // Somebody else was quicker with the same build: theirs is as good.
  if (failed) fs::remove_all(temporary);
  if (!fs::exists(place / "candidate.so")) throw Error("cannot write {}: {}", place.string(), failed.message());
  build.shared_object = (place / "candidate.so").string();
}

/// What build.json says of a build beside its hashes.
void read_summary(const Json& summary, Build& build) {
  build.log = summary.at("log");
  build.seconds = summary.at("seconds");
  build.imports = summary.at("imports").get<std::vector<std::string>>();
  for (const auto& kernel : summary.at("ptxas"))
    build.ptxas.push_back({kernel.at("name"), kernel.at("arch"), kernel.at("registers"), kernel.at("stack_bytes"),
                           kernel.at("spill_store_bytes"), kernel.at("spill_load_bytes"), kernel.at("smem_bytes"),
                           kernel.at("wgmma_serialized")});
}

/// A build of another machine, from the same sources and flags. Throws where it is not that.
void take_prebuilt(const fs::path& place, Build& build) {
  for (const char* name : {"build.json", "candidate.so"})
    if (!fs::exists(place / name)) throw Error("{}: {} is not there; a built candidate has both", place.string(), name);
  try {
    const Json summary = base::read_json_file((place / "build.json").string());
    if (summary.at("source_hash") != build.source_hash)
      throw Error("{}: was built from other sources or flags than the candidate's; build it anew from these",
                  place.string());
    if (summary.at("library_hash") != base::sha256_hex(base::read_file(place / "candidate.so")))
      throw Error("{}: candidate.so is not the file that build.json was written for", place.string());
    build.hash = summary.at("hash");
    build.compiler = summary.at("compiler");
    read_summary(summary, build);
  } catch (const nlohmann::json::exception& e) {
    throw Error("{}: {}", (place / "build.json").string(), e.what());
  }
  build.ok = build.cached = build.prebuilt = true;
  build.shared_object = fs::absolute(place / "candidate.so").string();
}

/// The build of an earlier call; false if there is none, or if its file is not what was kept.
bool take_from_cache(const fs::path& place, Build& build) {
  if (!fs::exists(place / "build.json") || !fs::exists(place / "candidate.so")) return false;
  try {
    const Json summary = base::read_json_file((place / "build.json").string());
    if (summary.at("library_hash") != base::sha256_hex(base::read_file(place / "candidate.so"))) {
      fs::remove_all(place);
      return false;
    }
    read_summary(summary, build);
  } catch (const std::exception&) {
    fs::remove_all(place);
    return false;
  }
  build.ok = build.cached = true;
  build.shared_object = (place / "candidate.so").string();
  return true;
}

}  // namespace

std::string find_nvcc() {
  std::vector<fs::path> folders;
  if (const char* path = std::getenv("PATH")) {
    std::istringstream stream(path);
    for (std::string folder; std::getline(stream, folder, ':');) folders.push_back(folder);
  }
  if (const char* home = std::getenv("CUDA_HOME")) folders.push_back(fs::path(home) / "bin");
  folders.push_back("/usr/local/cuda/bin");
  folders.push_back(environment_site_packages() / "nvidia/cu13/bin");
  folders.push_back(environment_site_packages() / "nvidia/cuda_nvcc/bin");
  for (const auto& folder : folders)
    if (!folder.empty() && ::access((folder / "nvcc").c_str(), X_OK) == 0) return (folder / "nvcc").string();
  return "";
}

Build build_candidate(const Candidate& candidate, const std::string& device, int threads, const std::string& prebuilt) {
  KS_CHECK(candidate.command.empty(), "a worker folder is not built");
  if (candidate.device != device)
    throw Error("{}: is for device {}, but device {} was asked for; pass --device {}", candidate.path, candidate.device,
                device, candidate.device);
  const auto includes = include_folders(candidate);
  const auto files = find_dependencies(candidate, includes);
  Build build;
  build.source_hash = source_hash_of(candidate, device, files);
  if (!prebuilt.empty()) return take_prebuilt(prebuilt, build), build;
  const Toolchain tools = toolchain_for(candidate, device);
  // Everything that can change the binary is in the hash; nvcc's code is for the GPU that the flags name.
  std::vector<std::string> settings = {tools.version, device == "cuda" ? "any processor" : processor()};
  for (const auto* list : {&tools.compile_flags, &tools.link_flags, &candidate.flags, &candidate.libs})
    for (const auto& word : *list)
      // Where the driver's stub lies says nothing of the binary.
      if (list != &tools.link_flags || !word.starts_with("-L")) settings.push_back(word);
  build.hash = hash_dependencies(candidate, files, settings);
  build.compiler = tools.version;
  const fs::path place = base::cache_folder() / "builds" / build.hash;
  if (take_from_cache(place, build)) return build;

  base::TempFolder clean("kernelseek-build");
  const Workshop shop{candidate, tools, clean.path(), includes, build.hash};
  const int64_t start = base::monotonic_ns();
  Step step = compile_sources(shop, threads);
  if (step.ok) {
    const Step link = link_objects(shop);
    step = {link.ok, step.output + link.output};
  }
  build.seconds = static_cast<double>(base::monotonic_ns() - start) * 1e-9;
  build.ptxas = parse_ptxas(step.output);
  build.log = first_errors(with_given_paths(step.output, candidate));
  if (!step.ok) return build;
  build.log = first_errors(without_ptxas_figures(with_given_paths(step.output, candidate)));
  if (const auto missed = missed_file(shop, files); !missed.empty()) {
    build.log = fmt::format(
        "error: {} is included in a way that the source hash does not see; name it in a plain #include\n", missed);
    return build;
  }
  build.imports = undefined_names(shop);
  build.ok = true;
  keep_in_cache(build, shop, place);
  return build;
}

}  // namespace ks::evaluator
