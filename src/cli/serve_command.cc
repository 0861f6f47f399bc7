// kernelseek serve RUN [--port N]
#include "cli/serve_command.h"

#include <pthread.h>

#include <csignal>
#include <memory>
#include <thread>

#include "cli/commands.h"
#include "cli/live_page.h"

namespace ks::cli {
namespace {

struct ServeOptions {
  std::string run;
  int port = 0;
};

void serve_command(const ServeOptions& options) {
  // Ctrl-C is waited for on a thread of its own, so that open pages end in order.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  LivePage page(options.run, options.port);
  serve::Server& server = page.server();
  fmt::print("{}\n", server.address());
  std::fflush(stdout);
  fmt::print(stderr, "anyone with this address can watch and steer the run; Ctrl-C ends the page, not the run\n");
  std::thread waiter([&] {
    int signal = 0;
    sigwait(&signals, &signal);
    server.stop();
  });
  server.serve();
  pthread_kill(waiter.native_handle(), SIGTERM);
  waiter.join();
}

}  // namespace

void add_serve_command(CLI::App& app) {
  auto options = std::make_shared<ServeOptions>();
  auto* command = app.add_subcommand("serve", "Show a run's report live, with a box in which a person asks questions");
  command->footer("Example: kernelseek serve runs/demo-1 --port 8080");
  command->add_option("run", options->run, "The run's folder")->required();
  command->add_option("--port", options->port, "Port on 127.0.0.1; 0: any free one")
      ->capture_default_str()
      ->check(CLI::Range(0, 65535));
  command->callback([options] { serve_command(*options); });
}

}  // namespace ks::cli
