// aider: its chat history in Markdown. "#### " begins what a person typed, "> " what the program said; the rest is the
// agent's. Times stand only at the start of a session, tokens and cost in the program's own words.
#include <cmath>
#include <cstdlib>

#include "trace/importer.h"

namespace ks::trace {

namespace {

/// The number at the start of "2.3k sent" or "$0.0021"; thousands and millions by their letters.
double amount(std::string_view text) {
  std::string digits;
  size_t at = 0;
  while (at < text.size() && (text[at] == '$' || text[at] == ' ')) ++at;
  while (at < text.size() && ((text[at] >= '0' && text[at] <= '9') || text[at] == '.' || text[at] == ',')) {
    if (text[at] != ',') digits += text[at];
    ++at;
  }
  const double number = std::strtod(digits.c_str(), nullptr);
  if (!(number < 1e15)) return 0;
  if (at < text.size() && text[at] == 'k') return number * 1e3;
  return at < text.size() && text[at] == 'M' ? number * 1e6 : number;
}

/// The amount that stands just before `word` in a comma list: "2.3k sent".
double amount_before(std::string_view text, std::string_view word) {
  const size_t at = text.find(word);
  if (at == std::string_view::npos) return 0;
  size_t begin = text.find_last_of(":,", at);
  while (begin != std::string_view::npos && begin > 0 && text[begin] == ',' && begin + 1 < text.size() &&
         text[begin + 1] != ' ')
    begin = text.find_last_of(":,", begin - 1);
  return amount(text.substr(begin == std::string_view::npos ? 0 : begin + 1));
}

class AiderImporter final : public Importer {
 public:
  AiderImporter() : Importer("aider") {}

  void line(std::string_view text) override {
    ++report_.lines;
    const char* part = text.starts_with("# aider chat started at ")  ? "start"
                       : text.starts_with("#### ") || text == "####" ? "human"
                       : text.starts_with("> ") || text == ">"       ? "program"
                                                                     : "agent";
    const bool continues =
        part == std::string_view(part_) && part != std::string_view("start") && part != std::string_view("program");
    if (!continues) flush();
    part_ = part;
    if (part_ == std::string_view("start")) text.remove_prefix(24);
    if (part_ == std::string_view("human")) text.remove_prefix(std::min<size_t>(5, text.size()));
    if (part_ == std::string_view("program")) text.remove_prefix(std::min<size_t>(2, text.size()));
    if (!block_.empty() || continues) block_ += '\n';
    block_ += text;
  }

  void finish() override {
    flush();
    Importer::finish();
  }

 protected:
  std::string record(Json& json) override {
    std::string text = repair_utf8(block_);
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    const std::string part = json.get<std::string>();
    if (text.find_first_not_of('\n') == std::string::npos) return "empty_block";
    if (part == "start") {
      time_ = time_of(Json(text));
      open_session("main", time_, "", "aider", "");
      note("main", time_, "start");
      time_ = 0;  // it holds for the start alone
      return "";
    }
    open_session("main", 0, "", "aider", "");
    if (part == "human") {
      const bool is_command = text.starts_with("/");
      message("main", time_, is_command ? "system" : "human", std::move(text), is_command ? "command" : "typed");
    } else if (part == "agent") {
      message("main", time_, "agent", text.substr(text.find_first_not_of('\n')), "text");
    } else {
      program(text);
    }
    return "";
  }

 private:
  void flush() {
    if (!*part_) return;
    Json part = part_;
    take(part);
    block_.clear();
    part_ = "";
  }

  void program(const std::string& text) {
    if (text.starts_with("Applied edit to ")) {
      const std::string id = "edit-" + std::to_string(report_.records);
      tool_call("main", time_, id, "edit", {{"path", text.substr(16)}});
      tool_result("main", time_, id, text, false);
    } else if (text.starts_with("Tokens: ")) {
      Json body = {{"id", "message-" + std::to_string(report_.records)},
                   {"output_tokens", std::llround(amount_before(text, " received"))},
                   {"cached_tokens", std::llround(amount_before(text, " cache hit"))},
                   {"cache_write_tokens", std::llround(amount_before(text, " cache write"))}};
      const int64_t sent = std::llround(amount_before(text, " sent"));
      body["input_tokens"] = sent - body["cached_tokens"].get<int64_t>() - body["cache_write_tokens"].get<int64_t>();
      if (const size_t cost = text.find("Cost: "); cost != std::string::npos)
        body["cost_usd"] = amount(text.substr(cost + 6));
      emit("usage", "main", time_, std::move(body));
    } else {
      note("main", time_, "program", text);
    }
  }

  const char* part_ = "";
  std::string block_;
  double time_ = 0;
};

}  // namespace

std::unique_ptr<Importer> make_aider_importer() {
  return std::make_unique<AiderImporter>();
}

}  // namespace ks::trace
