// kill -9 of the parent, the agent or a worker at random moments of a run: the trace stays readable, no record is lost
// or torn, the run goes on with resume, and no process is left behind.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <thread>

#include "base/hash.h"
#include "run/fake_machine.h"
#include "run/run_folder.h"
#include "trace/trace_reader.h"

namespace ks::run {
namespace {

constexpr int kMoments = 45;
constexpr uint64_t kLongestLife_us = 250000;

/// A file of /proc; "" where its process is gone.
std::string text_of(const base::fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY);
  if (fd < 0) return "";
  std::string text(1 << 16, '\0');
  const ssize_t got = ::read(fd, text.data(), text.size());
  ::close(fd);
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return text;
}

/// Processes whose environment carries `mark`, with their command lines.
std::map<pid_t, std::string> marked_processes(const std::string& mark) {
  std::map<pid_t, std::string> result;
  for (const auto& entry : base::fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (text_of(entry.path() / "environ").find(mark) == std::string::npos) continue;
    std::string command = text_of(entry.path() / "cmdline");
    std::replace(command.begin(), command.end(), '\0', ' ');
    if (!command.empty()) result[std::stoi(name)] = command;  // zombies have none
  }
  return result;
}

pid_t start(const std::vector<std::string>& arguments, const std::string& mark) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  std::vector<char*> argv = {const_cast<char*>(KS_RUN_FIXTURE)};
  for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  ::putenv(const_cast<char*>(mark.c_str()));
  const int null = ::open("/dev/null", O_WRONLY);
  ::dup2(null, 1);
  ::execv(KS_RUN_FIXTURE, argv.data());
  ::_exit(127);
}

/// What must hold of a run folder after any kill. Returns the number of evaluations.
int check_run(const base::fs::path& folder, std::set<int>& seen_records) {
  const RunPaths paths{folder};
  trace::Counters counters;
  const auto events = trace::read_trace(paths.trace(), &counters);
  for (const auto& [name, count] : counters) EXPECT_EQ(name, "torn_last_line") << count << " lines were damaged";
  std::set<int> numbers;
  int64_t seq = 0;
  for (const auto& event : events) {
    EXPECT_EQ(event.seq, ++seq) << "no event is missing or twice";
    if (event.kind != "evaluation") continue;
    const int number = event.body.at("number");
    EXPECT_TRUE(numbers.insert(number).second) << "evaluation " << number << " is named twice";
    EXPECT_NO_THROW((void)core::read_evaluation(paths.record(number))) << "record " << number;
  }
  for (int i = 1; i <= static_cast<int>(numbers.size()); ++i) EXPECT_TRUE(numbers.count(i)) << "evaluation " << i;
  for (int number : seen_records)
    EXPECT_TRUE(base::fs::exists(paths.record(number))) << "record " << number << " was lost";
  for (const auto& entry : base::fs::directory_iterator(paths.evaluations())) {
    if (entry.path().extension() != ".json") continue;
    const int number = std::stoi(entry.path().stem().string());
    EXPECT_NO_THROW((void)core::read_evaluation(entry.path())) << "a record is whole or absent";
    seen_records.insert(number);
  }
  return static_cast<int>(numbers.size());
}

bool has_ended(const base::fs::path& run) {
  return base::fs::exists(run / "state.json") &&
         base::read_json_file((run / "state.json").string()).at("status") == "ended";
}

TEST(Kill, AtAnyMomentLosesNothingAndTheRunGoesOn) {
  base::TempFolder folder("kill");
  const std::string mark = "KS_KILL_TEST_MARK=" + std::to_string(::getpid());
  const std::string task = write_fake_task(folder.path(), "[budget]\nevaluations = 60\n", "geomean >= 100");
  base::fs::path runs, run;
  int generation = 0;
  base::Random random(20);
  std::set<int> records;
  int kills_of_parent = 0, kills_of_children = 0;
  for (int moment = 0; kills_of_parent < kMoments; ++moment) {
    ASSERT_LT(moment, 4 * kMoments) << "too many processes ended by themselves";
    // A run that came to its end between two kills is followed by a new one.
    if (generation == 0 || has_ended(run)) {
      runs = folder.path() / fmt::format("runs-{}", ++generation);
      run = runs / "fake-1";
      records.clear();
    }
    const bool is_first = !base::fs::exists(run / "trace.jsonl");
    if (is_first) base::fs::remove_all(runs);
    const pid_t parent = start(is_first ? std::vector<std::string>{"run", task, runs.string()}
                                        : std::vector<std::string>{"resume", run.string()},
                               mark);
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(kLongestLife_us)));
    // Every third time a child is hit first, and the run must get over it; then the parent.
    if (moment % 3 == 0)
      for (const auto& [pid, command] : marked_processes(mark))
        if (pid != parent &&
            (command.find(" agent") != std::string::npos || command.find(" worker") != std::string::npos)) {
          ::kill(pid, SIGKILL);
          ++kills_of_children;
          std::this_thread::sleep_for(std::chrono::microseconds(random.below(30000)));
          break;
        }
    ::kill(parent, SIGKILL);
    int status = 0;
    ::waitpid(parent, &status, 0);
    kills_of_parent += WIFSIGNALED(status);
    // Children die with the parent; the kernel needs a moment.
    for (int i = 0; i < 200 && !marked_processes(mark).empty(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_THAT(marked_processes(mark), testing::IsEmpty()) << "moment " << moment;
    if (base::fs::exists(run / "trace.jsonl")) check_run(run, records);
  }
  const pid_t last = start({"resume", run.string()}, mark);
  int status = 0;
  ::waitpid(last, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(check_run(run, records), 60);
  const Json state = base::read_json_file((run / "state.json").string());
  EXPECT_EQ(state.at("status"), "ended");
  EXPECT_EQ(state.at("decision"), "not_met");
  EXPECT_GT(state.at("best").get<double>(), 0.9) << "the search went on where it was";
  EXPECT_FALSE(base::fs::exists(run / "run.sock"));
  fmt::print("{} kills of the parent, {} of children, 60 evaluations\n", kills_of_parent, kills_of_children);
}

}  // namespace
}  // namespace ks::run
