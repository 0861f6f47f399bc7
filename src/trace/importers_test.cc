// The importers and figures: every fixture of tests/traces against figures computed by hand, and, where KS_TRACES names
// a folder of real transcripts, against figures that were computed from those by an independent program.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>

#include "trace/trace_stats.h"

namespace ks::trace {
namespace {

namespace fs = base::fs;

/// The figures of one file, as `trace stats --json` prints them.
Json figures_of(const fs::path& file, bool parse_ahead = false) {
  SeenRecords seen;
  const TraceStats stats = stats_of({file, {}}, {}, {.seen = &seen, .parse_ahead = parse_ahead});
  return stats_json({stats}, stats)["traces"][0];
}

void expect_figures(const Json& expected, const Json& figures, const std::string& name) {
  for (const auto& [pointer, value] : expected.items()) {
    const Json::json_pointer at(pointer);
    if (!figures.contains(at)) {
      ADD_FAILURE() << name << ": there is no figure " << pointer;
      continue;
    }
    const Json& actual = figures[at];
    if (value.is_number_float() && actual.is_number()) {
      EXPECT_NEAR(value.get<double>(), actual.get<double>(), 1e-6) << name << " " << pointer;
    } else {
      EXPECT_EQ(nlohmann::json(value), nlohmann::json(actual)) << name << " " << pointer;
    }
  }
}

/// records == used + skipped, whatever the file.
void expect_every_record_accounted(const Json& figures, const std::string& name) {
  int64_t sum = figures["records_used"].get<int64_t>();
  for (const auto& [reason, count] : figures["records_skipped"].items()) sum += count.get<int64_t>();
  EXPECT_EQ(figures["records"].get<int64_t>(), sum) << name;
}

std::vector<fs::path> fixtures() {
  std::vector<fs::path> files;
  for (const auto& folder : fs::directory_iterator(fs::path(KS_SOURCE_DIR) / "tests/traces"))
    for (const auto& file : fs::directory_iterator(folder.path()))
      if (file.path().filename() != "expect.json") files.push_back(file.path());
  std::sort(files.begin(), files.end());
  return files;
}

TEST(Importers, GiveTheFiguresComputedByHandForEachFixture) {
  const auto files = fixtures();
  ASSERT_EQ(11u, files.size());
  for (const fs::path& file : files) {
    const Json figures = figures_of(file);
    const Json expected = base::read_json_file((file.parent_path() / "expect.json").string());
    EXPECT_GE(expected.size(), 10u) << file;
    expect_figures(expected, figures, file.string());
    expect_every_record_accounted(figures, file.string());
  }
}

TEST(Importers, GiveTheSameOnTwoThreadsAsOnOne) {
  for (const fs::path& file : fixtures()) EXPECT_EQ(figures_of(file), figures_of(file, true)) << file;
}

TEST(Importers, FindTheFormatByContentWhateverTheName) {
  const base::TempFolder folder;
  for (const fs::path& file : fixtures()) {
    const fs::path copy = folder.path() / "unnamed";
    fs::copy_file(file, copy, fs::copy_options::overwrite_existing);
    const auto importer = sniff(copy);
    ASSERT_TRUE(importer) << file;
    const std::string name = file.parent_path().filename().string();
    EXPECT_EQ(name == "gemini-cli-lines" ? "gemini-cli" : name, importer->report().format);
  }
}

TEST(Importers, SurviveACutAtAnyByteAndLoseNoEarlierLine) {
  const base::TempFolder folder;
  for (const fs::path& file : fixtures()) {
    const std::string text = base::read_file(file);
    const std::string format = sniff(file)->report().format;
    const bool is_lines = file.parent_path().filename() == "gemini-cli-lines";
    for (size_t length = 0; length < text.size(); length += 1 + text.size() / 97) {
      const fs::path cut = folder.path() / "cut";
      std::ofstream(cut, std::ios::binary) << text.substr(0, length);
      const ImportReport report =
          read_transcript(cut, [](Event&&) {}, {.format = is_lines ? "gemini-cli-lines" : format});
      if (file.extension() != ".jsonl") continue;
      const auto whole_lines = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(length), '\n');
      EXPECT_GE(report.lines, whole_lines) << file << " cut at " << length;
    }
  }
}

TEST(Importers, ReadTheWholeElementsOfACutDocument) {
  const base::TempFolder folder;
  const std::string text = base::read_file(fs::path(KS_SOURCE_DIR) / "tests/traces/atif/trajectory.json");
  const fs::path cut = folder.path() / "cut.json";
  std::ofstream(cut) << text.substr(0, text.find("is_copied_context"));
  const ImportReport report = read_transcript(cut, [](Event&&) {}, {.format = "atif"});
  EXPECT_EQ(3, report.used);
  EXPECT_EQ(1, report.problems.at("truncated_document"));
}

TEST(Importers, CountACopyOfARecordInAnotherFileOnce) {
  const base::TempFolder folder;
  const fs::path file = fs::path(KS_SOURCE_DIR) / "tests/traces/claude-code/transcript.jsonl";
  fs::copy_file(file, folder.path() / "a.jsonl");
  fs::copy_file(file, folder.path() / "b.jsonl");
  SeenRecords seen;
  const TraceStats first = stats_of({folder.path() / "a.jsonl", {}}, {}, {.seen = &seen});
  const TraceStats second = stats_of({folder.path() / "b.jsonl", {}}, {}, {.seen = &seen});
  EXPECT_EQ(6, first.main.tool_calls);
  EXPECT_EQ(0, second.main.tool_calls);
  EXPECT_GT(second.skipped.at("copy_of_a_record_seen_before"), 20);
}

TEST(Importers, TakeHelpersFilesIntoTheirSessionsTrace) {
  const base::TempFolder folder;
  fs::create_directories(folder.path() / "s1/subagents");
  fs::copy_file(fs::path(KS_SOURCE_DIR) / "tests/traces/claude-code/transcript.jsonl", folder.path() / "s1.jsonl");
  std::ofstream(folder.path() / "s1/subagents/agent-x.jsonl")
      << R"({"type":"user","uuid":"x1","isSidechain":true,"agentId":"x","sessionId":"s1","timestamp":"2026-01-05T10:00:30Z","message":{"role":"user","content":"look"}})"
      << "\n"
      << R"({"type":"assistant","uuid":"x2","parentUuid":"x1","isSidechain":true,"agentId":"x","sessionId":"s1","timestamp":"2026-01-05T10:00:31Z","message":{"id":"m","content":[{"type":"tool_use","id":"z","name":"Glob","input":{}}]}})"
      << "\n";
  const auto traces = find_transcripts({folder.path().string()});
  ASSERT_EQ(1u, traces.size());
  const TraceStats stats = stats_of(traces[0], {});
  EXPECT_EQ(6, stats.main.tool_calls);
  EXPECT_EQ(2, stats.helpers.tool_calls);
  EXPECT_EQ(2, stats.helper_sessions);
}

TEST(Importers, CountALineBeyondTheLimitAndGoOn) {
  const base::TempFolder folder;
  const fs::path file = folder.path() / "long.jsonl";
  {
    std::ofstream out(file, std::ios::binary);
    const std::string head = R"({"type":"user","parentUuid":null,"sessionId":"s","message":{"role":"user","content":")";
    out << head << "one\"}}\n" << head;
    const std::string block(1 << 20, 'x');
    for (int i = 0; i < 200; ++i) out << block;
    out << "\"}}\n" << head << "two\"}}\n";
  }
  const Json figures = figures_of(file);
  EXPECT_EQ(2, figures["human_messages"]["total"]);
  EXPECT_EQ(1, figures["problems"]["line_too_long"]);
  EXPECT_EQ(3, figures["lines"]);
}

