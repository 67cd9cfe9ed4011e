// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/evaluation/stage_chain.hpp>

#include "support/catch.hpp"

#include <cstdint>

namespace kept_samples_test {

namespace ps = penstock;

namespace {

struct source {};
struct keeps {
  static constexpr bool keeps_samples = true;
  source up;
  std::uint64_t has;
  [[nodiscard]] bool is_kept(ps::position at) const noexcept { return at.index == has; }
  [[nodiscard]] ps::kept_counters counters() const {
    ps::kept_counters all;
    all.samples = has;
    return all;
  }
};
template <class Up>
struct stage {
  Up up;
};

}  // namespace

TEST_CASE("evaluation/kept_samples: every node of a chain is asked, whatever stands on it") {
  static_assert(!ps::keeps_samples<source> && !ps::keeps_samples<stage<source>>);
  static_assert(ps::keeps_samples<keeps> && ps::keeps_samples<stage<stage<keeps>>>);
  const stage<keeps> chain{{{}, 7}};
  CHECK(ps::is_kept_in(chain, {0, 7}));
  CHECK_FALSE(ps::is_kept_in(chain, {0, 8}));
  CHECK_FALSE(ps::is_kept_in(stage<source>{}, {0, 7}));
  CHECK(ps::kept_in(chain).samples == 7);
  CHECK(ps::kept_in(source{}).samples == 0);
}

}  // namespace kept_samples_test
