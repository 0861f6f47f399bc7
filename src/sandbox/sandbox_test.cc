// Each thing that is forbidden is tried in a child process that has been confined, and must end as said.
#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>

#include "base/file.h"
#include "base/subprocess.h"
#include "sandbox/elf_file.h"
#include "sandbox/seal_process.h"
#include "sandbox/witness.h"

namespace ks::sandbox {
namespace {

constexpr int kDenied = 42;   // the call was refused with EPERM
constexpr int kAllowed = 43;  // it succeeded
constexpr int kOther = 44;    // it failed in another way

/// Runs `body` in a child that is confined (and sealed); returns waitpid's status.
int in_child(const std::function<int()>& body, bool sealed = true, Confinement confinement = {}) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    const auto confined = confine(confinement);
    if (confined.protections.at("call_filter") != true) ::_exit(kOther);
    if (sealed && !seal(confinement).contains("no_files")) ::_exit(kOther);
    ::_exit(body());
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status;
}

/// What a system call came to, as an exit code.
int outcome(long result) {
  if (result >= 0) return kAllowed;
  return errno == EPERM || errno == EACCES ? kDenied : kOther;
}

bool is_killed(int status) {
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS;
}
int code(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/// What confine() and seal() report, from a child.
Json report_of_child() {
  int ends[2];
  if (::pipe(ends) != 0) return nullptr;
  const pid_t pid = ::fork();
  if (pid == 0) {
    Json report = confine({}).protections;
    report.update(seal({}));
    const std::string text = report.dump();
    ::_exit(::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  std::string text(65536, ' ');
  const ssize_t got = ::read(ends[0], text.data(), text.size());
  ::close(ends[0]);
  ::waitpid(pid, nullptr, 0);
  return base::parse_json(text.substr(0, static_cast<size_t>(std::max<ssize_t>(got, 0))), "report");
}

struct Attempt {
  const char* name;
  std::function<int()> body;
};

TEST(Sandbox, KillsWhatOnlyAnAttackDoes) {
  const Attempt attempts[] = {
      {"socket", [] { return outcome(::socket(AF_INET, SOCK_STREAM, 0)); }},
      {"unix socket", [] { return outcome(::socket(AF_UNIX, SOCK_STREAM, 0)); }},
      {"fork", [] { return outcome(::syscall(SYS_fork)); }},
      {"vfork", [] { return outcome(::syscall(SYS_vfork)); }},
      {"clone a process", [] { return outcome(::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)); }},
      {"library fork", [] { return outcome(::fork()); }},
      {"execve", [] { return outcome(::execl("/bin/true", "true", nullptr)); }},
      {"ptrace", [] { return outcome(::ptrace(PTRACE_ATTACH, ::getppid(), nullptr, nullptr)); }},
      {"process_vm_readv",
       [] { return outcome(::syscall(SYS_process_vm_readv, ::getppid(), nullptr, 0, nullptr, 0, 0)); }},
      {"pidfd_open", [] { return outcome(::syscall(SYS_pidfd_open, ::getppid(), 0)); }},
      {"signal the parent", [] { return outcome(::kill(::getppid(), 0)); }},
      {"signal a group", [] { return outcome(::kill(0, 0)); }},
      {"tgkill another", [] { return outcome(::syscall(SYS_tgkill, ::getppid(), ::getppid(), 0)); }},
      {"memfd_create", [] { return outcome(::memfd_create("x", 0)); }},
      {"shmget", [] { return outcome(::shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600)); }},
      {"io_uring", [] { return outcome(::syscall(SYS_io_uring_setup, 1, nullptr)); }},
      {"bpf", [] { return outcome(::syscall(SYS_bpf, 0, nullptr, 0)); }},
      {"perf_event_open", [] { return outcome(::syscall(SYS_perf_event_open, nullptr, 0, 0, 0, 0)); }},
      {"userfaultfd", [] { return outcome(::syscall(SYS_userfaultfd, 0)); }},
      {"mount", [] { return outcome(::syscall(SYS_mount, "x", "/", "tmpfs", 0, nullptr)); }},
      {"unshare", [] { return outcome(::unshare(CLONE_NEWUSER)); }},
      {"seccomp", [] { return outcome(::syscall(SYS_seccomp, 1, 0, nullptr)); }},
      {"setuid", [] { return outcome(::setuid(1)); }},
  };
  for (const auto& attempt : attempts) {
    const int status = in_child(attempt.body);
    EXPECT_TRUE(is_killed(status)) << attempt.name << ": " << base::describe_exit(status);
  }
}

TEST(Sandbox, DeniesWithoutKillingWhatAnHonestLibraryMayTry) {
  const base::TempFolder folder;
  const std::string path = (folder.path() / "file").string();
  base::write_file_atomically(path, "x");
  const Attempt attempts[] = {
      {"open to write", [&] { return outcome(::open(path.c_str(), O_WRONLY)); }},
      {"create", [&] { return outcome(::open((path + "2").c_str(), O_CREAT | O_RDWR, 0600)); }},
      {"creat", [&] { return outcome(::creat((path + "2").c_str(), 0600)); }},
      {"openat2",
       [&] {
         uint64_t how[3] = {O_RDONLY, 0, 0};
         return outcome(::syscall(SYS_openat2, AT_FDCWD, path.c_str(), how, sizeof how));
       }},
      {"open to read", [&] { return outcome(::open(path.c_str(), O_RDONLY)); }},
      {"open a system file", [] { return outcome(::open("/usr/lib/os-release", O_RDONLY)); }},
      {"unlink", [&] { return outcome(::unlink(path.c_str())); }},
      {"rename", [&] { return outcome(::rename(path.c_str(), (path + "2").c_str())); }},
      {"mkdir", [&] { return outcome(::mkdir((path + "d").c_str(), 0700)); }},
      {"truncate", [&] { return outcome(::truncate(path.c_str(), 0)); }},
      {"chmod", [&] { return outcome(::chmod(path.c_str(), 0777)); }},
      {"shm_open", [] { return outcome(::shm_open("/kernelseek-test", O_CREAT | O_RDWR, 0600)); }},
      {"raise a limit",
       [] {
         const rlimit limit{RLIM_INFINITY, RLIM_INFINITY};
         return outcome(::setrlimit(RLIMIT_CORE, &limit));
       }},
      {"priority", [] { return outcome(::setpriority(PRIO_PROCESS, 0, -5)); }},
      {"scheduler",
       [] {
         sched_param parameter{1};
         return outcome(::sched_setscheduler(0, SCHED_FIFO, &parameter));
       }},
      {"affinity",
       [] {
         cpu_set_t set;
         CPU_ZERO(&set);
         CPU_SET(0, &set);
         return outcome(::sched_setaffinity(0, sizeof set, &set));
       }},
      {"own group", [] { return outcome(::setpgid(0, 0)); }},
      {"own session", [] { return outcome(::setsid()); }},
      {"dumpable again", [] { return outcome(::prctl(PR_SET_DUMPABLE, 1)); }},
      {"no death signal", [] { return outcome(::prctl(PR_SET_PDEATHSIG, 0)); }},
      {"timer",
       [] {
         itimerval none{};
         return outcome(::setitimer(ITIMER_REAL, &none, nullptr));
       }},
  };
  for (const auto& attempt : attempts) EXPECT_EQ(code(in_child(attempt.body)), kDenied) << attempt.name;
  EXPECT_EQ(base::read_file(path), "x");
}

TEST(Sandbox, LetsTheLoaderReadTheSystemsLibrariesButNotTheMemoryOfOthersBeforeItIsSealed) {
  if (const Json rules = report_of_child()["file_rules"]; rules != true) GTEST_SKIP() << rules;
  EXPECT_EQ(code(in_child([] { return outcome(::open("/usr/lib/os-release", O_RDONLY)); }, false)), kAllowed);
  const std::string memory = fmt::format("/proc/{}/mem", ::getpid());
  EXPECT_EQ(code(in_child([&] { return outcome(::open(memory.c_str(), O_RDONLY)); }, false)), kDenied);
  EXPECT_EQ(code(in_child([] { return outcome(::open("/etc/hostname", O_RDONLY)); }, false)), kDenied);
}

TEST(Sandbox, AllowsThreads) {
  const auto body = [] {
    std::atomic<int> sum{0};
    std::vector<std::thread> threads;
    for (int i = 1; i <= 4; ++i) threads.emplace_back([&sum, i] { sum += i; });
    for (auto& thread : threads) thread.join();
    return sum == 10 ? kAllowed : kOther;
  };
  EXPECT_EQ(code(in_child(body)), kAllowed);
}

TEST(Sandbox, BindsThreadsThatWereThereBefore) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    std::atomic<bool> go{false};
    std::thread early([&] {
      while (!go) ::sched_yield();
      ::socket(AF_INET, SOCK_STREAM, 0);
      ::_exit(kAllowed);
    });
    confine({});
    go = true;
    early.join();
    ::_exit(kOther);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_TRUE(is_killed(status)) << base::describe_exit(status);
}

TEST(Sandbox, AbortStillEndsTheProcessAsAnAbort) {
  const int status = in_child([]() -> int { std::abort(); });
  EXPECT_EQ(WTERMSIG(status), SIGABRT);
}

TEST(Sandbox, LimitsPrivateMemory) {
  Confinement confinement;
  confinement.memory_bytes = 512u << 20;
  const auto body = [] {
    void* data = ::mmap(nullptr, 2ull << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return data == MAP_FAILED && errno == ENOMEM ? kDenied : kAllowed;
  };
#if !defined(__SANITIZE_ADDRESS__)
  EXPECT_EQ(code(in_child(body, true, confinement)), kDenied);
#endif
  EXPECT_EQ(code(in_child(body)), kAllowed);
}

TEST(Sandbox, AnInterpreterReadsFilesAndWritesNone) {
  const base::TempFolder folder;
  const std::string path = (folder.path() / "file").string();
  base::write_file_atomically(path, "x");
  Confinement confinement;
  confinement.interpreter = true;
  confinement.read_paths = {folder.path().string()};
  EXPECT_EQ(code(in_child([&] { return outcome(::open(path.c_str(), O_RDONLY)); }, true, confinement)), kAllowed);
  EXPECT_EQ(code(in_child([&] { return outcome(::open(path.c_str(), O_RDWR)); }, true, confinement)), kDenied);
  EXPECT_TRUE(is_killed(in_child([] { return outcome(::socket(AF_INET, SOCK_STREAM, 0)); }, true, confinement)));
}

TEST(Sandbox, ReportsEachProtection) {
  const Json report = report_of_child();
  for (const char* name : {"no_network", "no_new_privileges", "file_rules", "limits", "no_capabilities",
                           "unreadable_by_others", "call_filter", "no_files"}) {
    ASSERT_TRUE(report.contains(name)) << name;
    EXPECT_TRUE(report[name] == true || (report[name].is_string() && report[name].get<std::string>().size() > 10))
        << name;
  }
  EXPECT_EQ(report["call_filter"], true);
  EXPECT_EQ(report["no_files"], true);
}

#if defined(__x86_64__)
TEST(Sandbox, KillsCallsByTheOldDoor) {
  const auto body = [] {
    long result = 20;  // getpid of the 32-bit table: harmless, but not ours to filter
    asm volatile("int $0x80" : "+a"(result)::"memory");
    return kAllowed;
  };
  EXPECT_TRUE(is_killed(in_child(body)));
}
#endif

TEST(Witness, NamesTheCallAndEndsTheProcess) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(ends[1], 3);
    base::Channel channel(3);
    Confinement confinement;
    confinement.want_witness = true;
    const auto confined = confine(confinement);
    if (confined.witness_fd < 0) ::_exit(kOther);
    channel.send({{"ok", true}}, {confined.witness_fd});
    ::close(confined.witness_fd);
    channel.receive(10);
    seal(confinement);
    ::socket(AF_INET, SOCK_STREAM, 0);
    ::_exit(kAllowed);
  }
  ::close(ends[1]);
  base::Channel channel(ends[0]);
  const auto message = channel.receive(10);
  ASSERT_TRUE(message.has_value());
  ASSERT_EQ(message->fds.size(), 1u);
  const Witness witness(message->fds[0], pid);
  EXPECT_EQ(witness.violation(), "");
  channel.send({{"go", true}});
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << base::describe_exit(status);
  EXPECT_EQ(witness.violation(), "socket");
}

