// A run that is being watched: follows its trace and records as they grow, and passes a person's words and wishes on to
// the run's control socket. Several pages may watch one run; nothing here writes into it.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/file.h"
#include "report/page_data.h"
#include "trace/trace_reader.h"

namespace ks::serve {

/// The bank's best questions for a run now, as a list of {id, category, text, facts}; handed in.
using Suggest = std::function<Json(const base::fs::path& run)>;

class LiveRun {
 public:
  /// Throws ks::Error where the folder holds no trace.
  explicit LiveRun(const base::fs::path& run, Suggest suggest = {});
  ~LiveRun();
  LiveRun(const LiveRun&) = delete;
  LiveRun& operator=(const LiveRun&) = delete;

  /// What a page shows, and which state of the run it is. Waits until that is newer than `seen`, or timeout_s.
  struct View {
    int64_t version = 0;
    std::shared_ptr<const std::string> page;  ///< JSON on one line
    std::string status;                       ///< JSON on one line
  };
  View wait(int64_t seen, double timeout_s);
  /// The page as it stands.
  std::string html(const std::string& token);

  /// Sends {"do": …} to the run. The answer; throws ks::Error where the run is not running or refuses.
  Json ask_run(const Json& request) const;
  /// Ends every wait.
  void close();

 private:
  void follow();
  bool read_new_events();
  void publish();
  std::string read_status();

  base::fs::path run_;
  Suggest suggest_;
  trace::TraceReader reader_;
  std::mutex mutex_;
  std::condition_variable changed_;
  report::PageData data_;
  std::shared_ptr<const std::string> page_;
  std::string status_ = "{}";
  Json suggestions_ = Json::array();
  int64_t version_ = 0;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace ks::serve
