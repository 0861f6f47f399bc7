// Server-sent events out of bytes as they arrive: "event:" and "data:" lines, a blank line ends an event.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace ks::agents {

class EventStream {
 public:
  using Use = std::function<void(const std::string& name, const std::string& data)>;
  explicit EventStream(Use use) : use_(std::move(use)) {}
  /// Takes the next bytes; calls `use` for each event that they complete. An event that never ends is not used.
  void feed(std::string_view bytes);

 private:
  void line(std::string_view text);
  Use use_;
  std::string pending_, name_, data_;
  bool has_data_ = false;
};

}  // namespace ks::agents
