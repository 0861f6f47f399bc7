// The index, export and showing: every query of tests/queries against its expected table, exports against what they
// came from, and a transcript that must not drive the terminal.
#include "trace/trace_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "trace/export.h"
#include "trace/show.h"
#include "trace/tool_kinds.h"
#include "trace/trace_stats.h"

namespace ks::trace {
namespace {

namespace fs = base::fs;

fs::path fixture(const char* name) {
  return fs::path(KS_SOURCE_DIR) / "tests/traces" / name;
}

TEST(TraceIndex, AnswersEachQueryOfTheQueryFolder) {
  const base::TempFolder folder;
  int queries = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(KS_SOURCE_DIR) / "tests/queries")) {
    const fs::path index = folder.path() / (entry.path().filename().string() + ".sqlite");
    build_index(index, {{entry.path() / "trace.jsonl", {}}});
    const auto result = query_index(index, base::read_file(entry.path() / "query.sql"));
    EXPECT_EQ(base::read_file(entry.path() / "expect.csv"), csv_of(result)) << entry.path();
    ++queries;
  }
  EXPECT_GE(queries, 3);
}

TEST(TraceIndex, HoldsEveryEventOfEveryFixture) {
  const base::TempFolder folder;
  const auto traces = find_transcripts({(fs::path(KS_SOURCE_DIR) / "tests/traces").string()});
  ASSERT_EQ(11u, traces.size());
  int64_t events = 0;
  for (const TraceFiles& trace : traces) read_transcript(trace.main, [&](Event&&) { ++events; });
  build_index(folder.path() / "i", traces);
  EXPECT_EQ(std::to_string(events), query_index(folder.path() / "i", "SELECT count(*) FROM events").rows[0][0]);
}

TEST(TraceIndex, IsRebuiltWhenATranscriptHasChanged) {
  const base::TempFolder folder;
  const fs::path file = folder.path() / "t.jsonl", index = folder.path() / "i";
  fs::copy_file(fixture("kernelseek/trace.jsonl"), file);
  const std::vector<TraceFiles> files = {{file, {}}};
  EXPECT_FALSE(index_is_current(index, files));
  build_index(index, files);
  EXPECT_TRUE(index_is_current(index, files));
  std::ofstream(file, std::ios::app) << R"({"seq":13,"time":1,"kind":"note","session":"main","body":{}})"
                                     << "\n";
  EXPECT_FALSE(index_is_current(index, files));
  std::ofstream(index, std::ios::trunc) << "not a database";
  EXPECT_FALSE(index_is_current(index, files));
}

TEST(TraceIndex, RefusesToBeChangedAndNamesItsTablesInErrors) {
  const base::TempFolder folder;
  build_index(folder.path() / "i", {{fixture("kernelseek/trace.jsonl"), {}}});
  for (const char* sql : {"DELETE FROM events", "SELECT 1; SELECT 2", "SELECT nothing FROM nowhere", ""}) {
    EXPECT_THROW(query_index(folder.path() / "i", sql), Error) << sql;
  }
  try {
    query_index(folder.path() / "i", "SELECT x FROM nowhere");
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string::npos, std::string(e.what()).find("tool_calls("));
  }
}

TEST(TraceIndex, HasEachTableOnTheFormatsPage) {
  const std::string page = base::read_file(fs::path(KS_SOURCE_DIR) / "docs/formats/trace.md");
  for (const IndexTable& table : kIndexTables)
    EXPECT_NE(std::string::npos, page.find(fmt::format("`{}`", table.name))) << table.name;
  for (const std::string_view kind : kEventKinds)
    EXPECT_NE(std::string::npos, page.find(fmt::format("`{}`", kind))) << kind;
}

TEST(Export, ToAtifKeepsMessagesCallsTokensAndCost) {
  const base::TempFolder folder;
  for (const char* name : {"claude-code/transcript.jsonl", "openhands/trajectory.json", "mini-swe-agent/run.traj.json",
                           "codex/rollout.jsonl"}) {
    const fs::path out = folder.path() / "out.json";
    std::ofstream(out, std::ios::trunc) << atif_of({fixture(name), {}}).dump();
    const TraceStats before = stats_of({fixture(name), {}}, {}), after = stats_of({out, {}}, {});
    EXPECT_EQ(before.human_messages, after.human_messages) << name;
    EXPECT_EQ(before.machine_messages, after.machine_messages) << name;
    EXPECT_EQ(before.main.tools_by_name, after.main.tools_by_name) << name;
    EXPECT_EQ(before.helpers.tool_calls, after.helpers.tool_calls) << name;
    EXPECT_EQ(before.reread.result_chars, after.reread.result_chars) << name;
    EXPECT_EQ(before.main.tokens.output, after.main.tokens.output) << name;
    EXPECT_EQ(before.main.tokens.cached, after.main.tokens.cached) << name;
    EXPECT_EQ(before.cost_usd.has_value(), after.cost_usd.has_value()) << name;
  }
}

TEST(Export, ToAtifNumbersStepsFromOneAndNamesItsVersion) {
  const Json root = atif_of({fixture("claude-code/transcript.jsonl"), {}});
  EXPECT_EQ("ATIF-v1.7", root["schema_version"]);
  for (size_t i = 0; i < root["steps"].size(); ++i) {
    EXPECT_EQ(i + 1, root["steps"][i]["step_id"]);
    const std::string source = root["steps"][i]["source"];
    EXPECT_TRUE(source == "user" || source == "agent" || source == "system");
    if (source != "agent") {
      EXPECT_FALSE(root["steps"][i].contains("tool_calls"));
    }
  }
  EXPECT_EQ(1u, root["subagent_trajectories"].size());
}

