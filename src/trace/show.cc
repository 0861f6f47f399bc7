// See show.h. Both forms are made from the same entries: a heading, the text, and what kind of thing it is.
#include "trace/show.h"

#include <algorithm>

#include "base/clock.h"

namespace ks::trace {

namespace {

/// One event as a person sees it.
struct Entry {
  std::string heading;
  std::string text;
  const char* style;  ///< class in the page, colour in the terminal
};

std::string first_of(const Json& body, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (std::string text = text_at(body, key); !text.empty()) return text;
  return "";
}

std::string call_text(const Json& body) {
  const Json& input = value_at(body, "input");
  std::string text = shell_command_of(text_at(body, "tool"), input);
  if (!text.empty()) return text;
  if (!input.is_object()) return input.is_string() ? input.get<std::string>() : "";
  for (const auto& [key, value] : input.items())
    text += fmt::format("{}{}: {}", text.empty() ? "" : "\n", key,
                        value.is_string() ? value.get<std::string>() : base::to_line(value));
  return text;
}

Entry message_entry(const Json& body) {
  const std::string role = text_at(body, "role"), source = text_at(body, "source");
  std::string text = text_at(body, "text");
  if (role == "human")
    return {source == "typed" || source.empty() ? "person" : fmt::format("person ({})", source), std::move(text),
            "human"};
  if (role == "agent")
    return {source == "thinking" ? "agent, thinking" : "agent", std::move(text),
            source == "thinking" ? "quiet" : "agent"};
  return {fmt::format("program ({})", source), std::move(text), "quiet"};
}

Entry entry_of(const Event& event) {
  const Json& body = event.body;
  if (event.kind == "message") return message_entry(body);
  if (event.kind == "tool_call")
    return {fmt::format("{} [{}]", text_at(body, "tool"), text_at(body, "kind")), call_text(body), "call"};
  if (event.kind == "tool_result")
    return {fmt::format("result{}, {} bytes", truth_at(body, "is_error") ? " (failed)" : "", integer_at(body, "bytes")),
            text_at(body, "text"), truth_at(body, "is_error") ? "failed" : "result"};
  if (event.kind == "question")
    return {fmt::format("question ({})", text_at(body, "category")), text_at(body, "text"), "human"};
  if (event.kind == "evaluation")
    return {fmt::format("evaluation {}: {}", integer_at(body, "number"), text_at(body, "outcome")),
            fmt::format("{} of {} correct, geomean {}", integer_at(body, "correct"), integer_at(body, "total"),
                        value_at(body, "geomean").is_number() ? fmt::format("{:.3f}", number_at(body, "geomean"))
                                                              : "undefined"),
            "judge"};
  if (event.kind == "judge")
    return {fmt::format("judge: {}", text_at(body, "decision")), first_of(body, {"question", "goal"}), "judge"};
  if (event.kind == "session_start")
    return {fmt::format("session {} starts", event.session), first_of(body, {"model", "agent"}), "quiet"};
  if (event.kind == "session_end" || event.kind == "run_end")
    return {event.kind, first_of(body, {"reason", "decision"}), "quiet"};
  if (event.kind == "compaction") return {"the context was compacted", "", "quiet"};
  std::string text = text_at(body, "text");
  if (text.empty() && !body.empty()) text = base::to_line(body);
  return {event.kind, std::move(text), "quiet"};
}

bool is_shown(const Event& event, const ShowOptions& show) {
  if (!show.session.empty() && event.session != show.session) return false;
  if (!show.kind.empty()) return event.kind == show.kind;
  return show.with_notes || (event.kind != "note" && event.kind != "usage" && event.kind != "stage");
}

void read_shown(const TraceFiles& files, const ShowOptions& show, const ReadOptions& options, const EventUse& use) {
  const auto filter = [&](Event&& event) {
    if (is_shown(event, show)) use(std::move(event));
  };
  read_transcript(files.main, filter, options);
  for (const auto& helper : files.helpers) read_transcript(helper, filter, options);
}

const char* colour_of(std::string_view style) {
  if (style == "human") return "\x1b[1;32m";
  if (style == "agent") return "\x1b[1;36m";
  if (style == "call") return "\x1b[33m";
  if (style == "failed") return "\x1b[31m";
  return style == "judge" ? "\x1b[1;35m" : "\x1b[2m";
}

/// Text without what could move the cursor or change colours: a transcript must not drive the terminal.
std::string without_controls(std::string_view text) {
  std::string clean;
  for (const char c : text)
    if (static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t') clean += c == '\x7f' ? ' ' : c;
  return clean;
}

std::string indented(std::string_view text, int64_t max_lines, size_t width) {
  std::string result;
  int64_t lines = 0;
  size_t at = 0;
  while (at < text.size()) {
    if (max_lines > 0 && lines == max_lines) {
      const auto more = std::count(text.begin() + static_cast<std::ptrdiff_t>(at), text.end(), '\n') + 1;
      return result + fmt::format("    … {} more line{}\n", more, more == 1 ? "" : "s");
    }
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    const size_t room = std::max<size_t>(40, width) - 5;
    if (max_lines > 0 && line.size() > room) {
      size_t cut = room;
      while (cut > 0 && (static_cast<unsigned char>(line[cut]) & 0xC0) == 0x80) --cut;
      result += fmt::format("    {}…\n", line.substr(0, cut));
    } else {
      result += fmt::format("    {}\n", line);
    }
    ++lines;
    at = end + 1;
  }
  return result;
}

std::string html_text(std::string_view text) {
  std::string html;
  html.reserve(text.size());
  for (const char c : text) {
    if (c == '&')
      html += "&amp;";
    else if (c == '<')
      html += "&lt;";
    else if (c == '>')
      html += "&gt;";
    else if (static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t')
      html += c;
  }
  return html;
}

constexpr std::string_view kPageHead =
    "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" "
    "content=\"width=device-width\">\n<title>Transcript</title>\n"
    "<style>:root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;margin:1.5rem "
    "auto;max-width:60rem;padding:0 1rem}"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:.3rem 0;font:13px/1.45 ui-monospace,monospace}"
    "article{border-left:4px solid #8886;padding:.2rem .8rem;margin:.5rem "
    "0}.human{border-color:#2a8f4a}.agent{border-color:#1a7f9c}"
    ".call{border-color:#b58900}.failed{border-color:#c0392b}.judge{border-color:#8e44ad}.quiet{opacity:.75}"
    "header{font-size:.85rem;opacity:.8}.helper{margin-left:2rem}summary{cursor:pointer}</style>\n<h1>Transcript</"
    "h1>\n";

}  // namespace

void show_text(const TraceFiles& files, const ShowOptions& show, const std::function<void(std::string_view)>& write,
               const ReadOptions& options) {
  read_shown(files, show, options, [&](Event&& event) {
    const Entry entry = entry_of(event);
    std::string heading =
        fmt::format("#{} {}{}", event.seq, event.time > 0 ? base::iso8601(event.time) + "  " : "", entry.heading);
    if (event.session != "main") heading += fmt::format("  <{}>", event.session);
    heading = without_controls(heading);
    if (show.with_colour) heading = fmt::format("{}{}\x1b[0m", colour_of(entry.style), heading);
    write(heading + "\n" + indented(without_controls(entry.text), show.max_lines, show.width));
  });
}

void show_html(const TraceFiles& files, const ShowOptions& show, const std::function<void(std::string_view)>& write,
               const ReadOptions& options) {
  constexpr size_t kFoldBytes = 1500;
  write(kPageHead);
  read_shown(files, show, options, [&](Event&& event) {
    const Entry entry = entry_of(event);
    std::string html = fmt::format("<article class=\"{}{}\" id=\"e{}\"><header>#{} {} {} {}</header>", entry.style,
                                   event.session == "main" ? "" : " helper", event.seq, event.seq,
                                   event.time > 0 ? base::iso8601(event.time) : "", html_text(entry.heading),
                                   html_text(event.session));
    const std::string text = html_text(entry.text);
    if (text.size() > kFoldBytes)
      html += fmt::format("<details><summary>{} characters</summary><pre>{}</pre></details>", text.size(), text);
    else if (!text.empty())
      html += fmt::format("<pre>{}</pre>", text);
    write(html + "</article>\n");
  });
  write("</html>\n");
}

}  // namespace ks::trace
