// Fills attention's inputs by recipe. How it works: every head of every member gets a character (plain, outliers in
// channels, keys of large norm, nearly constant, tiny, huge, dominant keys), and every row is then a pure function of
// the seed, the character and its place. "mixture" draws a character for each head; the hostile recipes give one to
// all.
#pragma once

#include "operators/operator.h"

namespace ks::attention_fwd {

std::vector<op::Recipe> list_recipes(const op::Problem& problem);

void fill_inputs(const op::Problem& problem, const std::string& recipe, uint64_t seed, bool nan_slack,
                 op::Buffers& buffers);

}  // namespace ks::attention_fwd
