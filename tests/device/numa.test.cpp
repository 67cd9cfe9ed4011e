// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/device/numa.hpp>

#include "support/catch.hpp"
#include "support/made_up_nodes.hpp"
#include "support/temp_dir.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <thread>

#if defined(__linux__)
#include "support/thread_facts.hpp"

#include <sys/mman.h>
#endif

namespace numa_test {

namespace ps = penstock;
using penstock_test::made_up_nodes;

namespace {

/// The processors of the node of a device; `none` where there is no node.
std::string near_to(const std::string& address, const std::string& sys) {
  const auto node = ps::numa_node_of(address, sys);
  return node ? std::to_string(node->number) + ": " + node->processors.describe() : "none";
}

}  // namespace

TEST_CASE("device/numa: lists of processors are read as Linux writes them") {
  const auto list = [](std::string_view text) { return ps::detail::processor_list(text).describe(); };
  CHECK(list("0") == "0");
  CHECK(list("0-3,8,10-11\n") == "0-3, 8, 10-11");
  CHECK(list("").empty());
  CHECK(list("\n").empty());
  CHECK(list("none").empty());
  CHECK(list("2,x") == "2");
  CHECK(list("5-").empty());
  CHECK(list("3-1").empty());
  CHECK(list("1,1-2") == "1-2");
  CHECK(list("1020-4000000000,7") == "7, 1020-1023");
  CHECK(list("99999999999").empty());
}

TEST_CASE("device/numa: a device has a node where there are several") {
  const made_up_nodes two({"0-15,32-47", "16-31,48-63"});
  two.device("0000:3b:00.0", "0\n").device("0000:af:00.0", "1\n").device("0000:01:00.0", "-1\n");
  two.device("0000:02:00.0", "x").device("0000:03:00.0", "7\n");
  CHECK(near_to("0000:3B:00.0", two.sys()) == "0: 0-15, 32-47");
  CHECK(near_to("0000:af:00.0", two.sys()) == "1: 16-31, 48-63");
  CHECK(near_to("0000:01:00.0", two.sys()) == "none");
  CHECK(near_to("0000:02:00.0", two.sys()) == "none");
  CHECK(near_to("0000:03:00.0", two.sys()) == "7: ");  // a node without processors
  CHECK(near_to("0000:04:00.0", two.sys()) == "none");
  CHECK(near_to("", two.sys()) == "none");

  const made_up_nodes one({"0-15"});
  one.device("0000:3b:00.0", "0\n");
  CHECK(near_to("0000:3b:00.0", one.sys()) == "none");
  CHECK(near_to("0000:3b:00.0", "/nowhere") == "none");

  using ps::numa_node, ps::numa_node_of;
  // of this machine, which may have such a device
  const std::optional<numa_node> near_to_it = numa_node_of("0000:3b:00.0");
  CHECK((!near_to_it || near_to_it->number >= 0));
}

#if defined(__linux__)

TEST_CASE("device/numa: a thread is bound to what it may use of a list") {
  const ps::processor_set mine = penstock_test::thread_facts::allowed();
  unsigned first = 0;
  while (!mine.contains(first)) ++first;
  ps::processor_set wanted{first}, others;
  for (unsigned i = 0; i < ps::processor_set::max_processors; ++i)
    if (!mine.contains(i)) others.add(i);
  if (others.contains(1023)) wanted.add(1023);
  bool bound = false, elsewhere = true;
  ps::processor_set after, still;
  std::thread([&] {
    elsewhere = ps::run_on(others);
    still = penstock_test::thread_facts::allowed();
    bound = ps::run_on(wanted);
    after = penstock_test::thread_facts::allowed();
  }).join();
  CHECK(bound);
  CHECK(after == ps::processor_set{first});
  CHECK_FALSE(elsewhere);
  CHECK(still == mine);
  CHECK(penstock_test::thread_facts::allowed() == mine);
}

TEST_CASE("device/numa: a node is preferred, or refused without harm") {
  constexpr std::size_t size = std::size_t{1} << 16;
  void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  CHECK_FALSE(ps::prefer_node(memory, size, -1));
  CHECK_FALSE(ps::prefer_node(memory, size, 1'000'000));
  CHECK_FALSE(ps::prefer_node(static_cast<char*>(memory) + 1, size, 0));  // does not begin a page
  static_cast<void>(ps::prefer_node(memory, size, 0));                    // containers may refuse it
  static_cast<char*>(memory)[size - 1] = 1;
  CHECK(static_cast<char*>(memory)[size - 1] == 1);
  ::munmap(memory, size);
}

#endif

}  // namespace numa_test
