#include "evaluator/oracle_client.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

namespace ks::evaluator {

void Layout::close_fds() {
  for (const int fd : fds) ::close(fd);
  fds.clear();
}

OracleClient::OracleClient(const std::string& operator_library, const std::string& device, int threads,
                           const std::vector<std::string>& counters_off) {
  const auto program = base::executable_folder() / "kernelseek-oracle";
  child_ = std::make_unique<base::Child>(base::SpawnOptions{.argv = {program.string()}});
  const Json answer = ask({{"do", "open"},
                           {"operator", operator_library},
                           {"device", device},
                           {"threads", threads},
                           {"counters_off", counters_off}});
  device_ = answer["device"];
  cold_bytes_ = answer["cold_bytes"].get<uint64_t>();
}

Json OracleClient::ask(const Json& request, std::vector<int>* fds) {
  const int64_t start = base::monotonic_ns();
  std::optional<base::ChannelMessage> message;
  if (child_->channel().send(request)) message = child_->channel().receive(-1);
  if (!message)
    throw Error("the oracle process ended while answering \"{}\" ({})", request["do"].get<std::string>(),
                base::describe_exit(child_->kill()));
  answering_s_[request["do"].get<std::string>()] += static_cast<double>(base::monotonic_ns() - start) * 1e-9;
  if (fds != nullptr) *fds = message->fds;
  const std::string error = message->body.value("error", "");
  if (error.starts_with("out of memory")) throw OutOfMemory(error);
  if (!message->body.value("ok", false)) throw Error("{}", message->body.value("error", "the oracle failed"));
  return message->body;
}

ProblemInfo OracleClient::problem(const core::Scenario& scenario) {
  const Json answer = ask({{"do", "problem"},
                           {"scenario",
                            {{"id", scenario.id},
                             {"name", scenario.name},
                             {"category", scenario.category},
                             {"origin", scenario.origin},
                             {"values", scenario.values}}}});
  ProblemInfo info;
  info.json = {{"shape", answer["shape"]}, {"call", answer["call"]}, {"tensors", answer["tensors"]}};
  for (const auto& recipe : answer["recipes"]) info.recipes.push_back(recipe["name"].get<std::string>());
  info.set_bytes = answer["set_bytes"].get<uint64_t>();
  info.flops = answer["flops"].get<double>();
  info.bytes = answer["bytes"].get<double>();
  info.matrix_dtype = answer["matrix_dtype"].get<std::string>();
  info.has_lengths = answer["has_lengths"].get<bool>();
  return info;
}

void OracleClient::solve(const std::string& slot, const std::string& recipe, uint64_t seed, bool nan_slack,
                         int64_t sampled_rows) {
  ask({{"do", "solve"},
       {"slot", slot},
       {"recipe", recipe},
       {"seed", seed},
       {"nan_slack", nan_slack},
       {"sampled_rows", sampled_rows}});
}

Layout OracleClient::lay_out(const std::string& side, int count, uint64_t scratch, uint64_t state, uint64_t schedule) {
  Layout layout;
  const Json answer = ask({{"do", "layout"},
                           {"side", side},
                           {"count", count},
                           {"scratch_bytes", scratch},
                           {"state_bytes", state},
                           {"schedule_bytes", schedule}},
                          &layout.fds);
  layout.arenas = answer["arenas"];
  layout.sets = answer["sets"];
  return layout;
}

void OracleClient::prepare(const std::string& side, const std::vector<int>& sets, const std::string& slot,
                           uint64_t seed, bool timed) {
  ask({{"do", "prepare"}, {"side", side}, {"sets", sets}, {"slot", slot}, {"seed", seed}, {"timed", timed}});
}

Finding OracleClient::verify(const std::string& side, const std::vector<int>& sets,
                             const std::vector<std::string>& skip, bool loose, bool timed) {
  const Json answer =
      ask({{"do", "verify"}, {"side", side}, {"sets", sets}, {"skip", skip}, {"loose", loose}, {"timed", timed}});
  const auto number = [&](const char* key) {
    return answer[key].is_null() ? std::numeric_limits<double>::infinity() : answer[key].get<double>();
  };
  return {answer["correct"].get<bool>(),
          core::parse_verdict(answer["verdict"].get<std::string>()),
          answer["reason"].get<std::string>(),
          {number("worst"), number("mean"), number("limit")},
          answer.value("state", Json::object())};
}

bool OracleClient::same_outputs(const std::string& side, int first, int second) {
  return ask({{"do", "same"}, {"side", side}, {"first", first}, {"second", second}})["same"].get<bool>();
}

void OracleClient::release(const std::string& side) {
  ask({{"do", "release"}, {"side", side}});
}
void OracleClient::forget(const std::string& slot) {
  ask({{"do", "forget"}, {"slot", slot}});
}

}  // namespace ks::evaluator
