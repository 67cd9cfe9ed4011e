// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/window_options.hpp>

#include "support/catch.hpp"

#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

namespace ps = penstock;

TEST_CASE("source/window_options: whole numbers are rows, and others seconds") {
  using rows = std::vector<std::int64_t>;
  using seconds = std::vector<double>;
  CHECK(ps::row_offsets{-1, 0, 1}.rows() == rows{-1, 0, 1});
  CHECK(ps::row_offsets{-1, 0, 1}.seconds().empty());
  CHECK(ps::row_offsets{-0.1, 0, 1u}.seconds() == seconds{-0.1, 0, 1});
  CHECK(ps::row_offsets{-0.1, 0, 1}.rows().empty());
  CHECK(ps::row_offsets{0}.rows() == rows{0});
  CHECK(ps::row_offsets{0.5f}.seconds() == seconds{0.5});
  CHECK(ps::row_offsets(rows{4, 5}).rows() == rows{4, 5});
  CHECK(ps::row_offsets(seconds{4, 5}).seconds() == seconds{4, 5});
  CHECK(ps::row_offsets().empty());
  CHECK(ps::row_offsets{}.empty());
  CHECK_FALSE(ps::row_offsets{0.0}.empty());
  CHECK(ps::row_offsets::from_to(-1, 2).rows() == rows{-1, 0, 1, 2});
  CHECK(ps::row_offsets::from_to(2, 2).rows() == rows{2});
  CHECK(ps::row_offsets::from_to(2, 1).empty());
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  CHECK(ps::row_offsets::from_to(most, most).rows() == rows{most});
  static_assert(!std::is_constructible_v<ps::row_offsets, const char*>);

  const ps::column_at<"action"> listed{0, 1}, ranged(ps::row_offsets::from_to(0, 1));
  CHECK(listed.rows() == ranged.rows());
  static_assert(std::is_same_v<decltype(listed)::name_type, ps::name_of<"action">>);
  const ps::window_options options{.stride = 2, .at = {-1, 0}};
  CHECK(options.at.rows() == rows{-1, 0});
  CHECK(options.pad);
}
