// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/dali_index.hpp>

#include "support/catch.hpp"
#include "support/raw_tar.hpp"

#include <penstock/source/energon_index.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/storage/memory_files.hpp>

#include <type_traits>

namespace dali_index_test {

template <class Policy, class Other>
concept asks = requires(Policy policy, Other other) { policy.or_else(other); };
using own = penstock::own_index_policy;
using foreign = penstock::foreign_index_policy;
static_assert(asks<own, foreign>);
static_assert(!asks<own, own> && !asks<own, penstock::index_policy>);
static_assert(!asks<foreign, own> && !asks<foreign, foreign>);
static_assert(!asks<penstock::index_policy, foreign>);  // another program is asked once
static_assert(std::is_same_v<decltype(penstock::index_policy::cache.or_else(penstock::dali_index)),
                             penstock::index_policy>);

}  // namespace dali_index_test

TEST_CASE("source/dali_index: a policy has a value, so that programs can choose at run time") {
  using penstock::index_policy;
  static_assert(penstock::dali_index == penstock::dali_index);
  static_assert(penstock::dali_index != penstock::energon_index);
  static_assert(index_policy::cache.or_else(penstock::dali_index) != index_policy::cache);
  static_assert(index_policy::cache.or_else(penstock::dali_index) !=
                index_policy::keep.or_else(penstock::dali_index));
  static_assert(index_policy() == index_policy::cache);
  const auto chosen = [](bool both) {
    return both ? index_policy::keep.or_else(penstock::dali_index) : index_policy::keep;
  };
  static_assert(chosen(false) == index_policy::keep && chosen(true) != index_policy::keep);
  const penstock::webdataset_options options = penstock::dali_index;
  CHECK(options.index == penstock::dali_index);
}

TEST_CASE("source/dali_index: a storage without sidecars has no index of DALI's, and is read") {
  const auto shards = penstock::memory_files().add(
      "a.tar", penstock_test::raw_tar().member("a.txt", "1").member("b.txt", "2").end().bytes);
  CHECK_THROWS_WITH(penstock::webdataset(shards, penstock::dali_index),
                    penstock_test::contains("the DALI index a.idx of the shard a.tar cannot be used"));
  CHECK(
      penstock::webdataset(shards, penstock::index_policy::transient.or_else(penstock::dali_index)).size() ==
      2);
}
