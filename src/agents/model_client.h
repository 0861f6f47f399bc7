// Asks a model and comes back with a whole answer, or with the error that ends the matter. What passes by itself (a
// server's failure, a stream that was cut, silence) is tried again with growing pauses; a rate limit is waited for as
// the server asks. An answer that is not whole is dropped, so nothing that it asked for is ever done.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "agents/http_transport.h"
#include "agents/model_wire.h"

namespace ks::agents {

class ModelClient {
 public:
  struct Setup {
    ModelSpec spec;
    HttpSend send;
    std::function<bool()> should_stop;
    std::function<void(double seconds)> wait;
    std::function<void(const std::string& what, const std::string& text)> note;  ///< for the trace
  };
  explicit ModelClient(Setup setup);

  /// Nothing where it was stopped. Throws ks::Error where trying again is of no use, or no more.
  std::optional<ModelAnswer> ask(const std::string& system, const std::vector<Entry>& entries,
                                 const std::vector<ToolOffer>& tools);
  const ModelSpec& spec() const { return setup_.spec; }
  /// What an answer costs; nothing where the price is not known.
  std::optional<double> cost(const TokenUsage& usage) const;

 private:
  struct Failure;
  std::optional<ModelAnswer> try_once(const HttpRequest& request, Failure& failure);

  Setup setup_;
  std::unique_ptr<Wire> wire_;
};

}  // namespace ks::agents
