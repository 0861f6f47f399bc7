// See export.h. An ATIF step is what the agent said and called until something came back; results are put into the step
// that made the call.
#include "trace/export.h"

#include <map>

#include "base/clock.h"
#include "trace/trace_writer.h"

namespace ks::trace {

namespace fs = base::fs;

namespace {

/// The steps of one session, in the making.
struct Trajectory {
  Json steps = Json::array();
  bool is_open = false;                  ///< the last step is the agent's, and nothing has come back yet
  std::map<std::string, size_t> caller;  ///< step by call id
  std::map<std::string, std::pair<size_t, Json>> usage;  ///< the last usage by id, and the step that it belongs to
  std::string agent = "unknown", model;
};

/// Builds the trajectories from events in order.
class AtifBuilder {
 public:
  void add(const Event& event) {
    Trajectory& trajectory = at(event.session);
    if (event.kind == "session_start") {
      if (const std::string name = text_at(event.body, "agent"); !name.empty()) trajectory.agent = name;
      trajectory.model = text_at(event.body, "model");
    }
    if (event.kind == "message") message(trajectory, event);
    if (event.kind == "tool_call") tool_call(trajectory, event);
    if (event.kind == "tool_result") tool_result(trajectory, event);
    if (event.kind == "usage") usage(trajectory, event);
  }

  Json document(const std::string& name) {
    if (order_.empty()) at("main");
    Json root = {{"schema_version", "ATIF-v1.7"}, {"session_id", name}};
    fill(root, trajectories_[order_[0]], cost_usd_);
    for (size_t i = 1; i < order_.size(); ++i) {
      Json helper = {{"schema_version", "ATIF-v1.7"}, {"session_id", order_[i]}};
      fill(helper, trajectories_[order_[i]], std::nullopt);
      root["subagent_trajectories"].push_back(std::move(helper));
    }
    return root;
  }

 private:
  Trajectory& at(const std::string& session) {
    const auto [found, is_new] = trajectories_.try_emplace(session);
    if (is_new) order_.push_back(session);
    return found->second;
  }

  static Json& new_step(Trajectory& trajectory, const Event& event, const char* source) {
    Json step = {{"step_id", trajectory.steps.size() + 1}};
    if (event.time > 0) step["timestamp"] = base::iso8601(event.time);
    step["source"] = source;
    step["message"] = "";
    trajectory.steps.push_back(std::move(step));
    trajectory.is_open = source == std::string_view("agent");
    return trajectory.steps.back();
  }

  static Json& agent_step(Trajectory& trajectory, const Event& event) {
    if (trajectory.is_open) return trajectory.steps.back();
    return new_step(trajectory, event, "agent");
  }

  static void append(Json& to, const std::string& text) {
    const std::string before = to.is_string() ? to.get<std::string>() : "";
    to = before.empty() ? text : before + "\n" + text;
  }

  void message(Trajectory& trajectory, const Event& event) {
    const std::string role = text_at(event.body, "role"), source = text_at(event.body, "source");
    const std::string text = text_at(event.body, "text");
    if (role == "agent") {
      append(agent_step(trajectory, event)[source == "thinking" ? "reasoning_content" : "message"], text);
      return;
    }
    Json& step = new_step(trajectory, event, role == "human" ? "user" : "system");
    step["message"] = text;
    if (!source.empty()) step["extra"]["kernelseek_source"] = source;
  }

  void tool_call(Trajectory& trajectory, const Event& event) {
    Json& step = agent_step(trajectory, event);
    const std::string id = text_at(event.body, "id");
    Json call = {{"tool_call_id", id},
                 {"function_name", text_at(event.body, "tool")},
                 {"arguments", value_at(event.body, "input")}};
    if (!call["arguments"].is_object())
      call["arguments"] = call["arguments"].is_null() ? Json::object() : Json{{"input", call["arguments"]}};
    call["extra"]["kernelseek_kind"] = text_at(event.body, "kind");
    if (event.time > 0) call["extra"]["kernelseek_time"] = event.time;
    step["tool_calls"].push_back(std::move(call));
    trajectory.caller[id] = trajectory.steps.size() - 1;
  }

  void tool_result(Trajectory& trajectory, const Event& event) {
    const std::string id = text_at(event.body, "id");
    const auto caller = trajectory.caller.find(id);
    trajectory.is_open = false;
    if (caller == trajectory.caller.end()) {  // its call is not in the transcript
      Json& step = new_step(trajectory, event, "system");
      step["message"] = text_at(event.body, "text");
      step["extra"]["kernelseek_source"] = "result_without_call";
      return;
    }
    Json result = {{"source_call_id", id}, {"content", text_at(event.body, "text")}};
    if (truth_at(event.body, "is_error")) result["extra"]["kernelseek_is_error"] = true;
    if (event.time > 0) result["extra"]["kernelseek_time"] = event.time;
    trajectory.steps[caller->second]["observation"]["results"].push_back(std::move(result));
  }

