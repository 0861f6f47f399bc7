// Reading transcripts of any known format: which format a file has, found by content and not by name, and reading a
// file through its importer, line by line in constant memory, on a second thread if asked.
#pragma once

#include <optional>
#include <vector>

#include "base/file.h"
#include "trace/importer.h"

namespace ks::trace {

/// Formats by name: "kernelseek", "claude-code", "codex", "cursor", "gemini-cli", "openhands", "swe-agent",
/// "mini-swe-agent", "atif", "aider".
std::vector<std::string> format_names();

/// An importer by the name of its format ("gemini-cli-lines" for Gemini CLI's files of lines); null for other names.
std::unique_ptr<Importer> make_importer(std::string_view name);

/// An importer for a file's content; null where the format is not known.
std::unique_ptr<Importer> sniff(const base::fs::path& path);

/// How to read a file.
struct ReadOptions {
  std::string format;           ///< by name; empty: found by content
  SeenRecords* seen = nullptr;  ///< shared by files that may hold copies of each other's records
  bool parse_ahead = false;     ///< parse on a second thread while `use` works on this one
};

/// Gives the events of a transcript to `use`. Throws ks::Error where the file cannot be opened or its format is not
/// known; nothing inside the file is fatal.
ImportReport read_transcript(const base::fs::path& path, const EventUse& use, const ReadOptions& options = {});

/// One trace: a session's file with the files of its helpers.
struct TraceFiles {
  base::fs::path main;
  std::vector<base::fs::path> helpers;
};

/// Transcripts among files and folders, in order of path. A folder's files that are no transcript are named in
/// `others`.
std::vector<TraceFiles> find_transcripts(const std::vector<std::string>& paths,
                                         std::vector<base::fs::path>* others = nullptr);

}  // namespace ks::trace
