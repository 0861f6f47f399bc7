// An index over traces: one SQLite file that can be rebuilt from them at any time and holds nothing of its own. The
// tables are listed once, here; the DDL and the list that `trace query` prints derive from the list, and a test holds
// docs/formats/trace.md to it.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "trace/import.h"

namespace ks::trace {

/// A table of the index: "name type" columns.
struct IndexTable {
  std::string_view name;
  std::string_view columns;
  std::string_view meaning;
};

inline constexpr std::array<IndexTable, 9> kIndexTables = {{
    {"traces",
     "trace INTEGER PRIMARY KEY, path TEXT, bytes INTEGER, modified INTEGER, format TEXT, lines INTEGER, records "
     "INTEGER, used INTEGER",
     "one row a transcript file"},
    {"counters", "trace INTEGER, what TEXT, name TEXT, count INTEGER",
     "records passed over (what = skipped) and damage (what = problem)"},
    {"events", "trace INTEGER, seq INTEGER, time REAL, kind TEXT, session TEXT, body TEXT",
     "every event; body is JSON, and null for the kinds that have a table below"},
    {"messages", "trace INTEGER, seq INTEGER, time REAL, session TEXT, role TEXT, source TEXT, text TEXT",
     "message events"},
    {"tool_calls",
     "trace INTEGER, seq INTEGER, time REAL, session TEXT, id TEXT, tool TEXT, kind TEXT, reads TEXT, writes TEXT, "
     "input TEXT",
     "tool_call events; reads, writes and input are JSON"},
    {"tool_results",
     "trace INTEGER, seq INTEGER, time REAL, session TEXT, id TEXT, bytes INTEGER, is_error INTEGER, text TEXT",
     "tool_result events"},
    {"usage",
     "trace INTEGER, seq INTEGER, time REAL, session TEXT, id TEXT, input_tokens INTEGER, cached_tokens INTEGER, "
     "cache_write_tokens INTEGER, "
     "output_tokens INTEGER, reasoning_tokens INTEGER, cost_usd REAL",
     "usage events; of one session and id the last counts"},
    {"evaluations",
     "trace INTEGER, seq INTEGER, time REAL, session TEXT, number INTEGER, outcome TEXT, geomean REAL, correct "
     "INTEGER, total INTEGER, "
     "candidate_hash TEXT, record TEXT",
     "evaluation events"},
    {"questions",
     "trace INTEGER, seq INTEGER, time REAL, session TEXT, id TEXT, category TEXT, questioner TEXT, focus TEXT, text "
     "TEXT",
     "question events"},
}};

/// Builds the index of `files` at `path`, replacing what is there.
void build_index(const base::fs::path& path, const std::vector<TraceFiles>& files);

/// True where the index at `path` holds exactly these files as they are now.
bool index_is_current(const base::fs::path& path, const std::vector<TraceFiles>& files);

/// The rows of a query; null cells are "".
struct QueryResult {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
  std::vector<std::vector<bool>> is_number;
};

/// Runs one SELECT on an index; nothing can be changed through it. Throws ks::Error with SQLite's words and the tables.
QueryResult query_index(const base::fs::path& path, const std::string& sql);

std::string csv_of(const QueryResult& result);

}  // namespace ks::trace
