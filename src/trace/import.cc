// See import.h.
#include "trace/import.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "trace/line_reader.h"

namespace ks::trace {

namespace fs = base::fs;

namespace {

struct Format {
  const char* name;
  std::unique_ptr<Importer> (*make)();
};

constexpr std::array<Format, 11> kFormats = {{{"kernelseek", make_own_importer},
                                              {"claude-code", make_claude_code_importer},
                                              {"codex", make_codex_importer},
                                              {"cursor", make_cursor_importer},
                                              {"gemini-cli", make_gemini_importer},
                                              {"openhands", make_openhands_importer},
                                              {"swe-agent", make_swe_agent_importer},
                                              {"mini-swe-agent", make_mini_swe_agent_importer},
                                              {"atif", make_atif_importer},
                                              {"aider", make_aider_importer},
                                              {"gemini-cli-lines", make_gemini_lines_importer}}};

/// The format that one record of a file of lines speaks for; "" where it could be of several.
std::string format_of_record(const Json& json) {
  if (!json.is_object()) return "";
  const std::string type = text_at(json, "type"), schema = text_at(json, "schema");
  if (schema.starts_with("kernelseek.trace/")) return "kernelseek";
  if (json.contains("seq") && json.contains("kind") && json.contains("body")) return "kernelseek";
  if (type == "tool_call" || (type == "thinking" && json.contains("session_id")) || json.contains("timestamp_ms"))
    return "cursor";
  if (type == "system" && text_at(json, "subtype") == "init")
    return json.contains("apiKeySource") && !json.contains("tools") ? "cursor" : "claude-code";
  if (json.contains("payload") || type == "session_meta" || type.starts_with("thread.") || type.starts_with("turn.") ||
      type.starts_with("item."))
    return "codex";
  if (type == "tool_use" || type == "init" || json.contains("$set") ||
      (json.contains("sessionId") && json.contains("projectHash")) || type == "gemini")
    return "gemini-cli-lines";
  if (json.contains("record_type") || type == "function_call" || type == "function_call_output" ||
      json.contains("instructions"))
    return "codex";
  const bool is_claude = json.contains("parentUuid") || json.contains("leafUuid") || type == "queue-operation" ||
                         type == "file-history-snapshot" || json.contains("parent_tool_use_id") ||
                         (json.contains("uuid") && json.contains("sessionId"));
  return is_claude ? "claude-code" : "";
}

/// The format of a file that is one JSON document, from its first bytes.
std::string format_of_document(std::string_view text) {
  const auto has = [&](std::string_view key) { return text.find(key) != std::string_view::npos; };
  const size_t start = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (start == std::string_view::npos || (text[start] != '{' && text[start] != '[')) return "";
  if (has("\"schema_version\"") && has("ATIF")) return "atif";
  if (has("\"messages\"") && (has("\"projectHash\"") || has("\"sessionId\""))) return "gemini-cli";
  if (has("mini-swe-agent") || has("\"mini_version\"")) return "mini-swe-agent";
  if (has("\"trajectory\"") && (has("\"action\"") || has("\"history\"") || has("\"environment\""))) return "swe-agent";
  if (text[start] == '[' && has("\"source\"") && (has("\"action\"") || has("\"observation\""))) return "openhands";
  if (has("\"messages\"") && has("\"info\"")) return "mini-swe-agent";
  return has("\"steps\"") && has("\"step_id\"") ? "atif" : "";
}

std::string head_of(const fs::path& path, size_t bytes) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw Error("{}: cannot be opened: {}", path.string(), std::strerror(errno));
  std::string text(bytes, '\0');
  size_t done = 0;
  while (done < bytes) {
    const ssize_t got = ::read(fd, text.data() + done, bytes - done);
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  ::close(fd);
  text.resize(done);
  return text;
}

std::string sniff_name(const fs::path& path) {
  constexpr size_t kHeadBytes = 1 << 18;
  const std::string head = head_of(path, kHeadBytes);
  if (head.starts_with("# aider chat started at ") || head.find("\n# aider chat started at ") != std::string::npos)
    return "aider";
  JsonLineParser parser;
  std::string found;
  for (size_t at = 0, lines = 0; at < head.size() && lines < 50 && found.empty(); ++lines) {
    const size_t end = std::min(head.find('\n', at), head.size());
    Counters ignored;
    const std::string_view line(head.data() + at, end - at);
    if (line.starts_with("{") && line.size() > 2)
      if (const auto json = parser.parse_unpadded(line, ignored)) found = format_of_record(*json);
    at = end + 1;
  }
  if (!found.empty()) return found;
  if (const std::string name = format_of_document(head); !name.empty()) return name;
  // Keys that name the format may stand at a document's end (the agent's version after the messages).
  if (head.size() < kHeadBytes || head.find_first_of("{[") == std::string::npos) return "";
  return format_of_document(base::read_file(path));
}

void feed(const fs::path& path, Importer& importer) {
  if (importer.is_document()) {
    importer.document(base::read_file(path));
    return importer.finish();
  }
  LineReader lines(path);
  const auto give = [&](const Line& line) {
    if (!line.is_too_long) return importer.line(line.text);
    ++importer.report().lines;
    importer.count_problem("line_too_long");
  };
  while (const auto line = lines.next()) give(*line);
  if (const auto line = lines.rest()) {
    const int64_t before = importer.report().records;
    give(*line);
    if (importer.report().records == before && importer.report().format != "aider")
      importer.count_problem("torn_last_line");
  }
  importer.finish();
}

/// Events on their way from the parsing thread to the using one, in batches; at most kDepth of them wait.
class EventQueue {
 public:
  /// Puts a batch in and gives a used one back, to be emptied by the thread that filled it: memory that one thread
  /// takes and another frees costs a lock each time.
  std::vector<Event> exchange(std::vector<Event> batch) {
    std::unique_lock lock(mutex_);
    space_.wait(lock, [&] { return batches_.size() < kDepth || is_abandoned_; });
    if (!is_abandoned_) batches_.push_back(std::move(batch));
    ready_.notify_one();
    if (used_.empty()) return {};
    std::vector<Event> used = std::move(used_.back());
    used_.pop_back();
    return used;
  }
  void close() {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    ready_.notify_one();
  }
  void abandon() {
    const std::lock_guard lock(mutex_);
    is_abandoned_ = true;
    space_.notify_one();
  }
  bool pop(std::vector<Event>& batch) {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [&] { return !batches_.empty() || is_closed_; });
    if (!batch.empty()) used_.push_back(std::move(batch));
    if (batches_.empty()) return false;
    batch = std::move(batches_.front());
    batches_.pop_front();
    space_.notify_one();
    return true;
  }

