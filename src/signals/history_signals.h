// Signals that need more than one evaluation: the best so far, what the last step changed, drift, contradictions. Kept
// up to date evaluation by evaluation, in order of their numbers; one that comes again, or late, changes nothing.
//
// Versions are compared row by row over the rows that both have, so that a part of the grid is never held against the
// whole. "Beyond the noise" means by more than log(1 + 2 noise_rel); while no noise is known it is 0 for the best so
// far, and the comparisons of single rows are unknown.
#pragma once

#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/record.h"
#include "signals/signal_set.h"

namespace ks::signals {

/// What is kept of one judged evaluation.
struct Version {
  struct Row {
    double log_ratio = 0, time_us = 0, reference_us = 0;
    std::string reference;  ///< name of the fastest right baseline
  };
  int number = 0;
  std::string hash;  ///< of the candidate; empty: unknown
  int correct = 0;
  std::optional<double> log_geomean;  ///< over the rows that have a ratio
  std::map<std::string, Row> rows;    ///< timed rows with a ratio
};

/// One row between two versions.
struct RowChange {
  std::string name;
  double before = 0, after = 0;  ///< ratios
  double log_ratio = 0;          ///< log(after / before)
  double log_time = 0;           ///< log(time after / time before)
  double log_reference = 0;      ///< the same for the reference's time
};

class History {
 public:
  void add(int number, const core::Evaluation& record);
  /// An evaluation of which only the trace's event is known (so far).
  void note(int number, std::optional<double> geomean, const std::string& origin);

  void add_signals(std::optional<double> goal, SignalSet& signals) const;

  bool empty() const { return judged_ == 0; }
  /// Rows of the grid: the most that any record has.
  int declared() const { return declared_; }
  /// The last judged evaluation with a time in it, and the last of any kind; null where there is none.
  const core::Evaluation* timed() const { return timed_.get(); }
  const core::Evaluation* latest() const { return latest_.get(); }
  int timed_number() const { return timed_number_; }
  int latest_number() const { return latest_number_; }
  std::optional<double> noise() const { return noise_; }
  std::string noise_origin() const;
  /// The best version, or null.
  const Version* best() const { return best_ < 0 ? nullptr : &versions_[static_cast<size_t>(best_)]; }
  int improved_number() const { return improved_number_; }
  /// The last two timed versions, row by row; empty where there are not two.
  std::vector<RowChange> last_changes() const;
  const Version* previous() const;
  const Version* last() const { return versions_.empty() ? nullptr : &versions_.back(); }
  /// The row that lost most against its own best, with the number of that evaluation and the loss.
  struct Loss {
    std::string name;
    int best_number = 0;
    double best = 0, now = 0, loss = 0;
  };
  std::optional<Loss> largest_loss() const;
  /// Two evaluations of one candidate that contradict each other.
  struct Contradiction {
    int first = 0, second = 0;
    double change = 0;  ///< relative, of the ratios over the rows of both
  };
  const std::optional<Contradiction>& contradiction() const { return contradiction_; }
  const std::set<std::string>& hashes() const { return hashes_; }

 private:
  struct RowBest {
    double log_ratio = 0;
    int number = 0;
  };
  void follow(int number, const std::shared_ptr<const core::Evaluation>& record);
  void follow_best();
  void follow_repeats();
  double margin() const { return noise_ ? std::log1p(2 * *noise_) : 0.0; }
  void add_course(SignalSet& signals) const;
  void add_step(SignalSet& signals) const;
  void add_session(SignalSet& signals) const;
  void add_repeats(SignalSet& signals) const;
  void add_since_first(SignalSet& signals) const;

  struct Noted {
    std::optional<double> geomean;
    std::string origin;
  };
  int judged_ = 0;  ///< evaluations followed
  bool any_above_bound_ = false;
  std::map<int, Noted> noted_;     ///< known from events alone
  std::vector<Version> versions_;  ///< timed, in order
  std::shared_ptr<const core::Evaluation> first_, timed_, latest_;
  int timed_number_ = 0, latest_number_ = 0, declared_ = 0;
  int best_ = -1, improved_at_ = -1, improved_number_ = 0;
  double improved_log_ = 0;
  int improved_correct_ = 0;
  std::vector<double> best_logs_;  ///< log of the best after each timed version
  std::map<std::string, RowBest> row_best_;
  std::map<std::string, std::vector<size_t>> by_hash_;  ///< versions of each candidate
  std::set<std::string> devices_, hashes_;
  std::optional<double> noise_;
  int noise_number_ = 0;
  std::optional<Contradiction> contradiction_;
};

/// Changes over the rows that both versions have.
std::vector<RowChange> changes_between(const Version& before, const Version& after);

/// True where the order of two versions depends on the summary: mean of logs, median, mean of ratios, ratio of sums.
std::optional<bool> rank_flips(const Version& before, const Version& after);

}  // namespace ks::signals
