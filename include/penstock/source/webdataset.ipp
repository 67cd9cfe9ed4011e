// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/webdataset.hpp>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE shared<const detail::tar::shard_set<file>> detail::tar::open_files(
    file where, const webdataset_options& options, const manifest* known) {
  return open_shards(std::move(where), options, known);
}

}  // namespace penstock::inline v0_1
