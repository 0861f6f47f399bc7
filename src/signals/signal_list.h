// The table of signals: every name that a trigger may use, its kind and unit, what it means, and whether it can be had.
// A signal that is not computed stays unknown, so a comparison with it never fires; `computed` is set when the function
// that gives it exists, and the bank's check then says which questions became reachable.
#pragma once

#include <array>
#include <string_view>

namespace ks::signals {

/// kNumber: any number; kCount: 0, 1, …; kShare: relative, 0.1 is ten percent; kTruth: yes or no; kWord: one of a few
/// words.
enum class SignalKind { kNumber, kCount, kShare, kTruth, kWord };

/// A row of the table.
struct SignalInfo {
  std::string_view name;
  SignalKind kind = SignalKind::kNumber;
  std::string_view unit;     ///< empty for ratios and truths
  std::string_view meaning;  ///< one line
  bool computed = false;     ///< there is a function that gives it from evaluations, trace or files
};

// clang-format off
inline constexpr std::array<SignalInfo, 171> kSignalList = {{
    // the latest evaluation
    {"geomean", SignalKind::kNumber, "", "geometric mean of reference time over our time, over the rows of the latest evaluation", true},
    {"best_geomean", SignalKind::kNumber, "", "highest geomean among the evaluations with the most rows right", true},
    {"goal", SignalKind::kNumber, "", "target of the geomean, taken from the goal expression", true},
    {"n_evals", SignalKind::kCount, "evaluations", "evaluations judged so far", true},
    {"n_configs", SignalKind::kCount, "rows", "rows of the grid", true},
    {"n_configs_reported", SignalKind::kCount, "rows", "rows with a ratio in the latest evaluation", true},
    {"n_correct_frac", SignalKind::kShare, "share", "share of the rows that came out correct", true},
    {"n_unsupported", SignalKind::kCount, "rows", "rows that the candidate refused while a reference was right", true},
    {"ratio_min", SignalKind::kNumber, "", "lowest ratio of a row", true},
    {"ratio_max", SignalKind::kNumber, "", "highest ratio of a row", true},
    {"ratio_spread", SignalKind::kNumber, "", "highest ratio over lowest ratio", true},
    {"loggap_top3_share", SignalKind::kShare, "share", "share of the log distance to the goal that the three slowest rows hold", true},
    {"n_configs_regressed", SignalKind::kCount, "rows", "rows slower than in the evaluation before by more than twice the noise", true},
    {"geomean_up", SignalKind::kTruth, "", "the geomean rose by more than twice the noise against the evaluation before", true},
    {"best_per_config_gap", SignalKind::kShare, "share", "largest loss of a row against its own best earlier evaluation", true},
    {"common_shift_mean", SignalKind::kNumber, "", "absolute mean of the log change of time over the rows", true},
    {"common_shift_sd", SignalKind::kNumber, "", "standard deviation of the log change of time over the rows", true},
    {"rank_flip", SignalKind::kTruth, "", "the last two versions change order under the median or the arithmetic mean", true},
    {"feature_gap_rel", SignalKind::kShare, "share", "largest difference of ratio between rows that differ in one switch alone", true},
    {"axes_unswept", SignalKind::kCount, "axes", "columns of the grid that no pair of rows varies alone", true},
    {"nonmonotone", SignalKind::kTruth, "", "along a size axis a smaller problem takes longer than a larger one, beyond the noise", true},
    {"neighbour_drop", SignalKind::kNumber, "", "largest factor between the efficiencies of neighbours along a size axis", true},
    {"n_unexplained_slow", SignalKind::kCount, "rows", "rows below 0.8 that no message gives a cause with a number for", true},
    {"improve_spread", SignalKind::kNumber, "", "largest over smallest improvement of a row since the run began", true},
    {"ratio_min_moved", SignalKind::kTruth, "", "the lowest ratio moved by more than twice the noise", true},
    {"best_choice_differs", SignalKind::kTruth, "", "the best version is not the same for all rows", true},
    {"devices_seen", SignalKind::kCount, "devices", "devices on which the grid was measured", true},
    {"scenario_features_never", SignalKind::kCount, "features", "features of the operator's signature that no row of the grid uses", true},
    {"call_freq_known", SignalKind::kTruth, "", "frequencies of calls are at hand and used as weights", true},
    {"sizes_all_regular", SignalKind::kTruth, "", "all sizes are multiples of one large number", true},
    {"batch_all_uniform", SignalKind::kTruth, "", "the members of every batch have one size", true},
    {"edge_sizes_run", SignalKind::kCount, "rows", "rows at or past the smallest or largest supported size", true},
    {"heldout_evals", SignalKind::kCount, "evaluations", "evaluations on rows that the agent cannot see", true},
    {"feature_parity", SignalKind::kShare, "share", "share of the reference's features that ours supports", true},
    {"isolated_only", SignalKind::kTruth, "", "everything was measured with nothing else on the device", true},
    // noise and effect
    {"noise_rel", SignalKind::kShare, "share", "half width of the interval of a ratio of the same binary against itself", true},
    {"noise_known", SignalKind::kTruth, "", "the same binary has been compared with itself on this machine", true},
    {"effect_rel", SignalKind::kShare, "share", "relative change of the geomean by the last evaluation, without sign", true},
    {"n_repeats", SignalKind::kCount, "samples", "timed samples behind a row of the latest evaluation", true},
    {"spread_reported", SignalKind::kTruth, "", "the latest figures carry an interval", true},
    {"clock_known", SignalKind::kTruth, "", "the frequency of the device was logged during the measurement", true},
    {"n_processes", SignalKind::kCount, "processes", "separate starts behind the latest figures", true},
    {"stat_named", SignalKind::kTruth, "", "the quoted figure says which statistic it is", true},
    {"mean_median_gap", SignalKind::kShare, "share", "relative difference of mean and median of the samples", true},
    {"first_sample_ratio", SignalKind::kNumber, "", "first sample over the median of the later ones", true},
    {"bimodality_gap", SignalKind::kNumber, "", "distance of two heaps of samples in units of the spread inside them", true},
    {"drift_rel", SignalKind::kShare, "share", "trend of repeated measurements of one binary over the run", true},
    {"rep_sensitivity", SignalKind::kShare, "share", "change of the figure when the number of repeats changes tenfold", false},
    {"interleaved", SignalKind::kTruth, "", "both sides were measured in turns in one session", true},
    {"untouched_moved", SignalKind::kCount, "rows", "rows that the edit cannot reach and that moved by more than twice the noise", true},
    {"clock_ratio", SignalKind::kNumber, "", "mean frequency of the device during one side over the other", false},
    {"other_load", SignalKind::kCount, "processes", "other processes on the device during the measurement", true},
    {"timer_disagree", SignalKind::kShare, "share", "relative difference of two timers for one quantity", false},
    {"profiled_over_bench", SignalKind::kNumber, "", "time under the profiler over time without it", false},
    {"metric_samples", SignalKind::kCount, "samples", "samples behind a quoted utilisation or counter", false},
    {"breakdown_error", SignalKind::kShare, "share", "relative difference of the sum of the parts and the whole", false},
    {"event_count_error", SignalKind::kShare, "share", "relative difference of counted and expected device operations", false},
    {"profile_phase_ok", SignalKind::kTruth, "", "the profiled window lies in the phase that the claim is about", false},
    {"derived_metric_bare", SignalKind::kTruth, "", "a rate is quoted without the count behind it", false},
    {"number_age_edits", SignalKind::kCount, "edits", "edits since the quoted figure was measured", true},
    {"claim_has_command", SignalKind::kTruth, "", "a quoted number is found in the output of a command", true},
    {"size_exponent_error", SignalKind::kNumber, "", "fitted minus expected exponent of time against size, without sign", true},
    {"n_sizes", SignalKind::kCount, "sizes", "sizes measured along one axis", true},
    {"working_set_ratio", SignalKind::kNumber, "", "bytes of a call over the capacity of the last cache", true},
    {"repeat_same_input", SignalKind::kTruth, "", "all timed calls use the same buffers and contents", true},
    {"timed_region_differs", SignalKind::kTruth, "", "set-up or copies are timed for one side only", true},
    {"input_dist_known", SignalKind::kTruth, "", "the distribution of the timed inputs is on record", true},
    {"input_constant", SignalKind::kTruth, "", "the timed inputs are constant or patterned", true},
    {"best_of_n", SignalKind::kCount, "tries", "tries of which the quoted figure is the best", false},
    {"binary_stale", SignalKind::kTruth, "", "the measured binary does not carry the hash of the present source", true},
    {"dispatch_seen", SignalKind::kTruth, "", "the name of the implementation that ran is on record", true},
    {"env_changed", SignalKind::kTruth, "", "driver, compiler, library or device changed since the reference was measured", true},
    // bounds and breakdowns
    {"bound_known", SignalKind::kTruth, "", "a lower bound on the time of a row is known", true},
    {"bound_source", SignalKind::kWord, "", "where the bound comes from: measured, datasheet or none", true},
    {"frac_of_bound", SignalKind::kNumber, "", "bound over measured time of the row with the lowest ratio; above 1 is faster than the bound", true},
    {"any_above_bound", SignalKind::kTruth, "", "a measurement of the run is faster than its bound", true},
    {"ref_frac_known", SignalKind::kTruth, "", "the reference has been placed against the same bound", true},
    {"breakdown_known", SignalKind::kTruth, "", "a split of the time of a call into parts is on record", true},
    {"outside_share", SignalKind::kShare, "share", "share of a call's wall time in which the device does none of the work", true},
    {"target_share", SignalKind::kShare, "share", "share of the total time in the part that is being edited", false},
    {"max_part_share", SignalKind::kShare, "share", "share of the largest part of the breakdown", false},
    {"plan_ceiling", SignalKind::kNumber, "", "geomean if every open item of the plan gave all that was estimated", false},
    {"plan_item_age", SignalKind::kCount, "evaluations", "evaluations since the gain of an open item was estimated", false},
    {"work_ratio_error", SignalKind::kShare, "share", "difference of the ratio of times and the ratio of work of two rows", true},
    {"work_counted", SignalKind::kTruth, "", "operations and bytes of both sides are counted", true},
    {"gain_sum_error", SignalKind::kShare, "share", "difference of the sum of the single gains and the joint gain", false},
    {"micro_e2e_ratio", SignalKind::kNumber, "", "gain that a caller sees over the gain predicted from the part", false},
    {"model_residual", SignalKind::kShare, "share", "relative error of the cost model on the measured rows", false},
    {"resources_checked", SignalKind::kShare, "share", "share of the device's resources with a figure of use", false},
    {"wait_named", SignalKind::kTruth, "", "the main reason for waiting is named with a number", false},
    {"sensitivity_known", SignalKind::kTruth, "", "it is estimated how the total follows each part", false},
    {"timeline_split", SignalKind::kTruth, "", "beginning, middle and end of a call have been timed apart", false},
    {"part_up_part_down", SignalKind::kTruth, "", "one part shrank while another grew by as much", false},
    // errors, harness, reference
    {"err_ratio", SignalKind::kNumber, "", "our error over the error of an accepted implementation", true},
    {"err_ratio_known", SignalKind::kTruth, "", "the two errors have been compared", true},
    {"tol_slack", SignalKind::kNumber, "", "allowed error over the error of an accepted implementation", true},
    {"numeric_type_changed", SignalKind::kTruth, "", "an edit changes the type of numbers or a rounding step", true},
    {"bench_edited_by_agent", SignalKind::kTruth, "", "the agent wrote or edited a benchmark", true},
    {"err_slope", SignalKind::kNumber, "", "fitted exponent of the error against size", true},
    {"edge_inputs_run", SignalKind::kCount, "tests", "tests with extreme, empty or degenerate inputs", false},
    {"determinism_checked", SignalKind::kTruth, "", "two identical calls were compared bit by bit", true},
    {"timed_output_checked", SignalKind::kTruth, "", "outputs of timed calls are checked", true},
    {"completion_checked", SignalKind::kTruth, "", "the end of all device work is checked before the clock stops", true},
    {"harness_touched", SignalKind::kTruth, "", "files of the harness differ from their recorded hash", true},
    {"shape_literals", SignalKind::kTruth, "", "an edit adds sizes of the grid as literals in conditions", true},
    {"baseline_best_checked", SignalKind::kTruth, "", "the reference was compared with an alternative and with its own settings", true},
    {"baseline_published_gap", SignalKind::kShare, "share", "relative difference of the measured and the published reference figure", false},
    {"parity_of_terms", SignalKind::kTruth, "", "it is on record that both sides get the same inputs, precision and work", true},
    {"bench_purpose_stated", SignalKind::kTruth, "", "the benchmark says which decision it serves", false},
    // the course of the work
    {"evals_since_improve", SignalKind::kCount, "evaluations", "evaluations since the best geomean last rose by more than twice the noise", true},
    {"velocity", SignalKind::kNumber, "log/evaluation", "mean rise of the log of the best geomean per evaluation, over the last five", true},
    {"steps_since_eval", SignalKind::kCount, "steps", "tool calls of the agent since the last evaluation", true},
    {"edits_since_bench", SignalKind::kCount, "edits", "edits since anything was last measured", true},
    {"median_diff_lines", SignalKind::kNumber, "lines", "median of the changed lines of the last five edits", true},
    {"param_only_edits", SignalKind::kCount, "edits", "edits among the last eight that change literals only", true},
    {"best_tagged", SignalKind::kTruth, "", "the best version is kept under a name", true},
    {"budget_left", SignalKind::kShare, "share", "remaining share of the scarcest budget", true},
    {"open_questions", SignalKind::kCount, "questions", "questions whose expected evidence has not appeared", true},
    {"same_command_fail", SignalKind::kCount, "runs", "times in a row that one command failed alike", true},
    {"own_source_read_share", SignalKind::kShare, "share", "share of recent tool-result text that is our own source", true},
    {"ref_source_read_share", SignalKind::kShare, "share", "share of recent tool-result text that is other people's source", true},
    {"edits_since_test", SignalKind::kCount, "edits", "edits since outputs were last checked", true},
    {"edits_since_profile", SignalKind::kCount, "edits", "edits since the last profile or trace", true},
    {"profiler_runs", SignalKind::kCount, "runs", "runs of a profiler so far", true},
    {"same_strategy_streak", SignalKind::kCount, "attempts", "attempts in a row under one strategy tag", true},
    {"distinct_strategies", SignalKind::kCount, "tags", "strategy tags tried so far", true},
    {"strategy_repeat", SignalKind::kTruth, "", "a strategy tag returns after it was rejected", true},
    {"changes_per_eval", SignalKind::kCount, "hunks", "independent hunks between the last two evaluations", true},
    {"reverted_recent", SignalKind::kCount, "edits", "edits taken back among the last five", true},
    {"errors_ignored", SignalKind::kCount, "lines", "lines of errors in tool output that no later message mentions", true},
    {"notes_updated", SignalKind::kTruth, "", "a log of attempts was written during the last eight evaluations", true},
    {"compactions", SignalKind::kCount, "compactions", "compactions of the agent's context so far", true},
    {"plan_items_open", SignalKind::kCount, "items", "open items of the plan", false},
    {"plan_age_steps", SignalKind::kCount, "steps", "steps since the plan was revised", false},
    {"options_listed", SignalKind::kCount, "options", "options named in the last planning message", true},
    {"options_estimated", SignalKind::kCount, "options", "options of these that carry an estimate", true},
    {"kill_line_set", SignalKind::kTruth, "", "the result at which the attempt is dropped has been stated", false},
    {"goal_mentions", SignalKind::kCount, "mentions", "mentions of the goal's figure in the last ten messages", true},
    {"research_done", SignalKind::kTruth, "", "the agent has looked at how others solved the problem", true},
    {"asks_permission", SignalKind::kTruth, "", "the agent's last message ends by asking a person to choose", true},
    {"tool_kinds_recent", SignalKind::kCount, "kinds", "kinds of tools among the last fifteen calls", true},
    {"eval_minutes", SignalKind::kNumber, "min", "duration of an evaluation", true},
    {"unmerged_gains", SignalKind::kCount, "versions", "versions with a verified gain that the present line lacks", false},
    // what the agent says
    {"claims_done", SignalKind::kTruth, "", "the agent says that the work is finished", true},
    {"claims_limit", SignalKind::kTruth, "", "the agent says that a limit has been reached", true},
    {"claims_improved", SignalKind::kTruth, "", "the agent says that something became better", true},
    {"claims_infeasible", SignalKind::kTruth, "", "the agent says that something cannot be done", true},
    {"claims_cause", SignalKind::kTruth, "", "the agent names a cause", true},
    {"claims_tradeoff", SignalKind::kTruth, "", "the agent says that one aim excludes another", true},
    {"claims_no_effect", SignalKind::kTruth, "", "the agent says that a change does not matter", true},
    {"claims_enough", SignalKind::kTruth, "", "the agent calls the present value good enough", true},
    {"claims_unobservable", SignalKind::kTruth, "", "the agent says that a quantity cannot be measured here", true},
    {"claim_has_number", SignalKind::kTruth, "", "the claim carries a number", true},
    {"claim_configs", SignalKind::kCount, "rows", "rows on which the claim was tested", true},
    {"claim_source", SignalKind::kWord, "", "where a belief comes from: measured, read or recalled", false},
    {"limit_age_edits", SignalKind::kCount, "edits", "edits since the limit was first stated", true},
    {"limit_tries", SignalKind::kCount, "strategies", "strategies tried against the limit", true},
    {"constraint_added", SignalKind::kTruth, "", "the agent relies on a constraint that the task does not state", false},
    {"hypotheses_open", SignalKind::kCount, "hypotheses", "hypotheses stated and not settled", false},
    {"prediction_stated", SignalKind::kTruth, "", "the open hypothesis predicts a number", false},
    {"falsifier_stated", SignalKind::kTruth, "", "the open hypothesis names what would refute it", false},
    {"prediction_error", SignalKind::kShare, "share", "relative difference of prediction and measurement", false},
    {"counter_cited", SignalKind::kTruth, "", "the claimed mechanism is tied to a counter or a trace", false},
    {"proxy_moved_metric_not", SignalKind::kTruth, "", "a cited counter improved and the time did not", false},
    {"aba_done", SignalKind::kTruth, "", "the change was taken out again to see the gain go", true},
    {"levels_tested", SignalKind::kCount, "settings", "settings of the changed quantity that were tried", true},
    {"contradiction", SignalKind::kTruth, "", "two figures for one quantity differ by more than three times the noise", true},
    {"candidates_tried", SignalKind::kCount, "versions", "versions compared in the present selection", true},
    {"winner_margin", SignalKind::kShare, "share", "lead of the selected version over the second", true},
    {"outliers_unexplained", SignalKind::kCount, "rows", "rows that contradict the accepted explanation", false},
    {"cause_depth", SignalKind::kCount, "links", "length of the stated chain of causes", false},
}};
// clang-format on

/// The row of a signal, or nullptr where there is none of that name.
constexpr const SignalInfo* find_signal(std::string_view name) {
  for (const auto& signal : kSignalList)
    if (signal.name == name) return &signal;
  return nullptr;
}

}  // namespace ks::signals
