// Finished pages in a headless browser: no console errors, everything shown, nothing wider than the screen at 390 and
// 1440 pixels, text that can be read in light and dark. The figures of small_run/ are invented.
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "base/subprocess.h"
#include "report/write_report.h"
#include "serve/server.h"

namespace ks {
namespace {

namespace fs = base::fs;

fs::path small_run() {
  return base::project_root() / "tests/reports/small_run";
}

std::string browser() {
  std::vector<std::string> names = {"chromium", "chromium-browser", "google-chrome"};
  if (const char* chosen = std::getenv("KS_BROWSER")) names.insert(names.begin(), chosen);
  for (const auto& name : names) {
    try {
      if (base::run_process({.argv = {name, "--version"}, .timeout_s = 20}).ok()) return name;
    } catch (const Error&) {
      // Not installed under this name.
    }
  }
  return "";
}

struct Shown {
  std::string dom, console;  ///< the document after its scripts ran; what was logged as an error
};

/// `settle`: how long the browser works before it says what it shows; a live page never comes to rest by itself.
Shown open_page(const std::string& address, const std::vector<std::string>& more = {},
                const std::string& settle = "--virtual-time-budget=4000") {
  const base::TempFolder profile("pages");
  std::vector<std::string> argv = {browser(),
                                   "--headless",
                                   "--no-sandbox",
                                   "--disable-gpu", "--hide-scrollbars",
                                   "--enable-logging=stderr",
                                   "--v=0",
                                   "--user-data-dir=" + profile.path().string(),
                                   settle,
                                   "--dump-dom"};
  argv.insert(argv.end(), more.begin(), more.end());
  argv.push_back(address);
  const auto result = base::run_process({.argv = argv, .timeout_s = 90});
  Shown shown{result.out, ""};
  for (size_t at = result.err.find("CONSOLE"); at != std::string::npos; at = result.err.find("CONSOLE", at + 1))
    shown.console += result.err.substr(at, 300) + "\n";
  return shown;
}

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

/// Opens the page in a frame of that width and returns what the probe says of it.
std::string probe(const std::string& html, int width, const std::vector<std::string>& more = {}) {
  const std::string quoted = replaced(replaced(html, "&", "&amp;"), "\"", "&quot;");
  const std::string script = R"js(<script>
onload = () => setTimeout(() => {
  const d = frames[0].document, root = d.documentElement, view = frames[0];
  const light = c => { const [r, g, b] = c.match(/[\d.]+/g).map(Number).map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ratio = (a, b) => { const [p, q] = [light(a), light(b)].sort((x, y) => y - x); return (p + 0.05) / (q + 0.05); };
  let least = 99;
  for (const node of d.querySelectorAll("p, span.chip, td, th, dt, dd, li, h1, h2, .figure span")) {
    let back = node;
    while (back && view.getComputedStyle(back).backgroundColor === "rgba(0, 0, 0, 0)") back = back.parentElement;
    if (back) least = Math.min(least, ratio(view.getComputedStyle(node).color, view.getComputedStyle(back).backgroundColor));
  }
  const out = document.createElement("output");
  out.textContent = `wide=${root.scrollWidth > root.clientWidth ? "yes" : "no"} width=${root.clientWidth} readable=${least >= 4.5 ? "yes" : "no:" + least.toFixed(2)} dark=${light(view.getComputedStyle(d.body).backgroundColor) < 0.1 ? "yes" : "no"} sections=${d.querySelectorAll("section").length}`;
  document.body.append(out);
}, 300);
</script>)js";
  const base::TempFolder folder("pages");
  const auto file = folder.path() / "frame.html";
  base::write_file_atomically(
      file,
      fmt::format("<!doctype html><body>{}<iframe style=\"border:0;width:{}px;height:900px\" srcdoc=\"{}\"></iframe>",
                  script, width, quoted));
  const auto shown = open_page("file://" + file.string(), more);
  EXPECT_EQ(shown.console, "");
  const size_t at = shown.dom.find("<output>");
  return at == std::string::npos ? "" : shown.dom.substr(at + 8, shown.dom.find("</output>") - at - 8);
}

TEST(Page, ShowsARunWithoutConsoleErrors) {
  const base::TempFolder folder("pages");
  const auto file = folder.path() / "report.html";
  base::write_file_atomically(file, report::page_html(report::read_page_data(small_run())));
  const auto shown = open_page("file://" + file.string());
  EXPECT_EQ(shown.console, "");
  EXPECT_EQ(count(shown.dom, "<td class=\"bar\">"), 12);
  EXPECT_EQ(count(shown.dom, "class=\"entry ask\""), 2);
  EXPECT_EQ(count(shown.dom, "class=\"entry refusal\""), 2);
  EXPECT_NE(shown.dom.find("What separates this scenario from the ones that keep up?</div>"), std::string::npos);
  EXPECT_NE(shown.dom.find("Verdicts that were not"), std::string::npos);
  EXPECT_NE(shown.dom.find("one_hot_keys"), std::string::npos);
  EXPECT_NE(shown.dom.find("figures invented for the test of the page"), std::string::npos);
  // What a person typed is shown as typed.
  EXPECT_NE(shown.dom.find("&lt;b&gt;Which&lt;/b&gt; of the twelve"), std::string::npos);
}

TEST(Page, FitsAPhoneAndADeskInLightAndDark) {
  const std::string html = report::page_html(report::read_page_data(small_run()));
  EXPECT_EQ(probe(html, 390), "wide=no width=390 readable=yes dark=no sections=7");
  EXPECT_EQ(probe(html, 1440), "wide=no width=1440 readable=yes dark=no sections=7");
  EXPECT_EQ(probe(html, 390, {"--blink-settings=preferredColorScheme=0"}),
            "wide=no width=390 readable=yes dark=yes sections=7");
}

TEST(Page, ShowsATranscriptOfAnotherProgram) {
  const auto transcripts = base::project_root() / "tests/traces/claude-code";
  int opened = 0;
  for (const auto& entry : fs::recursive_directory_iterator(transcripts)) {
    if (entry.path().extension() != ".jsonl") continue;
    const base::TempFolder folder("pages");
    const auto file = folder.path() / "report.html";
    base::write_file_atomically(file, report::page_html(report::read_page_data(entry.path())));
    const auto shown = open_page("file://" + file.string());
    EXPECT_EQ(shown.console, "");
    EXPECT_NE(shown.dom.find("Tools by kind over time"), std::string::npos) << entry.path();
    if (++opened == 1) break;
  }
  EXPECT_EQ(opened, 1);
}

TEST(Page, IsLiveFromTheServer) {
  const base::TempFolder folder("pages");
  fs::copy(small_run(), folder.path() / "run", fs::copy_options::recursive);
  serve::Server server(folder.path() / "run", {});
  std::thread serving([&] { server.serve(); });
  Shown shown;
  // The document is told as soon as it has loaded; the stream's first event may come a moment later.
  for (int attempt = 0; attempt < 5 && shown.dom.find("the run is not running") == std::string::npos; ++attempt)
    shown = open_page(server.address(), {}, "--timeout=5000");
  server.stop();
  serving.join();
  EXPECT_EQ(shown.console, "");
  EXPECT_NE(shown.dom.find("the run is not running"), std::string::npos);
  EXPECT_NE(shown.dom.find("Your question to the agent"), std::string::npos);
  EXPECT_EQ(count(shown.dom, "<td class=\"bar\">"), 12);
}

}  // namespace
}  // namespace ks
