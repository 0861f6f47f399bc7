#include "evaluator/bound.h"

#include "base/toml.h"

namespace ks::evaluator {

double bound_us(const std::string& device, int threads, const ProblemInfo& problem) {
  const base::TomlFile peaks =
      base::read_toml_file((base::project_root() / "data/devices" / (device + ".toml")).string());
  const Json& rates = peaks.values.at("peak_flops_per_cycle_per_core");
  if (!rates.contains(problem.matrix_dtype))
    throw Error("{}: no rate for {}", peaks.where("peak_flops_per_cycle_per_core"), problem.matrix_dtype);
  const int cores = peaks.values.value("cores", threads);
  const double per_second =
      rates[problem.matrix_dtype].get<double>() * cores * peaks.values.at("peak_clock_ghz").get<double>() * 1e9;
  return problem.flops / per_second * 1e6;
}

}  // namespace ks::evaluator
