// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/observe/interference.hpp>

#include <penstock/core/message.hpp>

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace penstock::inline v0_1 {

namespace detail {

/// The files of the system. Those of a kernel are read in pieces, because they do not tell their sizes.
class system_files {
 public:
  explicit system_files(std::string root) : root_(std::move(root)) {
    while (root_.ends_with('/')) root_.pop_back();
  }

  [[nodiscard]] std::string path(std::string_view file) const { return root_ + std::string(file); }
  /// Empty if the file cannot be read.
  [[nodiscard]] std::string text(std::string_view file) const {
    std::string all;
    if (std::FILE* const in = std::fopen(path(file).c_str(), "re")) {
      char piece[4096];
      while (const std::size_t got = std::fread(piece, 1, sizeof piece, in)) all.append(piece, got);
      std::fclose(in);
    }
    return all;
  }
  [[nodiscard]] std::vector<std::string> names_in(std::string_view folder) const {
    std::vector<std::string> names;
    if (DIR* const at = ::opendir(path(folder).c_str())) {
      while (const dirent* const entry = ::readdir(at))
        if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
      ::closedir(at);
    }
    return names;
  }

 private:
  std::string root_;
};

/// Where the number behind a word begins, as in "nr_throttled 5" and "total=8395129"; null if nowhere.
inline const char* behind_word(const std::string& text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if (end < text.size() && std::string_view(" =:\t").find(text[end]) != std::string_view::npos &&
        (at == 0 || text[at - 1] == '\n' || text[at - 1] == ' '))
      return text.c_str() + end + 1;
  }
  return nullptr;
}

/// Which numbers below 1024, the limit of `processor_set`, are in a line such as "0-3,8": a 1 for each.
inline std::string listed_numbers(const char* list) {
  std::string has(1024, '\0');
  while (list != nullptr && *list != '\0' && *list != '\n') {
    char* end = nullptr;
    unsigned long first = std::strtoul(list, &end, 10), last = first;
    if (end == list) break;
    if (*end == '-') last = std::strtoul(list = end + 1, &end, 10);
    for (; first <= last && first < has.size(); ++first) has[first] = 1;
    list = *end == ',' ? end + 1 : end;
  }
  return has;
}

inline std::vector<std::string_view> words_of_line(std::string_view line, char between) {
  std::vector<std::string_view> words;
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find(between, begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

/// The folders of this process's control group and of those that it is in, its own first, as far as they can
/// be seen. `controller`: that of version 1; empty for version 2.
inline std::vector<std::string> cgroup_folders(const system_files& files, std::string_view controller) {
  const auto has = [&](std::string_view list) {
    const auto all = words_of_line(list, ',');
    return std::find(all.begin(), all.end(), controller) != all.end();
  };
  const std::string groups = files.text("/proc/self/cgroup"), mounts = files.text("/proc/self/mountinfo");
  std::string group, point;
  for (const std::string_view line : words_of_line(groups, '\n')) {
    const auto words = words_of_line(line, ':');
    if (words.size() >= 3 && (controller.empty() ? words[0] == "0" && words[1].empty() : has(words[1])))
      group = line.substr(words[0].size() + words[1].size() + 2);
  }
  for (const std::string_view line : words_of_line(mounts, '\n')) {
    const auto words = words_of_line(line, ' ');
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (dash - words.begin() < 6 || words.end() - dash < 4) continue;
    if (controller.empty() ? dash[1] != "cgroup2" : !has(dash[3])) continue;
    point = words[4];
    // In a container, the mount may begin at the group, and the group's name be that of the host.
    const std::string_view root = words[3];
    if (group.starts_with(root) && group.substr(root.size()).find('/') == 0)
      group.erase(0, root.size());
    else if (group == root)
      group = "/";
    break;
  }
  std::vector<std::string> folders;
  if (point.empty() || group.empty()) return folders;
  // outside of what this process sees
  if (group.starts_with("/..") || !group.starts_with('/')) group = "/";
  for (; group.size() > 1; group.erase(group.rfind('/'))) folders.push_back(point + group);
  folders.push_back(point);
  return folders;
}

}  // namespace detail

PENSTOCK_INLINE interference read_interference(const interference_options& options) {
  using detail::behind_word;
  const detail::system_files files(options.root);
  interference now;
  now.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  /// A figure of the first of some files that has it.
  const auto figure = [&](const std::string& text, const std::string& file, std::string_view word,
                          double unit) {
    const char* const at = behind_word(text, word);
    return at == nullptr ? system_figure() : system_figure{std::strtod(at, nullptr) * unit, files.path(file)};
  };
  const auto page = static_cast<double>(::sysconf(_SC_PAGESIZE));
  const double tick = 1 / static_cast<double>(::sysconf(_SC_CLK_TCK));

  // This process as a whole: "pid (name) state ppid ...", where the name may hold anything.
  const std::string self = files.text("/proc/self/stat");
  const auto fields = detail::words_of_line(std::string_view(self).substr(self.rfind(')') + 1), ' ');
  const auto field = [&](std::size_t i) {
    return i < fields.size() ? std::strtod(fields[i].data(), nullptr) : 0;
  };
  if (fields.size() > 13) {
    now.major_faults = {field(10), files.path("/proc/self/stat")};
    now.used = {(field(12) + field(13)) * tick, files.path("/proc/self/stat")};
  }

  // The quota may be that of a group further up, and is counted there.
  const auto two = detail::cgroup_folders(files, ""), one = detail::cgroup_folders(files, "cpu");
  for (const std::string& folder : one.empty() ? two : one) {
    const std::string counts = files.text(folder + "/cpu.stat");
    const std::string max = files.text(folder + "/cpu.max");
    double quota = 0, period = 0;
    if (!one.empty()) {
      quota = std::strtod(files.text(folder + "/cpu.cfs_quota_us").c_str(), nullptr);
      period = std::strtod(files.text(folder + "/cpu.cfs_period_us").c_str(), nullptr);
    } else if (std::sscanf(max.c_str(), "%lf %lf", &quota, &period) != 2) {
      quota = 0;  // "max 100000"
    }
    const bool limits = quota > 0 && period > 0 && (!now.quota.known() || quota / period < now.quota.value);
    if (limits)
      now.quota = {quota / period, files.path(folder + (one.empty() ? "/cpu.max" : "/cpu.cfs_quota_us"))};
    if (!limits && now.throttled.known()) continue;
    now.throttled = one.empty() ? figure(counts, folder + "/cpu.stat", "throttled_usec", 1e-6)
                                : figure(counts, folder + "/cpu.stat", "throttled_time", 1e-9);
    if (const auto used = figure(counts, folder + "/cpu.stat", "usage_usec", 1e-6);
        used.known() && one.empty())
      now.used = used;
  }

  // The processors that this process may use.
  const std::string status = files.text("/proc/self/status"), stat = files.text("/proc/stat");
  if (const char* const list = behind_word(status, "Cpus_allowed_list")) {
    const auto allowed = detail::listed_numbers(list);
    const auto memory = detail::listed_numbers(behind_word(status, "Mems_allowed_list"));
    now.processors = {0, files.path("/proc/self/status")};
    system_figure busy{0, files.path("/proc/stat")}, stolen = busy;
    for (std::size_t i = 0; i < allowed.size(); ++i) {
      if (allowed[i] == 0) continue;
      ++now.processors.value;
      const char* at = behind_word(stat, detail::text({"cpu", i}));
      if (at == nullptr) continue;
      double ticks[8] = {};  // user, nice, system, idle, iowait, irq, softirq, steal
      for (double& each : ticks) {
        char* end = nullptr;
        each = std::strtod(at, &end);
        at = end;
      }
      busy.value += (ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6]) * tick;
      stolen.value += ticks[7] * tick;
    }
    if (!stat.empty()) now.busy = std::move(busy), now.stolen = std::move(stolen);

    // Nodes of memory, where there are several.
    const std::string nodes = "/sys/devices/system/node";
    double near = 0, far = 0, away = 0, count = 0;
    for (const std::string& name : files.names_in(nodes)) {
      if (!name.starts_with("node") || name.size() == 4) continue;
      ++count;
      const std::string place = nodes + "/" + name, pages = files.text(place + "/numastat");
      near += figure(pages, place, "local_node", 1).value;
      far += figure(pages, place, "other_node", 1).value;
      const unsigned long number = std::strtoul(name.c_str() + 4, nullptr, 10);
      const std::string here = files.text(place + "/cpulist");
      const auto cores = detail::listed_numbers(here.c_str());
      for (std::size_t i = 0; i < cores.size(); ++i)
        if (cores[i] != 0 && allowed[i] != 0 && number < memory.size() && memory[number] == 0) ++away;
    }
    if (count > 1) {
      const std::string file = files.path(nodes + "/node*/numastat");
      now.nodes = {count, file}, now.near_pages = {near, file}, now.far_pages = {far, file};
      now.far_processors = {away, files.path("/proc/self/status")};
    }
  }

  // Pressure, and what went through the page cache: of the group where it tells, else of the machine.
  const std::string group = two.empty() ? "" : two.front();
  const std::pair<const char*, system_figure*> pressures[] = {
      {"cpu", &now.cpu_pressure}, {"io", &now.io_pressure}, {"memory", &now.memory_pressure}};
  for (const auto& [what, into] : pressures)  // "some avg10=... total=...", in microseconds
    for (const std::string& file : {group + "/" + what + ".pressure", std::string("/proc/pressure/") + what})
      if (!into->known()) *into = figure(files.text(file), file, "total", 1e-6);
  const std::string vm = files.text("/proc/vmstat");
  if (!group.empty())
    now.refaults =
        figure(files.text(group + "/memory.stat"), group + "/memory.stat", "workingset_refault_file", page);
  if (now.refaults.known()) {
    now.read = figure(files.text("/proc/self/io"), "/proc/self/io", "read_bytes", 1);
  } else {
    now.refaults = figure(vm, "/proc/vmstat", "workingset_refault_file", page);
    now.read = figure(vm, "/proc/vmstat", "pgpgin", 1024);
  }

  for (const std::string& id : files.names_in("/proc/self/task")) {
    const std::string place = "/proc/self/task/" + id, times = files.text(place + "/schedstat");
    double ran = 0, waited = 0;
    if (std::sscanf(times.c_str(), "%lf %lf", &ran, &waited) != 2) continue;  // it has just ended
    now.threads.push_back({std::strtoull(id.c_str(), nullptr, 10),
                           files.text(place + "/comm") == "penstock\n", ran * 1e-9, waited * 1e-9});
    now.threads_file = files.path("/proc/self/task/*/schedstat");
  }
  return now;
}

PENSTOCK_INLINE std::vector<finding> findings(const interference& before, const interference& after,
                                              unsigned workers) {
  std::vector<finding> found;
  const double seconds = after.seconds - before.seconds;
  if (seconds <= 0) return found;
  const auto grown = [&](system_figure interference::*which) {
    const system_figure &a = before.*which, &b = after.*which;
    return a.known() && a.file == b.file ? std::max(0.0, b.value - a.value) : 0;
  };
  const auto number = [](double value) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.4g", std::round(value * 100) / 100);
    return std::string(digits);
  };
  const auto add = [&](std::string_view what, double share, const std::string& file, std::string_view head,
                       std::string_view tail, const std::string& more = {}) {
    if (!(share >= 0.05)) return;
    share = std::min(share, 1.0);
    char percent[16];
    std::snprintf(percent, sizeof percent, "%.0f%%", 100 * share);
    found.push_back({what, share, detail::text({head, percent, tail, more}), file});
    for (std::size_t i = found.size() - 1; i > 0 && found[i - 1].share < found[i].share; --i)
      std::swap(found[i - 1], found[i]);
  };
  const double allowed =
      after.quota.known() ? std::min(after.quota.value, after.processors.value) : after.processors.value;
  std::string crowd;
  if (workers != 0 && after.processors.known() && workers + 1 > allowed)
    crowd = detail::text({"; ", workers, " workers and the loop have ", number(allowed), " processors"});

  if (const double stopped = grown(&interference::throttled); stopped >= 0.05 * seconds)
    add("quota", stopped / (stopped + grown(&interference::used)), after.throttled.file,
        "the cgroup's CPU quota stopped this process for ", " of the time that it had work",
        after.quota.known() ? detail::text({", at ", number(after.quota.value), " processors", crowd}) : "");

  double ran = 0, of_loader = 0, waited = 0;
  for (const thread_time& one : after.threads) {
    const auto same = std::find_if(before.threads.begin(), before.threads.end(),
                                   [&](const thread_time& old) { return old.id == one.id; });
    const thread_time old = same == before.threads.end() ? thread_time() : *same;
    ran += std::max(0.0, one.ran - old.ran);
    waited += std::max(0.0, one.waited - old.waited);
    if (one.of_loader) of_loader += std::max(0.0, one.ran - old.ran);
  }
  if (after.threads_file.empty()) {
    add("processors", grown(&interference::cpu_pressure) / seconds, after.cpu_pressure.file,
        "threads waited for a processor for ", " of the time", crowd);
  } else if (waited >= 0.05 * seconds) {
    std::string users;
    if (after.busy.known())
      users = detail::text({": of ", number(after.processors.value), ", workers used ",
                            number(of_loader / seconds), ", other threads of this process ",
                            number((ran - of_loader) / seconds), ", other processes ",
                            number(std::max(0.0, grown(&interference::busy) - ran) / seconds)});
    add("processors", waited / (waited + ran), after.threads_file,
        "threads of this process waited for a processor for ", " of the time that they had work",
        users + crowd);
  }

  const auto whose = [](const system_figure& pressure) {
    return pressure.file.find("/pressure/") == std::string::npos ? "tasks of this cgroup waited for "
                                                                 : "tasks of this machine waited for ";
  };
  add("memory", grown(&interference::memory_pressure) / seconds, after.memory_pressure.file,
      detail::text({whose(after.memory_pressure), "memory for "}),
      " of the time, because there is too little of it");
  add("disk", grown(&interference::io_pressure) / seconds, after.io_pressure.file,
      detail::text({whose(after.io_pressure), "disks for "}), " of the time");
  if (const double again = grown(&interference::refaults), read = grown(&interference::read);
      again >= 1e6 * seconds && read > 0)
    add("page cache", again / read, after.refaults.file, "",
        " of what was read from disks had been in the page cache shortly before",
        detail::text({" (", number(again / 1e6),
                      " MB), because memory is too small for both; this process waited for ",
                      number(grown(&interference::major_faults)), " pages"}));
  add("hypervisor", grown(&interference::stolen) / (seconds * std::max(1.0, after.processors.value)),
      after.stolen.file, "the hypervisor gave the processors to others for ", " of the time");
  if (const double near = grown(&interference::near_pages), far = grown(&interference::far_pages); far > 0)
    add("NUMA", far / (near + far), after.far_pages.file, "",
        " of the pages are on another node than the thread that asked for them; bind the process to one node "
        "(numactl)");
  if (after.processors.value > 0)
    add("NUMA", after.far_processors.value / after.processors.value, after.far_processors.file, "",
        " of the processors belong to nodes whose memory this process may not use");
  return found;
}

}  // namespace penstock::inline v0_1
