// The worker's side of the protocol (docs/formats/worker.md) for native candidates: one request, one answer, in turn.
#pragma once

#include "base/subprocess.h"

namespace ks::worker {

/// Answers requests until `quit` or the end of the channel.
void serve_worker(base::Channel& channel);

}  // namespace ks::worker
