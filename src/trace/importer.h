// What all importers share: a transcript's lines or document go in, events of our model come out in the order of the
// file, and every line is accounted for: used, passed over for a named reason, or damaged in a named way.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "trace/event.h"
#include "trace/json_lines.h"
#include "trace/tool_kinds.h"

namespace ks::trace {

/// What became of a transcript's records. records == used + the sum of skipped.
struct ImportReport {
  std::string format;
  int64_t lines = 0;    ///< of the file; for one JSON document: its messages, steps or events
  int64_t records = 0;  ///< JSON objects (for Markdown: blocks) that could be read
  int64_t used = 0;     ///< records that became events
  Counters skipped;     ///< records that hold nothing for the model, by name
  Counters problems;    ///< damage, by name; docs/formats/trace.md explains each
};

/// Takes events in order.
using EventUse = std::function<void(Event&&)>;

/// Identities of records seen in other files of the same project; copies of them are passed over.
using SeenRecords = std::unordered_set<uint64_t>;

/// Reads one transcript. Feed it lines (or the one document), then finish().
class Importer {
 public:
  explicit Importer(std::string format) { report_.format = std::move(format); }
  virtual ~Importer() = default;
  Importer(const Importer&) = delete;
  Importer& operator=(const Importer&) = delete;

  void set_use(EventUse use) { use_ = std::move(use); }
  void set_seen(SeenRecords* seen) { seen_ = seen; }

  /// True where the format is one JSON document and not lines.
  virtual bool is_document() const { return false; }
  /// One line; LineReader::kPadding bytes after it are readable.
  virtual void line(std::string_view text);
  /// The whole document.
  virtual void document(std::string_view text);
  /// All has been given.
  virtual void finish() { count_open_calls(); }

  ImportReport& report() { return report_; }
  void count_problem(const std::string& name) { ++report_.problems[name]; }

 protected:
  /// Turns a record into events; returns "" where it was used, else the name of the reason why not.
  virtual std::string record(Json& record) = 0;
  /// Keys of a record that matter; empty: all.
  virtual std::span<const std::string_view> keep() const { return {}; }
  /// Hands one record to record() and accounts for it.
  void take(Json& json);

  void emit(std::string kind, const std::string& session, double time, Json body);
  void open_session(const std::string& session, double time, const std::string& parent, const std::string& agent,
                    const std::string& model);
  void message(const std::string& session, double time, const char* role, std::string text, const char* source);
  /// A text in the user's place: a person's, unless it has the mark of a program.
  void user_text(const std::string& session, double time, std::string text);
  void tool_call(const std::string& session, double time, const std::string& id, const std::string& tool, Json input);
  void tool_result(const std::string& session, double time, const std::string& id, std::string text, bool is_error);
  void note(const std::string& session, double time, const std::string& source, std::string text = "");
  void count_open_calls();

  ImportReport report_;
  std::string folder_;  ///< working folder of the session, where known
  SeenRecords* seen_ = nullptr;
  JsonLineParser parser_;

 private:
  EventUse use_;
  ToolClassifier tools_;
  int64_t seq_ = 0;
  std::unordered_set<std::string> sessions_;
  std::unordered_map<std::string, bool> calls_;  ///< by id: has a result
  std::unordered_map<std::string, double> last_time_;
};

/// `object[key]` as text; "" where it is missing or something else.
std::string text_at(const Json& object, const char* key);
int64_t integer_at(const Json& object, const char* key);
double number_at(const Json& object, const char* key);
bool truth_at(const Json& object, const char* key);
/// `object[key]`, or a null value.
const Json& value_at(const Json& object, const char* key);
/// The text of a content field: a string, or the text blocks of a list joined with nothing between.
std::string joined_text(const Json& content);
/// Seconds since the epoch of an ISO 8601 text (no zone: UTC) or a number of seconds, milliseconds or nanoseconds; 0
/// where it is none.
double time_of(const Json& value);

/// Why a text in the user's place was not typed by a person: "interrupt", "command" …; "" where it may have been.
const char* machine_source(std::string_view text);

std::unique_ptr<Importer> make_claude_code_importer();
std::unique_ptr<Importer> make_codex_importer();
std::unique_ptr<Importer> make_cursor_importer();
std::unique_ptr<Importer> make_gemini_importer();
std::unique_ptr<Importer> make_gemini_lines_importer();
std::unique_ptr<Importer> make_openhands_importer();
std::unique_ptr<Importer> make_swe_agent_importer();
std::unique_ptr<Importer> make_mini_swe_agent_importer();
std::unique_ptr<Importer> make_atif_importer();
std::unique_ptr<Importer> make_aider_importer();
std::unique_ptr<Importer> make_own_importer();

}  // namespace ks::trace
