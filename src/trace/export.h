// Traces in other people's formats: ATIF 1.7 (one JSON document of steps, for viewers and converters) and CSV (one row
// per event, for spreadsheets). What ATIF has no place for stands under "extra" with the prefix "kernelseek_".
#pragma once

#include "trace/import.h"

namespace ks::trace {

/// The ATIF document of a transcript of any known format.
Json atif_of(const TraceFiles& files, const ReadOptions& options = {});

/// Writes the events as CSV, a row each, through `write`.
void write_csv(const TraceFiles& files, const std::function<void(std::string_view)>& write,
               const ReadOptions& options = {});

/// Copies a transcript of any known format into a trace of ours, `out`/trace.jsonl or the file `out` if it ends in
/// ".jsonl". Returns the report of the reading and the path written through `written`.
ImportReport import_into(const TraceFiles& files, const base::fs::path& out, base::fs::path& written,
                         const ReadOptions& options = {});

}  // namespace ks::trace
