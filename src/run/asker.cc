#include "run/asker.h"

#include <algorithm>
#include <set>

#include "trace/trace_writer.h"

namespace ks::run {
namespace {
namespace fs = base::fs;

void add_once(std::vector<std::string>& names, const std::string& name) {
  if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

/// A record of a folder, by file name.
struct Found {
  std::string file;
  core::Evaluation evaluation;
};

std::vector<Found> records_in(const fs::path& folder) {
  std::vector<Found> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    const std::string text = base::read_file(entry.path());
    if (text.find(core::kEvaluationSchema) == std::string::npos) continue;
    found.push_back({entry.path().filename().string(), core::read_evaluation(entry.path())});
  }
  std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
    return std::tie(a.evaluation.started, a.file) < std::tie(b.evaluation.started, b.file);
  });
  return found;
}

}  // namespace

SteeringFeed::SteeringFeed(const fs::path& folder, uint64_t seed)
    : folder_(folder), seed_(seed), reader_(folder / "trace.jsonl") {}

void SteeringFeed::take_names(const core::Evaluation& evaluation) {
  for (const auto& result : evaluation.scenarios) {
    add_once(names_, result.name);
    add_once(names_, result.category);
    for (const auto& [column, value] : result.values) add_once(names_, column);
  }
}

void SteeringFeed::take(const trace::Event& event) {
  tracker_.on_event(event);
  const Json& body = event.body;
  if (event.kind == "tool_call") ++open_tools_;
  if (event.kind == "tool_result" && open_tools_ > 0) --open_tools_;
  if (event.kind == "edit") add_once(names_, base::value_or<std::string>(body, "file", ""));
  if (event.kind == "evaluation") {
    ++n_evaluations_;
    const auto path = folder_ / base::value_or<std::string>(body, "record", "");
    // A part of the grid would look like a loss of everything else.
    if (!base::value_or(body, "partial", false) && fs::is_regular_file(path)) {
      const auto evaluation = core::read_evaluation(path);
      tracker_.on_evaluation(base::value_or(body, "number", n_evaluations_), evaluation);
      take_names(evaluation);
    }
  }
  if (event.kind == "question" && body.contains("log")) {
    const Json& log = body["log"];
    asked_.push_back({log.value("id", ""), log.value("category", ""), log.value("evaluation", 0),
                      log.value("evidence_hash", ""), std::nullopt});
  }
  if (event.kind == "answer" && !asked_.empty()) {
    auto question = base::value_or<std::string>(body, "log", "");
    if (question.empty()) question = base::value_or<std::string>(body, "question", "");
    const auto found =
        std::find_if(asked_.rbegin(), asked_.rend(), [&](const auto& asked) { return asked.id == question; });
    if (found != asked_.rend()) found->answered = base::value_or(body, "answered", false);
  }
}

std::optional<trace::Event> SteeringFeed::step() {
  auto event = reader_.next();
  if (event) take(*event);
  return event;
}

steering::SteeringState SteeringFeed::state(bool is_stop_requested) {
  while (step()) {
  }
  return current(is_stop_requested);
}

steering::SteeringState SteeringFeed::current(bool is_stop_requested) const {
  steering::SteeringState state;
  state.signals = tracker_.current();
  state.evidence = [this](const std::vector<std::string>& signals) { return tracker_.evidence(signals); };
  state.names = names_;
  state.asked = asked_;
  state.n_evaluations = n_evaluations_;
  state.is_tool_running = open_tools_ > 0;
  state.is_stop_requested = is_stop_requested;
  state.seed = seed_;
  return state;
}

Asked asked_from(const steering::Message& message, int evaluations) {
  Asked asked{message.id, message.category, message.question, message.text(), message.facts, message.focus, {}};
  asked.log = {{"id", message.log_id},
               {"category", message.log_category},
               {"evaluation", evaluations},
               {"evidence_hash", message.evidence_hash}};
  return asked;
}

namespace {

steering::QuestionerOptions questioner_options(const Task& task) {
  steering::QuestionerOptions options;
  options.hints_path = task.questions_file;
  options.model = task.questioner_model;
  return options;
}

}  // namespace

void check_questioner(const Task& task) {
  if (task.questioner == "human") return;
  const steering::Bank bank = steering::load_bank(steering::bank_folder());
  (void)steering::make_questioner(task.questioner, bank, questioner_options(task));
}

Questioner make_asker(const Task& task, const fs::path& folder) {
  struct Parts {
    steering::Bank bank;
    std::unique_ptr<steering::Questioner> questioner;
    std::unique_ptr<SteeringFeed> feed;
    std::function<void(const Json&)> note;  ///< of the moment at hand
  };
  auto parts = std::make_shared<Parts>();
  parts->bank = steering::load_bank(steering::bank_folder());
  auto options = questioner_options(task);
  options.note = [raw = parts.get()](const Json& note) {
    if (raw->note) raw->note(note);
  };
  parts->questioner = steering::make_questioner(task.questioner, parts->bank, options);
  parts->feed = std::make_unique<SteeringFeed>(folder, task.seed);
  return [parts](const Moment& moment) -> std::optional<Asked> {
    const auto state = parts->feed->state(moment.stop_requested);
    parts->note = moment.note;
    const auto message = parts->questioner->next(state);
    parts->note = {};
    if (!message) return std::nullopt;
    return asked_from(*message, state.n_evaluations);
  };
}

void ensure_trace(const fs::path& folder) {
  if (!fs::is_directory(folder)) throw Error("{}: there is no such run or folder of records", folder.string());
  const bool is_run =
      fs::exists(folder / "trace.jsonl") && (fs::exists(folder / "task.toml") || fs::exists(folder / "evaluations"));
  if (is_run) return;
  const auto records = records_in(folder);
  if (records.empty())
    throw Error(
        "{}: neither a run's folder nor a folder of evaluation records (write some with: kernelseek evaluate … --out "
        "{}/1.json)",
        folder.string(), folder.string());
  std::set<std::string> named;
  int number = 0;
  if (fs::exists(folder / "trace.jsonl"))
    for (const auto& event : trace::read_trace(folder / "trace.jsonl"))
      if (event.kind == "evaluation") named.insert(base::value_or<std::string>(event.body, "record", "")), ++number;
  if (named.size() == records.size()) return;
  trace::TraceWriter writer(folder / "trace.jsonl", {{"run", folder.filename().string()}, {"made_from", "records"}});
  if (number == 0)
    writer.append("run_start", "main",
                  {{"task", folder.filename().string()},
                   {"operator", records.front().evaluation.operator_name},
                   {"grid", records.front().evaluation.grid_name}});
  for (const auto& [file, evaluation] : records) {
    if (named.count(file) != 0) continue;
    const auto geomean = evaluation.summary.geomean.find("fastest");
    trace::Event event;
    event.time = evaluation.started + evaluation.wall_s;
    event.kind = "evaluation";
    event.session = "main";
    event.body = {
        {"number", ++number},
        {"record", file},
        {"outcome", evaluation.outcome},
        {"geomean", geomean != evaluation.summary.geomean.end() && geomean->second ? Json(*geomean->second) : Json()},
        {"correct", evaluation.summary.correct},
        {"total", evaluation.summary.total},
        {"candidate_hash", evaluation.candidate_hash}};
    writer.append(std::move(event));
  }
  writer.sync();
}

}  // namespace ks::run