/// Runs a Python program with the sealing library at hand; `confined` starts it through kernelseek-confine.
base::ProcessResult run_python(const std::string& program, bool confined) {
  const auto bin = base::executable_folder();
  base::SpawnOptions options;
  if (confined) options.argv.push_back((bin / "kernelseek-confine").string());
  for (const char* word : {"python3", "-c", program.c_str()}) options.argv.push_back(word);
  options.env = {{"KERNELSEEK_SEAL_LIBRARY", (bin.parent_path() / "lib/libks_seal.so").string()},
                 {kReadPathsVariable, (bin.parent_path() / "lib").string()}};
  options.timeout_s = 60;
  return base::run_process(options);
}

constexpr const char* kSealFromPython =
    "import ctypes, os, socket, sys\n"
    "library = ctypes.CDLL(os.environ['KERNELSEEK_SEAL_LIBRARY'])\n"
    "answer = ctypes.create_string_buffer(4096)\n"
    "assert library.ks_seal_process(answer, len(answer)) == 0\n"
    "print(answer.value.decode(), flush=True)\n";

/// Why Python cannot load the library here, "" if it can.
std::string why_no_python() {
#if defined(__SANITIZE_ADDRESS__)
  return "a library with AddressSanitizer cannot be loaded into a program without it";
#else
  base::SpawnOptions options;
  options.argv = {"sh", "-c", "command -v python3"};
  return base::run_process(options).ok() ? "" : "no python3 here";
#endif
}

