// See trace_index.h. The only file that knows SQLite.
#include "trace/trace_index.h"

#include <sqlite3.h>

#include <algorithm>
#include <map>
#include <memory>

#include "base/hash.h"

namespace ks::trace {

namespace fs = base::fs;

namespace {

/// An open SQLite file.
class Database {
 public:
  Database(const fs::path& path, int flags) : path_(path) {
    const int code = sqlite3_open_v2(path.c_str(), &handle_, flags, nullptr);
    if (code == SQLITE_OK) return;
    const std::string reason = handle_ ? sqlite3_errmsg(handle_) : sqlite3_errstr(code);
    sqlite3_close(handle_);
    throw Error("{}: the index cannot be opened: {}", path.string(), reason);
  }
  ~Database() { sqlite3_close(handle_); }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void run(const std::string& sql) {
    char* message = nullptr;
    if (sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, &message) == SQLITE_OK) return;
    const std::string reason = message ? message : "unknown";
    sqlite3_free(message);
    throw Error("{}: {}", path_.string(), reason);
  }
  sqlite3* handle() { return handle_; }
  [[noreturn]] void fail() { throw Error("{}: {}", path_.string(), sqlite3_errmsg(handle_)); }

 private:
  fs::path path_;
  sqlite3* handle_ = nullptr;
};

/// A prepared INSERT; values are bound in order of the columns.
class Insert {
 public:
  Insert(Database& database, const IndexTable& table) : database_(database) {
    const auto columns = std::count(table.columns.begin(), table.columns.end(), ',') + 1;
    std::string sql = fmt::format("INSERT INTO {} VALUES (", table.name);
    for (int i = 0; i < columns; ++i) sql += i == 0 ? "?" : ",?";
    if (sqlite3_prepare_v2(database.handle(), (sql + ")").c_str(), -1, &statement_, nullptr) != SQLITE_OK)
      database.fail();
  }
  ~Insert() { sqlite3_finalize(statement_); }
  Insert(const Insert&) = delete;
  Insert& operator=(const Insert&) = delete;

  template <typename... Values>
  void row(const Values&... values) {
    int column = 0;
    (bind(++column, values), ...);
    if (sqlite3_step(statement_) != SQLITE_DONE) database_.fail();
    sqlite3_reset(statement_);
    sqlite3_clear_bindings(statement_);
  }

