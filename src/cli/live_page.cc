#include "cli/live_page.h"

#include "steering/select.h"

namespace ks::cli {
namespace {
constexpr size_t kSuggestions = 3;
}

LivePage::LivePage(const std::string& run, int port)
    : bank_(steering::load_bank(steering::bank_folder())), feed_(run, 1) {
  const auto suggest = [this](const base::fs::path&) { return suggestions(); };
  server_ = std::make_unique<serve::Server>(run, serve::ServerOptions{.port = port, .suggest = suggest});
}

Json LivePage::suggestions() {
  Json list = Json::array();
  for (const auto& message : steering::best_messages(bank_, feed_.state(false), kSuggestions))
    list.push_back(
        {{"id", message.id}, {"category", message.category}, {"facts", message.facts}, {"text", message.question}});
  return list;
}

}  // namespace ks::cli
