// See event.h.
#include "trace/event.h"

#include <algorithm>

namespace ks::trace {

bool is_known_kind(std::string_view kind) {
  return std::find(kEventKinds.begin(), kEventKinds.end(), kind) != kEventKinds.end();
}

Json to_json(const Event& event) {
  Json json = Json::object();
  json["seq"] = event.seq;
  json["time"] = event.time;
  json["kind"] = event.kind;
  json["session"] = event.session;
  json["body"] = event.body;
  return json;
}

}  // namespace ks::trace