TEST(Importers, SayWhichFormatsAreKnownWhereAFileIsOfNone) {
  const base::TempFolder folder;
  std::ofstream(folder.path() / "x.txt") << "hello\n";
  try {
    read_transcript(folder.path() / "x.txt", [](Event&&) {});
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string::npos, std::string(e.what()).find("claude-code"));
  }
}

TEST(Stats, HaveEachFigureOnTheirPage) {
  const std::string page = base::read_file(fs::path(KS_SOURCE_DIR) / "docs/formats/stats.md");
  const Json figures = figures_of(fs::path(KS_SOURCE_DIR) / "tests/traces/kernelseek/trace.jsonl");
  for (const auto& [key, value] : figures.items()) {
    if (key == "name" || key == "traces" || key == "formats") continue;
    EXPECT_NE(std::string::npos, page.find(key)) << key;
  }
}

TEST(Stats, AddUpOverTraces) {
  TraceStats total;
  int64_t calls = 0, chars = 0;
  for (const fs::path& file : fixtures()) {
    const TraceStats stats = stats_of({file, {}}, {});
    calls += stats.main.tool_calls + stats.helpers.tool_calls;
    chars += stats.reread.own_chars;
    total.add(stats);
  }
  const Json json = stats_json({}, total)["total"];
  EXPECT_EQ(11, json["traces"]);
  EXPECT_EQ(calls, json["tool_calls"]);
  EXPECT_EQ(chars, json["own_source_reread"]["chars"]);
  EXPECT_EQ(2, json["plateau"]["champion_step"]);
  expect_every_record_accounted(json, "total");
}

