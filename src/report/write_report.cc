#include "report/write_report.h"

namespace ks::report {
namespace {

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '&')
      result += "&amp;";
    else if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else if (c == '"')
      result += "&quot;";
    else
      result += c;
  }
  return result;
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

}  // namespace

std::string script_json(const Json& json) {
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  replace_all(text, "<", "\\u003c");
  replace_all(text, "\xE2\x80\xA8", "\\u2028");
  replace_all(text, "\xE2\x80\xA9", "\\u2029");
  return text;
}

std::string page_html(const PageData& page, const PageOptions& options) {
  const Json data = page.json();
  std::string html =
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n<title>";
  html += escaped(data["title"].get<std::string>()) + " - KernelSeek</title>\n<style>\n" + kPageStyle +
          "</style>\n</head>\n";
  html += fmt::format("<body data-live=\"{}\" data-token=\"{}\">\n", options.is_live ? "yes" : "no",
                      escaped(options.token));
  html +=
      "<main id=\"page\"></main>\n<noscript><p>This page draws itself with a script that it carries; allow scripts to "
      "see it.</p></noscript>\n";
  html +=
      "<script type=\"application/json\" id=\"data\">" + script_json(data) + "</script>\n<script>\n\"use strict\";\n";
  html += kPageScript;
  html += kPageCharts;
  html += kPageTables;
  html += kPageLive;
  html += "</script>\n</body>\n</html>\n";
  return html;
}

}  // namespace ks::report
