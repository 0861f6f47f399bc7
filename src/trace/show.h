// A transcript that a person can read: in the terminal, or as one self-contained page.
#pragma once

#include <functional>

#include "trace/import.h"

namespace ks::trace {

/// What to show, and how much of it.
struct ShowOptions {
  std::string session;      ///< only this session; empty: all
  std::string kind;         ///< only events of this kind; empty: all
  int64_t max_lines = 12;   ///< of each text in the terminal; 0: all
  bool with_notes = false;  ///< heartbeats and usage too
  bool with_colour = false;
  size_t width = 120;
};

/// Gives the transcript to `write` piece by piece.
void show_text(const TraceFiles& files, const ShowOptions& show, const std::function<void(std::string_view)>& write,
               const ReadOptions& options = {});
void show_html(const TraceFiles& files, const ShowOptions& show, const std::function<void(std::string_view)>& write,
               const ReadOptions& options = {});

}  // namespace ks::trace