// Real transcripts. ----------------------------------------------------------------------------------------------

/// A file below $KS_TRACES; the test is skipped, and counted as such, where that is not set.
fs::path real(const char* name) {
  const char* folder = std::getenv("KS_TRACES");
  return folder ? fs::path(folder) / name : fs::path();
}

#define KS_REAL_TRANSCRIPT(name)                                                           \
  const fs::path file = real(name);                                                        \
  if (file.empty()) GTEST_SKIP() << "set KS_TRACES to the folder of the real transcripts"; \
  const Json figures = figures_of(file, true);                                             \
  expect_every_record_accounted(figures, name)

/// A share, in per cent with one decimal.
double percent(const Json& share) {
  return std::round(share.get<double>() * 1000) / 10;
}

TEST(RealTranscripts, ClaudeCode1_0_53Cuda) {
  KS_REAL_TRANSCRIPT("claude-code/cc-1.0.53-cuda-backend-f67ab274.head.jsonl");
  expect_figures(Json{{"/lines", 685},
                      {"/main/model_calls", 254},
                      {"/main/tool_calls", 247},
                      {"/main/tool_results", 247},
                      {"/main/tokens/output", 36424},
                      {"/main/tokens_every_line/output", 36829},
                      {"/main/tokens_first_line/output", 9521},
                      {"/main/tokens/cached", 23703464},
                      {"/main/tokens_every_line/cached", 38066331},
                      {"/main/tokens/cache_write", 847204},
                      {"/main/tokens_every_line/cache_write", 1657315},
                      {"/human_messages/by_source", {{"typed", 13}}},
                      {"/machine_messages", {{"compact_summary", 2}, {"interrupt", 7}}},
                      {"/time/idle_gaps", 0},
                      {"/problems", Json::object()}},
                 figures, file.string());
  EXPECT_EQ(4165, std::lround(figures["time"]["span_s"].get<double>()));
  EXPECT_DOUBLE_EQ(17.8, percent(figures["read_tool_reread"]["by_path_share"]));
  EXPECT_DOUBLE_EQ(12.2, percent(figures["read_tool_reread"]["by_line_share"]));
  // Computed before names in the file were replaced by others: 365,787 characters then, 83 fewer now.
  EXPECT_NEAR(365787, figures["tool_result_chars"].get<double>(), 100);
}

