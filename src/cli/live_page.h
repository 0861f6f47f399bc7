// The live page of a run with the bank's best questions beside the box: for `serve`, and for `run --serve`.
#pragma once

#include <memory>
#include <string>

#include "run/asker.h"
#include "serve/server.h"

namespace ks::cli {

/// A server over a run's folder; what it suggests is read from the run's files as they grow.
class LivePage {
 public:
  /// Throws ks::Error where the port is taken or the folder is no run.
  LivePage(const std::string& run, int port);
  serve::Server& server() { return *server_; }

 private:
  Json suggestions();
  steering::Bank bank_;
  run::SteeringFeed feed_;
  std::unique_ptr<serve::Server> server_;
};

}  // namespace ks::cli
