// Our own trace files: events pass through as they are.
#include "trace/importer.h"
#include "trace/trace_reader.h"

namespace ks::trace {

namespace {

class OwnImporter final : public Importer {
 public:
  OwnImporter() : Importer("kernelseek") {}

 protected:
  std::string record(Json& json) override {
    if (json.contains("schema")) return "header";
    auto event = event_from(json);
    if (!event) {
      count_problem("not_an_event");
      return "not_an_event";
    }
    if (!is_known_kind(event->kind)) count_problem("unknown_kind");
    if (event->seq <= last_seq_) count_problem(event->seq == last_seq_ ? "duplicate_seq" : "seq_went_backwards");
    last_seq_ = event->seq;
    emit(std::move(event->kind), event->session, event->time, std::move(event->body));
    return "";
  }

 private:
  int64_t last_seq_ = 0;
};

}  // namespace

std::unique_ptr<Importer> make_own_importer() {
  return std::make_unique<OwnImporter>();
}

}  // namespace ks::trace