TEST(RealTranscripts, ClaudeCode1_0_53Sidechain) {
  KS_REAL_TRANSCRIPT("claude-code/cc-1.0.53-inline-sidechain-0a725fb5.jsonl");
  EXPECT_EQ(212, figures["main"]["model_calls"].get<int>() + figures["helpers"]["model_calls"].get<int>());
  EXPECT_EQ(209, figures["tool_calls"]);
  EXPECT_EQ(15, figures["helpers"]["tool_calls"]);
  const auto both = [&](const char* set, const char* kind) {
    return figures["main"][set][kind].get<int64_t>() + figures["helpers"][set][kind].get<int64_t>();
  };
  EXPECT_EQ(17274, both("tokens", "output"));
  EXPECT_EQ(21295, both("tokens_every_line", "output"));
  EXPECT_EQ(7106, both("tokens_first_line", "output"));
  EXPECT_EQ(15371601, both("tokens", "cached"));
  EXPECT_EQ(27760778, both("tokens_every_line", "cached"));
  EXPECT_EQ(793973, both("tokens", "cache_write"));
  EXPECT_EQ(1556727, both("tokens_every_line", "cache_write"));
  expect_figures(
      Json{{"/lines", 609},
           {"/human_messages/by_source", {{"typed", 7}}},
           {"/machine_messages", {{"command", 2}, {"compact_summary", 1}, {"helper_prompt", 1}, {"meta", 1}}},
           {"/time/idle_gaps", 6}},
      figures, file.string());
  EXPECT_EQ(209, figures["main"]["tool_results"].get<int>() + figures["helpers"]["tool_results"].get<int>());
  EXPECT_EQ(5952, std::lround(figures["time"]["span_s"].get<double>()));
  EXPECT_EQ(3496, std::lround(figures["time"]["idle_s"].get<double>()));
}

TEST(RealTranscripts, ClaudeCode2_0_76) {
  KS_REAL_TRANSCRIPT("claude-code/cc-2.0.76-task-queue-compact-98_78b713483d.jsonl");
  expect_figures(Json{{"/lines", 424},
                      {"/main/model_calls", 97},
                      {"/main/tool_calls", 119},
                      {"/main/tool_results", 119},
                      {"/main/tokens/output", 19174},
                      {"/main/tokens_every_line/output", 19573},
                      {"/main/tokens_first_line/output", 2152},
                      {"/main/tokens/cached", 9730072},
                      {"/main/tokens_every_line/cached", 25142380},
                      {"/main/tokens/cache_write", 877567},
                      {"/main/tokens_every_line/cache_write", 2725629},
                      {"/human_messages/by_source", {{"typed", 7}}},
                      {"/machine_messages", {{"command", 1}, {"compact_summary", 1}, {"meta", 1}, {"notification", 6}}},
                      {"/time/idle_gaps", 4}},
                 figures, file.string());
  EXPECT_EQ(4245, std::lround(figures["time"]["span_s"].get<double>()));
  EXPECT_EQ(2352, std::lround(figures["time"]["idle_s"].get<double>()));
}

