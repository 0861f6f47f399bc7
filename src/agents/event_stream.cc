#include "agents/event_stream.h"

#include "base/error.h"

namespace ks::agents {

void EventStream::feed(std::string_view bytes) {
  constexpr size_t kMostPending = 64u << 20;
  pending_.append(bytes);
  size_t from = 0;
  for (size_t end = pending_.find('\n'); end != std::string::npos; end = pending_.find('\n', from)) {
    std::string_view text(pending_.data() + from, end - from);
    if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
    line(text);
    from = end + 1;
  }
  pending_.erase(0, from);
  if (pending_.size() > kMostPending) throw Error("the model's server sends a line without an end");
}

void EventStream::line(std::string_view text) {
  if (text.empty()) {
    if (has_data_) use_(name_, data_);
    name_.clear(), data_.clear(), has_data_ = false;
    return;
  }
  const size_t colon = text.find(':');
  if (colon == 0 || colon == std::string_view::npos) return;  // a comment keeps the line alive; others are unknown
  std::string_view value = text.substr(colon + 1);
  if (!value.empty() && value.front() == ' ') value.remove_prefix(1);
  const std::string_view key = text.substr(0, colon);
  if (key == "event") name_ = value;
  if (key != "data") return;
  if (has_data_) data_ += '\n';
  data_ += value;
  has_data_ = true;
}

}  // namespace ks::agents
