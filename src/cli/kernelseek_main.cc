// kernelseek: makes coding agents write faster kernels, and judges what they wrote. See ARCHITECTURE.md.
#include <csignal>
#include <cstdio>
#include <exception>

#include "cli/all_commands.h"

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  CLI::App app{
      "KernelSeek steers coding agents towards faster kernels with questions, and judges kernels with an\n"
      "evaluator that cannot be fooled. Start with: kernelseek evaluate examples/attention_naive.cpp"};
  app.name("kernelseek");
  app.require_subcommand(1);
  app.set_version_flag("--version", "kernelseek 0.1.0");
  ks::cli::add_all_commands(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    const int code = app.exit(e);
    return code == 0 ? 0 : ks::cli::kCouldNot;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "kernelseek: %s\n", e.what());
    return ks::cli::kCouldNot;
  }
  return ks::cli::exit_code();
}
