// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/open_sample.hpp>

#include "support/catch.hpp"

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

namespace ps = penstock;

namespace open_sample_test {

struct bag {
  using is_open_sample = void;
  using blob_type = ps::bytes_view;
  std::vector<std::pair<std::string_view, std::string_view>> members;

  [[nodiscard]] std::string_view key() const { return "k"; }
  [[nodiscard]] std::size_t size() const { return members.size(); }
  [[nodiscard]] std::string_view name(std::size_t i) const { return members[i].first; }
  [[nodiscard]] ps::bytes_view member(std::size_t i) const { return ps::bytes_of(members[i].second); }
};
struct keyless {
  using is_open_sample = void;
  using blob_type = ps::bytes_view;
  [[nodiscard]] std::size_t size() const { return 0; }
};

static_assert(ps::open_sample<bag> && ps::open_sample<const bag&>,
              "a key and named members make an open sample");
static_assert(!ps::open_sample<keyless> && !ps::open_sample<int> &&
                  !ps::open_sample<ps::record<ps::field<"a", int>>>,
              "other types are none");

}  // namespace open_sample_test

TEST_CASE("core/open_sample: members are found at run time") {
  const open_sample_test::bag sample{{{"jpg", "pixels"}, {"cls", "7"}}};
  std::string_view found;
  for (std::size_t i = 0; i < sample.size(); ++i)
    if (sample.name(i) == "cls") found = ps::text_of(sample.member(i));
  CHECK(found == "7");
}
