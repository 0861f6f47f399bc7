// Locks a worker process in, from inside, in two steps. confine() comes before any foreign code is loaded: no network,
// no new processes, no writes to files, no look at other processes, limits on memory. seal() comes when everything is
// loaded: no file can be opened at all. Neither can be undone. Threads are allowed throughout.
//
// A call that only an attack makes (socket, fork, execve, ptrace, …) ends the process with SIGSYS; one that an honest
// library may try (opening a log, setting its affinity) answers EPERM. Each protection is reported: true, or why not.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"

namespace ks::sandbox {

/// How tightly to confine.
struct Confinement {
  uint64_t memory_bytes = 0;            ///< limit on private memory (RLIMIT_DATA); 0: none
  bool device_files = false;            ///< a GPU driver's needs: ioctl, opening device files; no new user namespace
  bool interpreter = false;             ///< the program may read files after seal() too (late imports)
  bool may_execute = false;             ///< execve is let through: for a launcher that becomes the program
  bool want_witness = false;            ///< deadly calls wait for a witness (see Witness) instead of killing at once
  std::vector<std::string> read_paths;  ///< beside the system's libraries: what may be read
};

/// What confine() did.
struct Confined {
  Json protections = Json::object();  ///< name to true, or a sentence why not
  int witness_fd = -1;                ///< if a witness was wanted and can be had: pass it on and close it
};

/// First step; call it while the process has one thread.
Confined confine(const Confinement& confinement);

/// Second step: no file can be opened from here on. Adds to what confine() reported.
Json seal(const Confinement& confinement);

/// The name of a system call on this machine, e.g. "socket".
std::string call_name(int number);

}  // namespace ks::sandbox