TEST(RealTranscripts, ClaudeCode2_1_33) {
  KS_REAL_TRANSCRIPT("claude-code/cc-2.1.33-agent-progress-queue-compact-d0_161e0df1cb.jsonl");
  // The four messages "beside_result" were typed while a tool ran and stand in its result's record; a count of user
  // records without results, which gives 30, does not see them.
  expect_figures(Json{{"/lines", 902},
                      {"/main/model_calls", 185},
                      {"/main/tool_calls", 196},
                      {"/main/tool_results", 196},
                      {"/helpers/tool_calls", 22},
                      {"/main/tokens/output", 9054},
                      {"/main/tokens_every_line/output", 10094},
                      {"/main/tokens_first_line/output", 3634},
                      {"/main/tokens/cached", 17422834},
                      {"/main/tokens_every_line/cached", 29709581},
                      {"/main/tokens/cache_write", 362980},
                      {"/main/tokens_every_line/cache_write", 932790},
                      {"/human_messages/by_source", {{"beside_result", 4}, {"queued", 2}, {"typed", 30}}},
                      {"/machine_messages", {{"command", 3}, {"compact_summary", 1}, {"helper_prompt", 1}}},
                      {"/time/idle_gaps", 4}},
                 figures, file.string());
  EXPECT_EQ(22333, std::lround(figures["time"]["span_s"].get<double>()));
  EXPECT_EQ(18225, std::lround(figures["time"]["idle_s"].get<double>()));
  EXPECT_DOUBLE_EQ(17.9, percent(figures["read_tool_reread"]["by_path_share"]));
  EXPECT_DOUBLE_EQ(6.5, percent(figures["read_tool_reread"]["by_line_share"]));
  EXPECT_NEAR(262464, figures["read_tool_reread"]["main_result_chars"].get<double>(), 500);  // names replaced since
}

TEST(RealTranscripts, ClaudeCode2_1_222) {
  KS_REAL_TRANSCRIPT("claude-code/cc-2.1.222-sdk-cli-d7d4e19e.jsonl");
  expect_figures(Json{{"/lines", 10},
                      {"/main/model_calls", 2},
                      {"/main/tool_calls", 1},
                      {"/main/tool_results", 1},
                      {"/main/tokens/output", 107},
                      {"/main/tokens_every_line/output", 107},
                      {"/main/tokens_first_line/output", 107},
                      {"/main/tokens/cached", 32693},
                      {"/main/tokens/cache_write", 5236},
                      {"/human_messages/total", 1},
                      {"/time/idle_gaps", 0}},
                 figures, file.string());
  EXPECT_NEAR(5.5, figures["time"]["span_s"].get<double>(), 0.05);
}

TEST(RealTranscripts, GeminiAtifAndMiniSweAgent) {
  {
    KS_REAL_TRANSCRIPT("gemini-cli/gemini-session-ab_2b9748b105.json");
    expect_figures(Json{{"/records", 13},
                        {"/main/tool_calls", 9},
                        {"/main/tokens/prompt", 131375},
                        {"/main/tokens/cached", 113854},
                        {"/main/tokens/answer", 717},
                        {"/main/tokens/reasoning", 1095},
                        {"/main/tokens/total", 133187}},
                   figures, file.string());
  }
  {
    KS_REAL_TRANSCRIPT("atif/atif-v1.7-claude-code-2.1.178.json");
    expect_figures(Json{{"/records", 40}, {"/main/tool_calls", 46}}, figures, file.string());
    EXPECT_NEAR(3.1485, figures["cost_usd"].get<double>(), 5e-5);
  }
  {
    KS_REAL_TRANSCRIPT("mini-swe-agent/mini-swe-agent-1.13.4.traj.json");
    expect_figures(Json{{"/records", 8}, {"/main/model_calls", 3}}, figures, file.string());
    EXPECT_NEAR(0.010521, figures["cost_usd"].get<double>(), 5e-7);
  }
}

TEST(RealTranscripts, CodexCursorAndOpenHandsHaveEveryRecordAccountedFor) {
  for (const char* name :
       {"codex/codex-0.135.0-exec-redacted-019e9625.jsonl", "codex/codex-2026-02-tools-mid-thread-export.jsonl",
        "cursor/cursor-agent-shell-d43015b9.trimmed.jsonl", "openhands/openhands_trajectory.json"}) {
    KS_REAL_TRANSCRIPT(name);
    EXPECT_EQ(figures["lines"], figures["records"]) << name;
    EXPECT_EQ(1, figures["human_messages"]["total"]) << name;
    EXPECT_FALSE(figures["problems"].contains("unknown_record_type")) << name;
  }
}

}  // namespace
}  // namespace ks::trace
