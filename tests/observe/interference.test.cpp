// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/observe/interference.hpp>

#include <penstock/observe/verdict.hpp>
#include <penstock/run/engine/workers/thread.hpp>

#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/temp_dir.hpp"
#include "support/thread_facts.hpp"

#include <sched.h>
#include <sys/stat.h>
#include <time.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace ps = penstock;

namespace {

/// A system of files that say what a test wants.
struct made_up_system {
  penstock_test::temp_dir dir;

  void write(const std::string& file, const std::string& text) const {
    const std::filesystem::path path = dir.path() / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  /// A reading at a time of its own.
  [[nodiscard]] ps::interference read(double seconds) const {
    auto now = ps::read_interference({.root = dir.path().string()});
    now.seconds = seconds;
    return now;
  }
  [[nodiscard]] std::string path(const std::string& file) const { return (dir.path() / file).string(); }
};

const ps::finding* named(const std::vector<ps::finding>& all, std::string_view what) {
  for (const auto& one : all)
    if (one.what == what) return &one;
  return nullptr;
}

double own_processor_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// A thread, named like those of runs, that computes on one processor until it is told to end.
struct spinning {
  cpu_set_t where{};
  std::atomic<double> used{0};
  std::atomic<bool> ends{false};
  ps::joined_thread thread{};