  void usage(Trajectory& trajectory, const Event& event) {
    const std::string id = text_at(event.body, "id");
    if (value_at(event.body, "cost_usd").is_number()) {
      double& cost = costs_[event.session + "\n" + (id.empty() ? std::to_string(event.seq) : id)];
      cost_usd_ = cost_usd_.value_or(0) - cost + number_at(event.body, "cost_usd");
      cost = number_at(event.body, "cost_usd");
    }
    if (!event.body.contains("output_tokens")) return;
    if (trajectory.steps.empty()) new_step(trajectory, event, "agent");
    trajectory.usage[id.empty() ? std::to_string(event.seq) : id] = {trajectory.steps.size() - 1, event.body};
  }

  static void fill(Json& root, Trajectory& trajectory, std::optional<double> cost_usd) {
    root["agent"] = {{"name", trajectory.agent}, {"version", "unknown"}};
    if (!trajectory.model.empty()) root["agent"]["model_name"] = trajectory.model;
    int64_t prompt = 0, completion = 0, cached = 0;
    for (const auto& [id, entry] : trajectory.usage) {
      const auto& [index, body] = entry;
      Json& metrics = trajectory.steps[index]["metrics"];
      const int64_t step_cached = integer_at(body, "cached_tokens");
      const int64_t step_prompt =
          integer_at(body, "input_tokens") + step_cached + integer_at(body, "cache_write_tokens");
      metrics["prompt_tokens"] = integer_at(metrics, "prompt_tokens") + step_prompt;
      metrics["completion_tokens"] = integer_at(metrics, "completion_tokens") + integer_at(body, "output_tokens");
      metrics["cached_tokens"] = integer_at(metrics, "cached_tokens") + step_cached;
      prompt += step_prompt, completion += integer_at(body, "output_tokens"), cached += step_cached;
    }
    root["steps"] = std::move(trajectory.steps);
    root["final_metrics"] = {{"total_prompt_tokens", prompt},
                             {"total_completion_tokens", completion},
                             {"total_cached_tokens", cached},
                             {"total_steps", root["steps"].size()}};
    if (cost_usd) root["final_metrics"]["total_cost_usd"] = *cost_usd;
  }

  std::map<std::string, Trajectory> trajectories_;
  std::vector<std::string> order_;
  std::map<std::string, double> costs_;
  std::optional<double> cost_usd_;
};

void read_all(const TraceFiles& files, const EventUse& use, const ReadOptions& options) {
  read_transcript(files.main, use, options);
  for (const fs::path& helper : files.helpers) read_transcript(helper, use, options);
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

Json atif_of(const TraceFiles& files, const ReadOptions& options) {
  AtifBuilder builder;
  read_all(
      files, [&](Event&& event) { builder.add(event); }, options);
  return builder.document(files.main.stem().string());
}

void write_csv(const TraceFiles& files, const std::function<void(std::string_view)>& write,
               const ReadOptions& options) {
  write("seq,time,kind,session,id,role,source,tool,tool_kind,text,body\n");
  read_all(
      files,
      [&](Event&& event) {
        const auto cell = [&](const char* key) { return csv_cell(text_at(event.body, key)); };
        const bool is_call = event.kind == "tool_call";
        std::string row =
            fmt::format("{},{},{},{},{},{},{},{},{},{},", event.seq, event.time > 0 ? base::iso8601(event.time) : "",
                        event.kind, csv_cell(event.session), cell("id"), cell("role"), cell("source"), cell("tool"),
                        is_call ? cell("kind") : "", cell("text"));
        for (const char* key : {"id", "role", "source", "tool", "text"})
          if (text_at(event.body, key).size() == 0)
            continue;
          else
            event.body.erase(key);
        if (is_call) event.body.erase("kind");
        row += event.body.empty() ? "" : csv_cell(base::to_line(event.body));
        write(row + "\n");
      },
      options);
}

ImportReport import_into(const TraceFiles& files, const fs::path& out, fs::path& written, const ReadOptions& options) {
  written = out.extension() == ".jsonl" ? out : out / "trace.jsonl";
  if (fs::exists(written))
    throw Error("{}: there is a trace already, and imports are not mixed into it; choose another place for --out",
                written.string());
  if (written.has_parent_path()) base::make_folder(written.parent_path());
  const auto importer = sniff(files.main);
  Json about = {{"imported_from", files.main.filename().string()}};
  if (importer) about["format"] = importer->report().format;
  TraceWriter writer(written, about);
  ReadOptions ahead = options;
  ahead.parse_ahead = true;
  const auto use = [&](Event&& event) { writer.append(std::move(event)); };
  ImportReport report = read_transcript(files.main, use, ahead);
  for (const fs::path& helper : files.helpers) {
    const ImportReport more = read_transcript(helper, use, ahead);
    report.lines += more.lines, report.records += more.records, report.used += more.used;
    for (const auto& [name, count] : more.skipped) report.skipped[name] += count;
    for (const auto& [name, count] : more.problems) report.problems[name] += count;
  }
  writer.sync();
  return report;
}

}  // namespace ks::trace
