// Writes a run's trace, `trace.jsonl`: a header line, then one line per event, appended by a single write(2) each, so
// that a kill at any moment leaves every event whose append() returned. One writer at a time holds a lock on the file.
// Opening an existing trace goes on where it stopped; a torn last line (a kill in the middle of a write, a power cut)
// is moved into a side file `trace.jsonl.torn-N` first.
#pragma once

#include <mutex>
#include <string>

#include "base/file.h"
#include "trace/event.h"

namespace ks::trace {

/// Appends events to one trace file; may be used from several threads.
class TraceWriter {
 public:
  /// Makes or reopens the trace. `about` goes into the header of a new one beside "schema" and "created".
  /// Throws ks::Error where another writer holds it, or the file is not a trace of this schema.
  explicit TraceWriter(const base::fs::path& path, const Json& about = Json::object());
  ~TraceWriter();
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  /// Appends an event that happens now and returns its number. `durable`: it is on the disk when this returns.
  int64_t append(const std::string& kind, const std::string& session, const Json& body, bool durable = false);
  /// Appends an event that carries its own time (0: unknown); its `seq` is replaced.
  int64_t append(Event event, bool durable = false);
  /// Puts all that was appended on the disk.
  void sync();

  int64_t last_seq() const { return last_seq_; }
  const base::fs::path& path() const { return path_; }
  /// Side file into which a torn last line was moved when the trace was opened; empty: there was none.
  const base::fs::path& torn_file() const { return torn_file_; }

 private:
  void lock_file();
  void start(const Json& about);
  void resume();
  void move_torn_tail(int64_t from, int64_t to);
  int64_t append_locked(Event event, bool durable);
  void write_line(std::string line, bool durable);

  base::fs::path path_, torn_file_;
  int fd_ = -1;
  int64_t last_seq_ = 0;
  int64_t size_ = 0;  ///< bytes of complete lines
  std::mutex mutex_;
};

}  // namespace ks::trace
