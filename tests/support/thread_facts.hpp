// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/processor_set.hpp>

#include <linux/capability.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <mutex>
#include <string>
#include <vector>

namespace penstock_test {

/// What Linux says about the calling thread.
struct thread_facts {
  pid_t id = static_cast<pid_t>(::syscall(SYS_gettid));
  int nice = ::getpriority(PRIO_PROCESS, static_cast<id_t>(id));
  unsigned processor = static_cast<unsigned>(::sched_getcpu());
  penstock::processor_set processors = allowed();

  static penstock::processor_set allowed() {
    penstock::processor_set all;
    cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(0, sizeof set, &set) == 0)
      for (unsigned i = 0; i < penstock::processor_set::max_processors; ++i)
        if (CPU_ISSET(i, &set)) all.add(i);
    return all;
  }
};

/// Whether a thread of this process waits for something, as Linux says.
[[nodiscard]] inline bool is_asleep(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t name_ends = line.rfind(')');
  return name_ends != std::string::npos && line.substr(name_ends).starts_with(") S");
}

/// Facts about threads, collected by several of them.
class thread_notes {
 public:
  void look() {
    const thread_facts now;
    const std::scoped_lock lock(busy_);
    all_.push_back(now);
  }
  [[nodiscard]] std::vector<thread_facts> all() const {
    const std::scoped_lock lock(busy_);
    return all_;
  }

 private:
  mutable std::mutex busy_;
  std::vector<thread_facts> all_;
};

/// The last of some processors.
[[nodiscard]] inline unsigned last_of(const penstock::processor_set& all) {
  unsigned last = 0;
  for (unsigned i = 0; i < penstock::processor_set::max_processors; ++i)
    if (all.contains(i)) last = i;
  return last;
}
/// A processor that this thread may not use, and neither may the process's main thread, which started it.
[[nodiscard]] inline unsigned missing_of(const penstock::processor_set& all) {
  for (unsigned i = penstock::processor_set::max_processors; i > 0; --i)
    if (!all.contains(i - 1)) return i - 1;
  return 0;
}

/// Takes from the calling thread, for good, the permission to lower its nice again. (A limit that allows it
/// to all threads goes too.)
inline void drop_permissions() {
  const rlimit none{0, 0};
  (void)::setrlimit(RLIMIT_NICE, &none);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct nothing[2]{};
  (void)::syscall(SYS_capset, &header, nothing);  // of this thread only
}

}  // namespace penstock_test