  explicit spinning(unsigned processor) {
    CPU_SET(processor, &where);
    thread.start<&spinning::spin>(*this);
  }
  ~spinning() { ends = true; }
  void spin() noexcept {
    (void)::sched_setaffinity(0, sizeof where, &where);
    while (!ends) used = own_processor_time();
  }
};

/// A control group of version 1 or 2 with a hundredth of a processor, which is less than a busy machine
/// leaves to it, or none where they may not be made.
class small_group {
 public:
  small_group() {
    for (const std::string at : {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup"}) {
      folder_ = at + "/penstock-test-" + std::to_string(::getpid());
      if (::mkdir(folder_.c_str(), 0755) != 0) continue;
      const std::string file = folder_ + (at.ends_with("cpu") ? "/cpu.cfs_quota_us" : "/cpu.max");
      if (std::filesystem::exists(file) && std::ofstream(file) << 1000 << std::flush) return;
      ::rmdir(folder_.c_str());
    }
    folder_.clear();
  }
  ~small_group() {
    if (!folder_.empty()) ::rmdir(folder_.c_str());
  }
  [[nodiscard]] bool made() const { return !folder_.empty(); }
  [[nodiscard]] bool enter() const {
    return static_cast<bool>(std::ofstream(folder_ + "/cgroup.procs") << ::getpid() << std::flush);
  }

 private:
  std::string folder_;
};

}  // namespace

TEST_CASE("observe/interference: a quota counts where it is set, with pressure and pages of the group") {
  const made_up_system made;
  // A container: what is mounted begins at its group, whose name is that of the host.
  made.write("proc/self/cgroup", "0::/pods/one/job\n");
  made.write("proc/self/mountinfo",
             "30 20 0:26 / / rw - ext4 /dev/vda rw\n"
             "31 30 0:27 /pods/one /sys/fs/cgroup ro,nosuid shared:9 - cgroup2 cgroup rw,nsdelegate\n");
  const std::string top = "sys/fs/cgroup/", own = top + "job/";
  made.write(own + "cpu.max", "max 100000\n");
  made.write(own + "cpu.stat", "usage_usec 5\nnr_throttled 0\nthrottled_usec 0\n");
  made.write(top + "cpu.max", "150000 100000\n");
  made.write(top + "cpu.stat", "usage_usec 1000000\nnr_periods 10\nnr_throttled 1\nthrottled_usec 250000\n");
  made.write(own + "memory.pressure", "some avg10=0.00 total=100\nfull avg10=0.00 total=7\n");
  made.write("proc/pressure/memory", "some avg10=0.00 total=900\n");
  made.write("proc/pressure/io", "some avg10=0.00 total=0\n");
  made.write(own + "memory.stat", "anon 1\nworkingset_refault_anon 9\nworkingset_refault_file 1000\n");
  made.write("proc/self/io", "rchar: 9\nread_bytes: 4096\n");
  made.write("proc/self/status", "Name:\tx\nCpus_allowed:\tf\nCpus_allowed_list:\t0,2-4\n");
  const auto before = made.read(100);
  CHECK(before.quota.value == 1.5);
  CHECK(before.quota.file == made.path("sys/fs/cgroup/cpu.max"));
  CHECK(before.processors.value == 4);
  CHECK(before.memory_pressure.value == Approx(1e-4));
  CHECK(before.refaults.value == Approx(1000.0 * static_cast<double>(::sysconf(_SC_PAGESIZE))));
  CHECK_FALSE(before.cpu_pressure.known());
  CHECK_FALSE(before.busy.known());
  CHECK_FALSE(before.nodes.known());

  made.write(top + "cpu.stat",
             "usage_usec 7000000\nnr_periods 90\nnr_throttled 71\nthrottled_usec 4250000\n");
  made.write(own + "memory.pressure", "some avg10=9.00 total=3000100\nfull avg10=0.00 total=7\n");
  made.write("proc/pressure/io", "some avg10=0.00 total=499000\n");  // 4.99 % of the time is not mentioned
  made.write(own + "memory.stat", "workingset_refault_file 21000\n");
  made.write("proc/self/io", "read_bytes: " + std::to_string(4096 + 40000 * ::sysconf(_SC_PAGESIZE)) + "\n");
  const auto found = ps::findings(before, made.read(110), 8);
  REQUIRE(found.size() == 3);
  CHECK(found[0].what == "page cache");
  CHECK(found[0].share == 0.5);
  CHECK(found[0].file == made.path(own + "memory.stat"));
  CHECK(found[1].sentence ==
        "the cgroup's CPU quota stopped this process for 40% of the time that it had work, at 1.5 "
        "processors; 8 "
        "workers and the loop have 1.5 processors");
  CHECK(found[1].file == made.path(top + "cpu.stat"));
  CHECK(found[2].share == Approx(0.3));
  CHECK_THAT(found[2].sentence, penstock_test::contains("of this cgroup waited for memory for 30%"));
  CHECK(ps::findings(made.read(110), before).empty());  // the wrong way round

  // The verdict begins with the first of them where the loop waits.
  ps::run_counters counters;
  counters.workers = 2, counters.seconds = 10, counters.batches = 9, counters.stall_seconds = 4;
  counters.worker_busy_seconds = 19;
  counters.stages = {{"files", 90, 1.0}, {"decode<jpeg>", 90, 8.0}};
  const auto why = ps::judge(counters, {}, {found[1]});
  CHECK(why.limit == ps::bottleneck::cpu);
  CHECK_THAT(why.advice,
             penstock_test::contains("the loop have 1.5 processors (" + found[1].file + "); most of"));
  CHECK_THAT(
      ps::report(counters, {}, found),
      penstock_test::contains("\nmemory: " + found[2].sentence + " (" + found[2].file + ")\nstall 40.0%"));
  counters.stall_seconds = 0;
  CHECK(ps::judge(counters, {}, found).advice == ps::judge(counters).advice);
}

TEST_CASE("observe/interference: a group of version 1, processors that others use, and nodes of memory") {
  const made_up_system made;
  made.write("proc/self/cgroup", "4:memory:/a\n1:cpu,cpuacct:/batch\n0::/\n");
  made.write("proc/self/mountinfo",
             "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
             "33 31 0:39 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n");
  const std::string group = "sys/fs/cgroup/cpu/batch/";
  made.write(group + "cpu.cfs_quota_us", "-1\n");
  made.write(group + "cpu.cfs_period_us", "100000\n");
  made.write(group + "cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n");
  made.write("proc/self/stat", "7 (a ) b) S 1 2 3 4 5 6 7 8 9 0 100 50 0 0 20 0 2\n");
  made.write("proc/self/status", "Cpus_allowed_list:\t1-2\nMems_allowed_list:\t0\n");
  made.write("proc/stat", "cpu  9 9\ncpu0 0 0 0 0 0 0 0 0\ncpu1 100 0 0 0 0 0 0 0\ncpu12 7 7 7 7\n");
  made.write("proc/vmstat", "pgpgin 100\nworkingset_refault_file 0\n");
  made.write("proc/self/task/7/schedstat", "1000000000 500000000 3\n");
  made.write("proc/self/task/7/comm", "python\n");
  const auto before = made.read(0);
  CHECK_FALSE(before.quota.known());
  CHECK(before.throttled.file == made.path(group + "cpu.stat"));
  CHECK(before.major_faults.value == 9);

  const auto ticks = std::to_string(5 * ::sysconf(_SC_CLK_TCK) + 100);
  made.write("proc/stat",
             "cpu1 " + ticks + " 0 0 0 0 0 0 " + std::to_string(2 * ::sysconf(_SC_CLK_TCK)) + " 0 0\n");
  made.write(group + "cpu.stat", "nr_throttled 1\nthrottled_time 1\n");
  made.write("proc/vmstat", "pgpgin 200000\nworkingset_refault_file 100\n");  // little
  made.write("proc/self/task/7/schedstat", "2000000000 2500000000 3\n");
  made.write("proc/self/task/8/schedstat", "1000000000 1000000000 3\n");
  made.write("proc/self/task/8/comm", "penstock\n");
  for (const std::string node : {"0", "1"}) {
    const std::string place = "sys/devices/system/node/node" + node;
    made.write(place + "/cpulist", node == "0" ? "0-1\n" : "2-3\n");
    made.write(place + "/numastat", "numa_hit 9\nlocal_node 300\nother_node 100\n");
  }
  made.write("sys/devices/system/node/has_cpu", "0-1\n");
  const auto found = ps::findings(before, made.read(10), 1);
  REQUIRE(found.size() == 3);
  CHECK(found[0].what == "processors");
  CHECK(found[0].share == Approx(0.6));
  CHECK(
      found[0].sentence ==
      "threads of this process waited for a processor for 60% of the time that they had work: of 2, workers "
      "used 0.1, other threads of this process 0.1, other processes 0.3");
  CHECK(found[0].file == made.path("proc/self/task/*/schedstat"));
  CHECK(found[1].what == "NUMA");  // a processor of node 1, whose memory is not allowed
  CHECK(found[1].share == 0.5);
  CHECK(found[2].what == "hypervisor");
  CHECK(found[2].share == Approx(0.1));
  const auto second = made.read(20);
  made.write("sys/devices/system/node/node1/numastat", "local_node 400\nother_node 400\n");
  const auto far = ps::findings(second, made.read(30));
  CHECK_THAT(named(far, "NUMA")->sentence, penstock_test::contains("75% of the pages are on another node"));
}

TEST_CASE("observe/interference: what is not known, or damaged, is not an error") {
  const made_up_system made;
  auto now = made.read(1);
  CHECK_FALSE(now.throttled.known());
  CHECK_FALSE(now.processors.known());
  CHECK(now.threads.empty());
  CHECK(ps::findings(now, made.read(2), 64).empty());
  made.write("proc/self/cgroup", "::\n0::\n0:\n\n");
  made.write("proc/self/mountinfo", "- - -\n1 2 3 / /x - cgroup2\n1 2 3 / /x rw - cgroup2 a b\n");
  made.write("proc/self/stat", "7");
  made.write("proc/self/status", "Cpus_allowed_list:\t5-1,,x\n");
  made.write("proc/stat", "cpu0");
  made.write("proc/self/task/7/schedstat", "?");
  made.write("proc/pressure/memory", "total=");
  now = made.read(3);
  CHECK(now.processors.value == 0);
  CHECK(ps::findings(now, made.read(4), 64).empty());
  CHECK(ps::findings(ps::read_interference(), now).empty());

  // A group is below the mount's, is that itself, or is one of another name that only begins alike.
  made.write("x/cpu.max", "150000 100000\n");
  for (const char* const group : {"/a/b", "/a", "/ab", "/../a", "a"}) {
    made.write("proc/self/cgroup", std::string("0::") + group + "\n");
    made.write("proc/self/mountinfo", "- cgroup2 a b\n31 30 0:27 /a /x ro - cgroup2 cgroup rw\n");
    CHECK(made.read(5).quota.value == 1.5);
  }
}

TEST_CASE("observe/interference: two threads that share one processor wait for it") {
  const unsigned one = penstock_test::last_of(penstock_test::thread_facts().processors);
  spinning first(one), second(one);
  const auto both = [&](double seconds) {
    while (first.used < seconds || second.used < seconds) std::this_thread::yield();
  };
  both(0.01);
  const auto before = ps::read_interference();
  if (before.threads_file.empty()) {
    WARN("this system does not tell how long threads wait for processors");
    return;
  }
  both(0.11);
  const auto found = ps::findings(before, ps::read_interference());
  const auto* shared = named(found, "processors");
  REQUIRE(shared != nullptr);
  CHECK(shared->share > 0.25);  // a half, or more if others use it, too
  int of_loader = 0;
  for (const auto& thread : before.threads) of_loader += thread.of_loader ? 1 : 0;
  CHECK(of_loader == 2);
}

TEST_CASE("observe/interference: a real quota is named") {
  const small_group group;
  if (!group.made()) {
    WARN("this process may not make a control group with a quota");
    return;
  }
  const int code = penstock_test::in_child([&] {
    if (!group.enter()) return 1;
    const auto before = ps::read_interference();
    if (!before.throttled.known() || before.quota.value != 0.01) return 2;
    const double begin = own_processor_time();
    while (own_processor_time() < begin + 0.005) {
    }
    const auto found = ps::findings(before, ps::read_interference());
    const auto* quota = named(found, "quota");
    return quota != nullptr && quota->share > 0.4 ? 0 : 3;  // nearly all
  });
  CHECK(code == 0);
}
