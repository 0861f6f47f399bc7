#include "cli/init_command.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "cli/commands.h"
#include "evaluator/operators.h"

namespace ks::cli {
namespace {
namespace fs = base::fs;

struct InitOptions {
  std::string folder, operator_name, device = "cpu";
};

/// The example that an operator's candidates may start from: the first with its marker and "naive" in its name.
std::string find_example(const std::string& name, const std::string& ending) {
  const auto folder = base::project_root() / "examples";
  std::vector<fs::path> files;
  if (fs::is_directory(folder))
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.path().extension() == ending && entry.path().filename().string().find("naive") != std::string::npos)
        files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const auto& file : files) {
    const std::string text = base::read_file(file);
    if (text.find("operator=" + name + "\n") != std::string::npos) return text;
  }
  return "";
}

/// A candidate that says "unsupported" to everything: it builds, and every function is there to be filled in.
std::string skeleton(const std::string& name) {
  return fmt::format(
      "// A candidate for {0}. It builds and answers \"unsupported\" until you fill it in; abi/kernelseek.h and {0}.h "
      "say\n"
      "// what each function gets.\n"
      "// kernelseek: operator={0}\n"
      "#include \"{0}.h\"\n\n"
      "extern \"C\" {{\n\n"
      "KS_EXPORT ks_status ks_sizes(const ks_{0}_shape* /*shape*/, ks_buffer_sizes* sizes) {{\n"
      "  *sizes = {{0, 0, 0}};\n"
      "  return KS_UNSUPPORTED;\n"
      "}}\n\n"
      "KS_EXPORT ks_status ks_plan(const ks_{0}_shape* /*shape*/, void* /*plan*/) {{ return KS_UNSUPPORTED; }}\n\n"
      "KS_EXPORT ks_status ks_run(const ks_{0}_call* /*call*/) {{ return KS_FAILED; }}\n\n"
      "}}  // extern \"C\"\n",
      name);
}

std::string task_text(const InitOptions& options, const std::string& file) {
  return fmt::format(
      "# What is to be reached, from where, by whom. Every key: docs/formats/task.md\n"
      "name = \"{}\"\n"
      "operator = \"{}\"\n"
      "grid = \"demo\"\n"
      "device = \"{}\"\n"
      "candidate = \"{}\"\n"
      "goal = \"geomean >= 1.0 and correct == all\"\n"
      "agent = \"tuner\"        # searches over constants marked // @tune; programs that write code: "
      "docs/formats/task.md\n"
      "questioner = \"bank\"\n"
      "seed = 1\n\n"
      "[budget]\n"
      "minutes = 10\n"
      "evaluations = 30\n",
      fs::absolute(options.folder).lexically_normal().filename().string(), options.operator_name, options.device, file);
}

std::string notes_text(const InitOptions& options, const std::string& file) {
  return fmt::format(
      "# Where to begin\n\n"
      "1. `kernelseek scenarios {0}` lists what is asked of a candidate.\n"
      "2. `kernelseek evaluate {1}` says what is right, what is slow, and by how much.\n"
      "3. Edit `{1}`. Mark a constant whose best value is a matter of trying with `// @tune NAME {{values}}`:\n"
      "   `constexpr int kRows = 8;  // @tune kRows {{4, 8, 16}}`.\n"
      "4. Edit `task.toml`: the goal, the budget, the agent.\n"
      "5. `kernelseek run task.toml --dry-run`, then without `--dry-run`.\n"
      "6. `kernelseek ask runs/<name>-1 --why` shows which question the evidence calls for.\n",
      options.operator_name, file);
}

void init_command(const InitOptions& options) {
  const auto the_operator = evaluator::find_operator(options.operator_name);
  if (options.device != "cpu" && options.device != "cuda")
    throw Error("unknown device \"{}\"; known: cpu, cuda", options.device);
  const std::string ending = options.device == "cuda" ? ".cu" : ".cpp";
  const std::string file = the_operator.name + ending;
  const fs::path folder = options.folder;
  for (const std::string& name : {std::string("task.toml"), file, std::string("NOTES.md")})
    if (fs::exists(folder / name))
      throw Error("{}: exists already; choose another folder, or remove it", (folder / name).string());
  std::string candidate = find_example(the_operator.name, ending);
  const bool is_skeleton = candidate.empty();
  if (is_skeleton) candidate = skeleton(the_operator.name);
  base::make_folder(folder);
  base::write_file_atomically(folder / file, candidate);
  base::write_file_atomically(folder / "task.toml", task_text(options, file));
  base::write_file_atomically(folder / "NOTES.md", notes_text(options, file));
  fmt::print("{}: {} ({}), task.toml, NOTES.md\nnext: kernelseek evaluate {}\n", folder.string(), file,
             is_skeleton ? "to be filled in: there is no example of this operator" : "plain and right: where to begin",
             (folder / file).string());
}

}  // namespace

void add_init_command(CLI::App& app) {
  auto options = std::make_shared<InitOptions>();
  auto* command = app.add_subcommand("init", "A folder to start from: candidate, task file, notes");
  command->footer("Example: kernelseek init my_attention --operator attention_fwd");
  command->add_option("folder", options->folder, "Folder to make")->required();
  command->add_option("--operator", options->operator_name, "Operator by name, or the path of its folder")->required();
  command->add_option("--device", options->device, "cpu or cuda")->capture_default_str();
  command->callback([options] { init_command(*options); });
}

}  // namespace ks::cli
