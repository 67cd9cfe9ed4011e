// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/processor_set.hpp>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#if defined(__linux__)
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace penstock::inline v0_1 {

/// A node of a machine with several: processors, and the memory that is nearest to them.
struct numa_node {
  int number = 0;
  processor_set processors{};  ///< none if it has only memory
};

namespace detail {

/// The numbers of a list as Linux writes it: `0-3,8`. Those that no `processor_set` holds are left out, and
/// so is everything after what is no list.
[[nodiscard]] inline processor_set processor_list(std::string_view text) {
  processor_set all;
  const auto number = [&text](unsigned& into) {
    const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), into);
    if (wrong != std::errc{}) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return true;
  };
  for (unsigned first = 0; number(first);) {
    unsigned last = first;
    if (text.starts_with('-')) {
      text.remove_prefix(1);
      if (!number(last)) break;
    }
    for (unsigned i = first; i <= last && i < processor_set::max_processors; ++i)
      if (!all.contains(i)) all.add(i);
    if (!text.starts_with(',')) break;
    text.remove_prefix(1);
  }
  return all;
}

/// The first line of a small file; empty if there is none.
inline std::string first_line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace detail

/// The node that a PCI device is attached to; nothing on a machine with one node, and where the system does
/// not say. `address` is as CUDA and lspci write it, in either case of letters: `0000:3B:00.0`.
///
/// In: `sys`, the folder that Linux calls /sys. Cost: reads three small files. Errors: none; a file that is
/// missing or says something else is a system that does not say. Threads: any.
///
///     const std::optional<numa_node> near_to_it = numa_node_of("0000:3b:00.0");
[[nodiscard]] inline std::optional<numa_node> numa_node_of(std::string_view address,
                                                           const std::string& sys = "/sys") {
  if (detail::processor_list(detail::first_line_of(sys + "/devices/system/node/online")).size() < 2)
    return std::nullopt;
  std::string name(address);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c; });
  const std::string said = detail::first_line_of(sys + "/bus/pci/devices/" + name + "/numa_node");
  numa_node node;
  const auto [end, wrong] = std::from_chars(said.data(), said.data() + said.size(), node.number);
  if (wrong != std::errc{} || node.number < 0) return std::nullopt;  // -1: the firmware does not say
  node.processors = detail::processor_list(
      detail::first_line_of(sys + "/devices/system/node/node" + std::to_string(node.number) + "/cpulist"));
  return node;
}

/// Asks the system to put pages on a node when they are first written, and elsewhere if the node is full.
/// False where the system refuses, as containers without CAP_SYS_NICE do; the pages are then near the thread
/// that writes them first. `memory` begins a page.
inline bool prefer_node([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes,
                        [[maybe_unused]] int node) noexcept {
#if defined(__linux__) && defined(SYS_mbind)
  constexpr unsigned bits = 8 * sizeof(unsigned long), words = 1024 / bits;
  constexpr int preferred = 1;  // MPOL_PREFERRED of linux/mempolicy.h
  if (node < 0 || static_cast<unsigned>(node) >= words * bits) return false;
  unsigned long mask[words] = {};
  mask[static_cast<unsigned>(node) / bits] = 1UL << (static_cast<unsigned>(node) % bits);
  return ::syscall(SYS_mbind, memory, bytes, preferred, mask, words * bits, 0) == 0;
#else
  return false;
#endif
}

/// Binds the calling thread to those of the processors that it may use already; false if there are none.
inline bool run_on([[maybe_unused]] const processor_set& processors) noexcept {
#if defined(__linux__)
  cpu_set_t mine, both;
  CPU_ZERO(&mine);
  CPU_ZERO(&both);
  if (::sched_getaffinity(0, sizeof mine, &mine) != 0) return false;
  for (unsigned i = 0; i < processor_set::max_processors; ++i)
    if (CPU_ISSET(i, &mine) && processors.contains(i)) CPU_SET(i, &both);
  return CPU_COUNT(&both) != 0 && ::sched_setaffinity(0, sizeof both, &both) == 0;
#else
  return false;
#endif
}

}  // namespace penstock::inline v0_1
