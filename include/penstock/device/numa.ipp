// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/device/numa.hpp>

#include <algorithm>
#include <charconv>
#include <fstream>

#if defined(__linux__)
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace penstock::inline v0_1 {

namespace detail {

PENSTOCK_INLINE processor_set processor_list(std::string_view text) {
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
PENSTOCK_INLINE std::string first_line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace detail

PENSTOCK_INLINE std::optional<numa_node> numa_node_of(std::string_view address, const std::string& sys) {
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

PENSTOCK_INLINE bool prefer_node([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes,
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

PENSTOCK_INLINE bool run_on([[maybe_unused]] const processor_set& processors) noexcept {
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