 private:
  static constexpr size_t kDepth = 6;
  std::mutex mutex_;
  std::condition_variable ready_, space_;
  std::deque<std::vector<Event>> batches_;
  std::vector<std::vector<Event>> used_;
  bool is_closed_ = false, is_abandoned_ = false;
};

size_t weight(const Event& event) {
  const auto text = event.body.find("text");
  return 256 + (text != event.body.end() && text->is_string() ? text->get_ref<const std::string&>().size() : 0);
}

void feed_ahead(const fs::path& path, Importer& importer, const EventUse& use) {
  constexpr size_t kBatchBytes = 1 << 17;
  EventQueue queue;
  std::exception_ptr failure;
  std::vector<Event> filling;
  size_t filled = 0;
  importer.set_use([&](Event&& event) {
    filled += weight(event);
    filling.push_back(std::move(event));
    if (filled < kBatchBytes) return;
    filling = queue.exchange(std::move(filling));
    filling.clear();
    filled = 0;
  });
  std::thread parser([&] {
    try {
      feed(path, importer);
      queue.exchange(std::move(filling));
    } catch (...) {
      failure = std::current_exception();
    }
    queue.close();
  });
  try {
    std::vector<Event> batch;
    while (queue.pop(batch))
      for (Event& event : batch) use(std::move(event));
  } catch (...) {
    queue.abandon();
    parser.join();
    throw;
  }
  parser.join();
  if (failure) std::rethrow_exception(failure);
}

bool is_helper_file(const fs::path& path) {
  for (const auto& part : path.parent_path())
    if (part == "subagents") return true;
  return false;
}

/// "…/SESSION.jsonl" of a helper's "…/SESSION/subagents/…/agent-x.jsonl".
fs::path session_file_of(const fs::path& helper) {
  fs::path folder = helper.parent_path();
  while (folder.has_filename() && folder.filename() != "subagents") folder = folder.parent_path();
  fs::path session = folder.parent_path();
  session += ".jsonl";
  return session;
}

}  // namespace

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const Format& format : kFormats)
    if (format.name != std::string_view("gemini-cli-lines")) names.emplace_back(format.name);
  return names;
}

std::unique_ptr<Importer> make_importer(std::string_view name) {
  for (const Format& format : kFormats)
    if (name == format.name) return format.make();
  return nullptr;
}

std::unique_ptr<Importer> sniff(const fs::path& path) {
  return make_importer(sniff_name(path));
}

ImportReport read_transcript(const fs::path& path, const EventUse& use, const ReadOptions& options) {
  auto importer = options.format.empty() ? sniff(path) : make_importer(options.format);
  if (!importer && !options.format.empty())
    throw Error("there is no transcript format \"{}\"; known: {}", options.format, fmt::join(format_names(), ", "));
  if (!importer)
    throw Error("{}: this is a transcript of no known format ({}); name it with --format if it is one", path.string(),
                fmt::join(format_names(), ", "));
  importer->set_seen(options.seen);
  if (options.parse_ahead) {
    feed_ahead(path, *importer, use);
  } else {
    importer->set_use(use);
    feed(path, *importer);
  }
  return std::move(importer->report());
}

std::vector<TraceFiles> find_transcripts(const std::vector<std::string>& paths, std::vector<fs::path>* others) {
  std::vector<fs::path> files;
  for (const std::string& given : paths) {
    if (!fs::is_directory(given)) {
      files.emplace_back(given);
      continue;
    }
    if (fs::exists(fs::path(given) / "trace.jsonl")) {  // a run
      files.push_back(fs::path(given) / "trace.jsonl");
      continue;
    }
    std::vector<fs::path> found;
    for (const auto& entry : fs::recursive_directory_iterator(given, fs::directory_options::skip_permission_denied))
      if (entry.is_regular_file()) found.push_back(entry.path());
    std::sort(found.begin(), found.end());
    for (const fs::path& file : found) {
      if (sniff(file))
        files.push_back(file);
      else if (others)
        others->push_back(file);
    }
  }
  std::vector<TraceFiles> traces;
  for (const fs::path& file : files) {
    const fs::path session = is_helper_file(file) ? session_file_of(file) : fs::path();
    const auto owner =
        std::find_if(traces.begin(), traces.end(), [&](const TraceFiles& trace) { return trace.main == session; });
    const bool has_owner =
        !session.empty() && (owner != traces.end() || std::find(files.begin(), files.end(), session) != files.end());
    if (!has_owner) traces.push_back({file, {}});
  }
  for (const fs::path& file : files) {
    if (!is_helper_file(file)) continue;
    for (TraceFiles& trace : traces)
      if (trace.main == session_file_of(file)) trace.helpers.push_back(file);
  }
  return traces;
}

}  // namespace ks::trace
