// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/processor_set.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace penstock::inline v0_1 {

/// A node of a machine with several: processors, and the memory that is nearest to them.
struct numa_node {
  int number = 0;
  processor_set processors{};  ///< none if it has only memory
};

/// The node that a PCI device is attached to; nothing on a machine with one node, and where the system does
/// not say. `address` is as CUDA and lspci write it, in either case of letters: `0000:3B:00.0`.
///
/// In: `sys`, the folder that Linux calls /sys. Cost: reads three small files. Errors: none; a file that is
/// missing or says something else is a system that does not say. Threads: any.
///
///     const std::optional<numa_node> near_to_it = numa_node_of("0000:3b:00.0");
[[nodiscard]] std::optional<numa_node> numa_node_of(std::string_view address,
                                                    const std::string& sys = "/sys");

/// Asks the system to put pages on a node when they are first written, and elsewhere if the node is full.
/// False where the system refuses, as containers without CAP_SYS_NICE do; the pages are then near the thread
/// that writes them first. `memory` begins a page.
bool prefer_node(void* memory, std::size_t bytes, int node) noexcept;

/// Binds the calling thread to those of the processors that it may use already; false if there are none.
bool run_on(const processor_set& processors) noexcept;

namespace detail {

/// The numbers of a list as Linux writes it: `0-3,8`. Those that no `processor_set` holds are left out, and
/// so is everything after what is no list.
[[nodiscard]] processor_set processor_list(std::string_view text);

}  // namespace detail

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/device/numa.ipp>
#endif
