// An optional value as JSON.
#pragma once

#include <optional>

#include "base/json.h"

namespace ks::report {

/// null where there is none.
template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

}  // namespace ks::report