TEST(Export, ToCsvHasARowForEachEvent) {
  std::string csv;
  write_csv({fixture("kernelseek/trace.jsonl"), {}}, [&](std::string_view text) { csv += text; });
  EXPECT_EQ(13, std::count(csv.begin(), csv.end(), '\n'));
  EXPECT_NE(std::string::npos, csv.find("3,2026-01-05T10:00:30.000Z,message,main,,human,typed,,,Beat the "
                                        "baseline.,\"{\"\"prefetched_chars\"\":6}\"\n"));
}

TEST(Import, MakesATraceWithTheSameFigures) {
  const base::TempFolder folder;
  for (const char* name : {"claude-code/transcript.jsonl", "gemini-cli/session.json", "aider/chat.history.md"}) {
    fs::path written;
    import_into({fixture(name), {}}, folder.path() / fs::path(name).parent_path(), written);
    Json before = stats_json({}, stats_of({fixture(name), {}}, {}))["total"],
         after = stats_json({}, stats_of({written, {}}, {}))["total"];
    for (Json* figures : {&before, &after})
      for (const char* key : {"name", "formats", "lines", "records", "records_used", "records_skipped", "problems"})
        figures->erase(key);
    EXPECT_EQ(before, after) << name;
    EXPECT_THROW(import_into({fixture(name), {}}, written.parent_path(), written), Error);
  }
}

TEST(Show, TellsWhatWasSaidAndDone) {
  std::string text;
  show_text({fixture("claude-code/transcript.jsonl"), {}}, {}, [&](std::string_view part) { text += part; });
  for (const char* part : {"person\n    Make saxpy.cu faster. Why is it slow?", "person (queued)\n    use float4?",
                           "Bash [profiler]", "result (failed), 6 bytes"})
    EXPECT_NE(std::string::npos, text.find(part)) << part;
}

TEST(Show, LetsNoTranscriptDriveTheTerminalOrThePage) {
  const base::TempFolder folder;
  const fs::path file = folder.path() / "trace.jsonl";
  std::ofstream(file)
      << R"({"schema":"kernelseek.trace/1"})"
      << "\n"
      << R"({"seq":1,"time":1,"kind":"message","session":"main","body":{"role":"human","text":"\u001b[2J<script>x</script>"}})"
      << "\n";
  std::string text, html;
  show_text({file, {}}, {}, [&](std::string_view part) { text += part; });
  show_html({file, {}}, {}, [&](std::string_view part) { html += part; });
  EXPECT_EQ(std::string::npos, text.find('\x1b'));
  EXPECT_EQ(std::string::npos, html.find("<script>"));
  EXPECT_NE(std::string::npos, html.find("&lt;script&gt;"));
}

TEST(ToolKinds, LookThroughWrappersAndNotAtFoldersNames) {
  ToolClassifier tools;
  const auto kind = [&](const char* command) { return tools.classify("Bash", {{"command", command}}, "/w").kind; };
  EXPECT_EQ("profiler", kind("cd build && CUDA_VISIBLE_DEVICES=1 timeout -k 5 60 sudo ncu --set full ./a.out"));
  EXPECT_EQ("profiler", kind("bash -lc 'perf stat ./a.out'"));
  EXPECT_EQ("disassembly", kind("cuobjdump -sass a.out | grep HMMA"));
  EXPECT_EQ("other_read", kind("cd bench && ls"));
  EXPECT_EQ("other_read", kind("cat bench/bench_gemm.cu"));
  EXPECT_EQ("benchmark", kind("cd build; ./bench_gemm --m 4096"));
  EXPECT_EQ("benchmark", kind("python3 tools/run_bench.py"));
  EXPECT_EQ("build", kind("make -j8 2>&1 | tail -5"));
  EXPECT_EQ("build", kind("nvcc -O3 k.cu -o k"));
  EXPECT_EQ("edit", kind("cat > k.cu <<'EOF'\n__global__ void f();\nEOF\n"));
  EXPECT_EQ("own_source_read", kind("sed -n '1,5p' k.cu"));
  EXPECT_EQ("own_source_read", kind("cd /w && git diff k.cu"));
  EXPECT_EQ("other_read", kind("head -n 3 other.cu"));
  EXPECT_EQ("documentation", kind("curl -s https://example.com/ptx.html"));
  EXPECT_EQ("other", kind("echo cat ncu make"));
  EXPECT_EQ("other", kind("git commit -m 'ncu and nvcc'"));
}

TEST(SourceReread, SeesOwnLinesWhereverTheyComeBack) {
  SourceReread reread;
  reread.call("w", "Write",
              {{"writes", {"/w/k.cu"}},
               {"input", {{"file_path", "/w/k.cu"}, {"content", "float alpha = 1;\n}\nint beta;\n"}}}});
  const auto own = [&](const char* text) {
    const int64_t before = reread.figures().own_chars;
    reread.result("none", text, true);
    return reread.figures().own_chars - before;
  };
  EXPECT_EQ(16, own("float alpha = 1;"));
  EXPECT_EQ(30, own("   12\tfloat alpha = 1;\n   13\t}"));  // a short line goes with the one before
  EXPECT_EQ(24, own("k.cu:12:float alpha = 1;"));
  EXPECT_EQ(18, own("-int gamma;\n+float alpha = 1;\n"));
  EXPECT_EQ(0, own("float alpha = 2;\n}\n"));
  EXPECT_EQ(0, own("nothing of ours"));
}

}  // namespace
}  // namespace ks::trace
