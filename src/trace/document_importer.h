// Importers of formats that are one JSON document. A document that was cut off is ended after its last whole element.
#pragma once

#include "trace/importer.h"

namespace ks::trace {

/// Gives the list that a document holds, element by element, to record().
class DocumentImporter : public Importer {
 public:
  static constexpr size_t kMaxDocumentBytes = size_t{256} << 20;

  using Importer::Importer;
  bool is_document() const override { return true; }

  void document(std::string_view text) override {
    if (text.size() > kMaxDocumentBytes) return count_problem("document_too_large");
    Counters first_try;
    auto root = parser_.parse_unpadded(text, first_try);
    if (!root) {
      const std::string closed = close_truncated(text);
      Counters second_try;
      if (!closed.empty()) root = parser_.parse_unpadded(closed, second_try);
      if (!root) return count_problem("not_json");
      first_try = second_try;
      count_problem("truncated_document");
    }
    for (const auto& [name, count] : first_try) report_.problems[name] += count;
    root_ = std::move(*root);
    begin(root_);
    Json* list = elements(root_);
    if (!list || !list->is_array()) return count_problem("no_list_of_events");
    for (Json& element : *list) {
      ++report_.lines;
      if (element.is_object())
        take(element);
      else
        count_problem("not_an_object");
    }
    end(root_);
  }

 protected:
  /// What stands around the list, before and after it was read.
  virtual void begin(Json&) {}
  virtual void end(Json&) {}
  /// The list; null where the document has none.
  virtual Json* elements(Json& root) = 0;

  static Json* member(Json& object, const char* key) {
    if (!object.is_object()) return nullptr;
    const auto found = object.find(key);
    return found == object.end() ? nullptr : &*found;
  }

 private:
  Json root_;
};

}  // namespace ks::trace
