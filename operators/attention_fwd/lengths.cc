#include "operators/attention_fwd/lengths.h"

#include <algorithm>

#include "base/hash.h"
#include "operators/cells.h"

namespace ks::attention_fwd {
namespace {

constexpr int64_t kLongest = int64_t{1} << 26;

/// Reads one cell; keeps what error messages need.
class Reader {
 public:
  Reader(const core::Scenario& scenario, const std::string& column, int64_t batch)
      : scenario_(scenario), column_(column), batch_(batch), random_(shape_seed(scenario, column)) {}

  std::vector<int32_t> read() {
    const std::string& text = op::cell(scenario_, column_);
    if (text == "0 every 5th and last") return every_fifth_empty();
    if (text.find("..") != std::string::npos) return range(text);
    std::vector<int32_t> lengths;
    const char separator = text.find('+') != std::string::npos ? '+' : ',';
    for (const auto& term : op::split(text, separator)) add_term(term, lengths);
    if (lengths.size() == 1 && text.find_first_of("x~") == std::string::npos)
      lengths.assign(static_cast<size_t>(batch_), lengths[0]);
    if (static_cast<int64_t>(lengths.size()) != batch_)
      op::cell_error(
          scenario_, column_,
          fmt::format("\"{}\" gives {} lengths, and the batch (column \"B\") has {}", text, lengths.size(), batch_));
    return lengths;
  }

 private:
  int64_t number(std::string_view text) { return op::parse_number(scenario_, column_, text, 0, kLongest); }

  /// "1024", "8x1024", "9x~1024".
  void add_term(std::string_view term, std::vector<int32_t>& lengths) {
    int64_t count = 1;
    if (const size_t x = term.find('x'); x != std::string_view::npos) {
      count = op::parse_number(scenario_, column_, op::trimmed(term.substr(0, x)), 1, batch_);
      term = op::trimmed(term.substr(x + 1));
    }
    const bool is_about = term.starts_with('~');
    const int64_t length = number(is_about ? term.substr(1) : term);
    for (int64_t i = 0; i < count; ++i) {
      const auto less = is_about ? static_cast<int64_t>(random_.below(201)) : 0;
      lengths.push_back(static_cast<int32_t>(std::max<int64_t>(length - less, 0)));
    }
  }

  /// "64..505 step 7", "16..512 pseudo-random".
  std::vector<int32_t> range(std::string_view text) {
    const size_t dots = text.find("..");
    const size_t blank = text.find(' ', dots);
    const std::string_view rule = blank == std::string_view::npos ? "" : op::trimmed(text.substr(blank));
    const int64_t low = number(op::trimmed(text.substr(0, dots)));
    const int64_t high = number(op::trimmed(text.substr(dots + 2, blank - dots - 2)));
    if (high < low) op::cell_error(scenario_, column_, fmt::format("\"{}\": the range is empty", text));
    if (rule == "pseudo-random") return random_between(low, high);
    if (!rule.starts_with("step "))
      op::cell_error(scenario_, column_, fmt::format("\"{}\" must end in \"step n\" or \"pseudo-random\"", text));
    const int64_t step = op::parse_number(scenario_, column_, op::trimmed(rule.substr(5)), 1, kLongest);
    std::vector<int32_t> lengths;
    for (int64_t length = low; length <= high; length += step) lengths.push_back(static_cast<int32_t>(length));
    if (static_cast<int64_t>(lengths.size()) != batch_)
      op::cell_error(
          scenario_, column_,
          fmt::format("\"{}\" gives {} lengths, and the batch (column \"B\") has {}", text, lengths.size(), batch_));
    return lengths;
  }

  std::vector<int32_t> random_between(int64_t low, int64_t high) {
    std::vector<int32_t> lengths(static_cast<size_t>(batch_));
    for (auto& length : lengths)
      length = static_cast<int32_t>(low + static_cast<int64_t>(random_.below(static_cast<uint64_t>(high - low + 1))));
    return lengths;
  }

  std::vector<int32_t> every_fifth_empty() {
    std::vector<int32_t> lengths;
    for (int64_t i = 0; i < batch_; ++i)
      lengths.push_back(i % 5 == 0 || i == batch_ - 1 ? 0 : static_cast<int32_t>(900 + 10 * i));
    return lengths;
  }

  const core::Scenario& scenario_;
  const std::string& column_;
  int64_t batch_;
  base::Random random_;
};

}  // namespace

uint64_t shape_seed(const core::Scenario& scenario, const std::string& purpose) {
  const std::string text = scenario.name + "/" + purpose;
  return base::buffer_hash(text.data(), text.size(), 0x6B73);
}

std::vector<int32_t> read_lengths(const core::Scenario& scenario, const std::string& column, int64_t batch) {
  return Reader(scenario, column, batch).read();
}

}  // namespace ks::attention_fwd
