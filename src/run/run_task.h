// Runs a task: an agent works, every version is evaluated, a questioner asks, a judge decides when it is over.
#pragma once

#include <atomic>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>

#include "run/workbench.h"

namespace ks::run {

/// What came from a person's terminal.
struct TypedLine {
  std::string text;
  bool is_end = false;  ///< the input was closed: nothing more will come
};

/// How a person is reached, for the questioner `human`.
struct Person {
  std::function<std::optional<TypedLine>(double timeout_s)> read_line;  ///< empty: no terminal; nothing: not yet
  bool has_page = false;                                                ///< a live page is served
};

/// What to run and how to show it.
struct RunOptions {
  std::string task;           ///< task file; or
  std::string resume;         ///< a run's folder
  std::string questioner;     ///< takes the place of the task's; "" does not
  std::string runs = "runs";  ///< folder in which a new run's folder is made
  const std::atomic<bool>* cancel = nullptr;
  Person person;
  std::function<void(const std::string& folder)> on_started;  ///< the run's doors are open
  std::FILE* out = stdout;
  bool is_quiet = false;
};

struct RunResult {
  std::string folder;
  std::string decision;  ///< "met", "not_met", "undecided"; "" if the run is not over
  std::string reason;    ///< why it ended: "goal met", "evaluations", "minutes", "cancelled" …
  int evaluations = 0;
  double first = 0, best = 0;  ///< geomean against the fastest, 0: undefined
};

/// Throws ks::Error where the run cannot begin or go on; what was recorded until then stays.
RunResult run_task(const RunOptions& options, const Workbench& bench);

/// What run_task would do, in words, with nothing done.
std::string describe_run(const RunOptions& options);

}  // namespace ks::run
