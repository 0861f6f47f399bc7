// kernelseek disassemble CANDIDATE: the machine code of every kernel, as the tool prints it.
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/subprocess.h"
#include "cli/commands.h"
#include "evaluator/build.h"
#include "evaluator/candidate.h"

namespace ks::cli {
namespace {

struct DisassembleOptions {
  std::string candidate, other, operator_name, function;
};

/// The toolkit's programs lie beside its compiler, which need not be in PATH.
std::vector<std::pair<std::string, std::string>> environment_with_toolkit() {
  const std::string nvcc = evaluator::find_nvcc();
  const char* path = std::getenv("PATH");
  if (nvcc.empty() || path == nullptr) return {};
  return {{"PATH", std::string(path) + ":" + base::fs::path(nvcc).parent_path().string()}};
}

std::string output_of(const std::vector<std::string>& argv, const std::string& mend) {
  base::ProcessResult result;
  try {
    result = base::run_process(
        {.argv = argv, .env = environment_with_toolkit(), .timeout_s = 300, .max_output_bytes = 1u << 30});
  } catch (const Error& e) {
    throw Error("{} ({})", e.what(), mend);
  }
  if (!result.ok()) throw Error("{} failed: {}", argv[0], result.err);
  return result.out;
}

/// The whole text that the disassembler prints, registers first on a GPU.
std::string disassembly(const std::string& path, const DisassembleOptions& options) {
  const auto candidate = evaluator::load_candidate(path, options.operator_name);
  if (!candidate.command.empty()) throw Error("{}: a worker folder has no binary to disassemble", path);
  const auto build = evaluator::build_candidate(candidate, candidate.device, 2);
  if (!build.ok) throw Error("{} does not compile:\n{}", path, build.log);
  if (candidate.device == "cpu")
    return output_of({"objdump", "-d", "-C", "--no-show-raw-insn", build.shared_object}, "apt-get install binutils");
  std::string text;
  for (const auto& kernel : build.ptxas)
    text += fmt::format("{} ({}): {} registers, {} bytes of stack, {} and {} bytes spilled\n", kernel.name, kernel.arch,
                        kernel.registers, kernel.stack_bytes, kernel.spill_store_bytes, kernel.spill_load_bytes);
  const auto beside = base::fs::path(evaluator::find_nvcc()).parent_path() / "cuobjdump";
  const std::string tool = base::fs::exists(beside) ? beside.string() : "cuobjdump";
  std::vector<std::string> command = {tool, "-sass", build.shared_object};
  if (!options.function.empty()) command.insert(command.begin() + 2, {"-fun", options.function});
  return text + output_of(command, "cuobjdump is part of the CUDA toolkit; or pip install nvidia-cuda-cuobjdump");
}

void disassemble_command(const DisassembleOptions& options) {
  const std::string text = disassembly(options.candidate, options);
  if (options.other.empty()) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return;
  }
  const base::TempFolder folder;
  base::write_file_atomically(folder.path() / "this", text);
  base::write_file_atomically(folder.path() / "other", disassembly(options.other, options));
  const auto result =
      base::run_process({.argv = {"diff", "--side-by-side", "--width=200", (folder.path() / "this").string(),
                                  (folder.path() / "other").string()},
                         .max_output_bytes = 1u << 30});
  std::fwrite(result.out.data(), 1, result.out.size(), stdout);
}

}  // namespace

void add_disassemble_command(CLI::App& app) {
  auto options = std::make_shared<DisassembleOptions>();
  auto* command = app.add_subcommand("disassemble", "Machine code of a candidate, as the disassembler prints it");
  command->footer("Example: kernelseek disassemble examples/attention_naive.cpp --beside kernels/attention_cpu");
  command->add_option("candidate", options->candidate, "Source file or folder")->required();
  command->add_option("--beside", options->other, "Another version, shown side by side");
  command->add_option("--operator", options->operator_name, "Operator, where the candidate names none");
  command->add_option("--function", options->function, "Only this kernel (mangled name; GPU)");
  command->callback([options] { disassemble_command(*options); });
}

}  // namespace ks::cli