TEST(SealLibrary, SealsAPythonProgramFromInsideOrFromItsStart) {
  if (const auto why = why_no_python(); !why.empty()) GTEST_SKIP() << why;
  for (const bool confined : {false, true}) {
    const auto result =
        run_python(std::string(kSealFromPython) +
                       "try:\n  open('/tmp/kernelseek-sandbox-test', 'w')\nexcept PermissionError:\n  print('denied')\n"
                       "import colorsys\nprint('still imports', flush=True)\n",
                   confined);
    EXPECT_TRUE(result.ok()) << confined << result.out << result.err;
    EXPECT_NE(result.out.find("\"call_filter\":true"), std::string::npos) << result.out;
    EXPECT_NE(result.out.find("\"unreadable_by_others\":true"), std::string::npos) << result.out;
    EXPECT_NE(result.out.find("denied\nstill imports"), std::string::npos) << result.out;
  }
}

TEST(SealLibrary, ASealedPythonProgramEndsAtASocketOrAProcess) {
  if (const auto why = why_no_python(); !why.empty()) GTEST_SKIP() << why;
  for (const bool confined : {false, true}) {
    EXPECT_EQ(run_python(std::string(kSealFromPython) + "socket.socket()\n", confined).signal, SIGSYS);
    EXPECT_EQ(run_python(std::string(kSealFromPython) + "os.fork()\n", confined).signal, SIGSYS);
  }
  // kernelseek-confine needs no help from the program.
  EXPECT_EQ(run_python("import socket; socket.socket()", true).signal, SIGSYS);
}

TEST(Sandbox, NamesCalls) {
  EXPECT_EQ(call_name(SYS_socket), "socket");
}

TEST(ElfFile, ReadsThisVeryProgram) {
  ElfFile file;
  read_elf("/proc/self/exe", file);
  EXPECT_FALSE(file.executable_stack);
  EXPECT_FALSE(file.needed.empty());
  EXPECT_FALSE(file.dynamic_symbols.empty());
}

TEST(ElfFile, SaysWhatIsWrongWithAFileThatIsCutOff) {
  const base::TempFolder folder;
  const auto path = folder.path() / "cut";
  base::write_file_atomically(path, base::read_file("/proc/self/exe").substr(0, 2000));
  ElfFile file;
  EXPECT_THROW(read_elf(path.string(), file), Error);
  base::write_file_atomically(path, "#!/bin/sh\n");
  EXPECT_THROW(read_elf(path.string(), file), Error);
}

}  // namespace
}  // namespace ks::sandbox
