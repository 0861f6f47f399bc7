// The single protections that confine() puts together. Each answers true, or a sentence why it cannot be had.
#pragma once

#include "sandbox/sandbox.h"

namespace ks::sandbox {

/// No privileges by executing, no core files, not readable by others; memory, file and descriptor limits.
Json set_no_new_privileges();
Json set_undumpable();
Json limit_resources(const Confinement& confinement);

/// An empty network and a System V IPC space of its own.
Json leave_network(const Confinement& confinement);

/// Root without root's powers.
Json drop_capabilities();

/// Landlock: files can be read under the system's folders and `read_paths`, and written nowhere.
Json restrict_files(const Confinement& confinement);

/// The filter on system calls. `witness_fd` is set where a witness was wanted and can be had.
Json filter_calls(const Confinement& confinement, int& witness_fd);
/// seal()'s filter: no further filters, and no file opened where that can be had.
Json close_filter(const Confinement& confinement);

}  // namespace ks::sandbox