 private:
  void bind(int column, int64_t value) { sqlite3_bind_int64(statement_, column, value); }
  void bind(int column, size_t value) { sqlite3_bind_int64(statement_, column, static_cast<int64_t>(value)); }
  void bind(int column, bool value) { sqlite3_bind_int(statement_, column, value); }
  void bind(int column, double value) { sqlite3_bind_double(statement_, column, value); }
  void bind(int, std::nullptr_t) {}
  void bind(int column, std::string_view text) {  // valid until row() returns
    sqlite3_bind_text64(statement_, column, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
  }
  void bind(int column, const std::string& text) { bind(column, std::string_view(text)); }
  /// A JSON value: text as text, numbers as numbers, lists and objects as JSON.
  void bind(int column, const Json& value) {
    if (value.is_string()) return bind(column, std::string_view(value.get_ref<const std::string&>()));
    if (value.is_boolean()) return bind(column, value.get<bool>());
    if (value.is_number_float()) return bind(column, value.get<double>());
    if (value.is_number()) return bind(column, value.get<int64_t>());
    if (value.is_null()) return;
    const std::string text = base::to_line(value);
    sqlite3_bind_text64(statement_, column, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  }

  Database& database_;
  sqlite3_stmt* statement_ = nullptr;
};

/// Fills the tables from events.
class IndexWriter {
 public:
  explicit IndexWriter(Database& database) {
    for (const IndexTable& table : kIndexTables) {
      database.run(fmt::format("CREATE TABLE {} ({})", table.name, table.columns));
      inserts_.emplace(table.name, std::make_unique<Insert>(database, table));
    }
  }

  void file(const fs::path& path) {
    ++trace_;
    const ImportReport report = read_transcript(path, [&](Event&& event) { add(event); }, {.parse_ahead = true});
    into("traces").row(trace_, path.string(), static_cast<int64_t>(fs::file_size(path)), modified(path), report.format,
                       report.lines, report.records, report.used);
    for (const auto& [name, count] : report.skipped) into("counters").row(trace_, std::string("skipped"), name, count);
    for (const auto& [name, count] : report.problems) into("counters").row(trace_, std::string("problem"), name, count);
  }

  static int64_t modified(const fs::path& path) { return fs::last_write_time(path).time_since_epoch().count(); }

 private:
  Insert& into(std::string_view table) { return *inserts_.find(table)->second; }

  void add(const Event& event) {
    const Json& body = event.body;
    const auto at = [&](const char* key) -> const Json& { return value_at(body, key); };
    const std::string& session = event.session;
    bool has_table = true;
    if (event.kind == "message") {
      into("messages").row(trace_, event.seq, event.time, session, at("role"), at("source"), at("text"));
    } else if (event.kind == "tool_call") {
      into("tool_calls")
          .row(trace_, event.seq, event.time, session, at("id"), at("tool"), at("kind"), at("reads"), at("writes"),
               at("input"));
    } else if (event.kind == "tool_result") {
      into("tool_results")
          .row(trace_, event.seq, event.time, session, at("id"), at("bytes"), at("is_error"), at("text"));
    } else if (event.kind == "usage") {
      into("usage").row(trace_, event.seq, event.time, session, at("id"), at("input_tokens"), at("cached_tokens"),
                        at("cache_write_tokens"), at("output_tokens"), at("reasoning_tokens"), at("cost_usd"));
    } else if (event.kind == "evaluation") {
      into("evaluations")
          .row(trace_, event.seq, event.time, session, at("number"), at("outcome"), at("geomean"), at("correct"),
               at("total"), at("candidate_hash"), at("record"));
    } else if (event.kind == "question") {
      into("questions")
          .row(trace_, event.seq, event.time, session, at("id"), at("category"), at("questioner"), at("focus"),
               at("text"));
    } else {
      has_table = false;
    }
    if (has_table) {
      into("events").row(trace_, event.seq, event.time, event.kind, session, nullptr);
    } else {
      into("events").row(trace_, event.seq, event.time, event.kind, session, base::to_line(body));
    }
  }

  std::map<std::string_view, std::unique_ptr<Insert>> inserts_;
  int64_t trace_ = 0;
};

std::vector<fs::path> all_files(const std::vector<TraceFiles>& files) {
  std::vector<fs::path> all;
  for (const TraceFiles& trace : files) {
    all.push_back(trace.main);
    all.insert(all.end(), trace.helpers.begin(), trace.helpers.end());
  }
  return all;
}

std::string tables_text() {
  std::string text;
  for (const IndexTable& table : kIndexTables)
    text += fmt::format("\n  {}({}): {}", table.name, table.columns, table.meaning);
  return text;
}

}  // namespace

void build_index(const fs::path& path, const std::vector<TraceFiles>& files) {
  if (path.has_parent_path()) base::make_folder(path.parent_path());
  const fs::path temporary = fmt::format("{}.{}.tmp", path.string(), base::secret_seed());
  try {
    Database database(temporary, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    database.run("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA page_size=16384; BEGIN");
    {
      IndexWriter writer(database);
      for (const fs::path& file : all_files(files)) writer.file(file);
    }
    database.run("COMMIT");
    database.run("CREATE INDEX events_by_kind ON events(kind, trace)");
  } catch (...) {
    fs::remove(temporary);
    throw;
  }
  fs::rename(temporary, path);
}

bool index_is_current(const fs::path& path, const std::vector<TraceFiles>& files) {
  if (!fs::exists(path)) return false;
  try {
    const QueryResult held = query_index(path, "SELECT path, bytes, modified FROM traces ORDER BY trace");
    const auto now = all_files(files);
    if (held.rows.size() != now.size()) return false;
    for (size_t i = 0; i < now.size(); ++i) {
      const std::vector<std::string> row = {now[i].string(), std::to_string(fs::file_size(now[i])),
                                            std::to_string(IndexWriter::modified(now[i]))};
      if (held.rows[i] != row) return false;
    }
    return true;
  } catch (const Error&) {  // of another version, or damaged: it can be rebuilt
    return false;
  }
}

QueryResult query_index(const fs::path& path, const std::string& sql) {
  Database database(path, SQLITE_OPEN_READONLY);
  database.run("PRAGMA query_only=ON");
  sqlite3_stmt* raw = nullptr;
  const char* rest = nullptr;
  if (sqlite3_prepare_v2(database.handle(), sql.c_str(), -1, &raw, &rest) != SQLITE_OK)
    throw Error("the query is not understood: {}; the tables are:{}", sqlite3_errmsg(database.handle()), tables_text());
  const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement(raw, sqlite3_finalize);
  if (!raw || sqlite3_stmt_readonly(raw) == 0)
    throw Error("the query must be a SELECT; the tables are:{}", tables_text());
  if (rest && std::string_view(rest).find_first_not_of(" \t\r\n;") != std::string_view::npos)
    throw Error("one query at a time: after the first stands \"{}\"", rest);
  QueryResult result;
  const int columns = sqlite3_column_count(raw);
  for (int i = 0; i < columns; ++i) result.columns.emplace_back(sqlite3_column_name(raw, i));
  for (int code = sqlite3_step(raw); code != SQLITE_DONE; code = sqlite3_step(raw)) {
    if (code != SQLITE_ROW) database.fail();
    std::vector<std::string> row;
    std::vector<bool> numbers;
    for (int i = 0; i < columns; ++i) {
      const int type = sqlite3_column_type(raw, i);
      numbers.push_back(type == SQLITE_INTEGER || type == SQLITE_FLOAT);
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(raw, i));
      row.emplace_back(text ? std::string(text, static_cast<size_t>(sqlite3_column_bytes(raw, i))) : "");
    }
    result.rows.push_back(std::move(row));
    result.is_number.push_back(std::move(numbers));
  }
  return result;
}

std::string csv_of(const QueryResult& result) {
  std::string csv;
  const auto add_row = [&](const std::vector<std::string>& row) {
    for (size_t i = 0; i < row.size(); ++i) {
      if (i > 0) csv += ',';
      if (row[i].find_first_of(",\"\r\n") == std::string::npos) {
        csv += row[i];
        continue;
      }
      csv += '"';
      for (const char c : row[i]) csv += c == '"' ? "\"\"" : std::string(1, c);
      csv += '"';
    }
    csv += '\n';
  };
  add_row(result.columns);
  for (const auto& row : result.rows) add_row(row);
  return csv;
}

}  // namespace ks::trace
