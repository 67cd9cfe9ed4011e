// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A manifest as text, as other processes send it.

#include <penstock/source/manifest.hpp>

#include "support/fuzz.hpp"

#include <algorithm>

using namespace penstock_fuzz;
namespace ps = penstock;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(data, size);
  const ps::bytes_view text = in.rest();
  outcome([&] {
    const ps::manifest read = ps::manifest_from_string(ps::text_of(text));
    const ps::manifest again = ps::manifest_from_string(ps::to_string(read));
    must(again.fingerprint() == read.fingerprint() && again.samples() == read.samples() &&
             std::ranges::equal(again.shards(), read.shards(), {}, &ps::manifest::shard::name,
                                &ps::manifest::shard::name),
         "what is written is read back");
    must(read.starts() == nullptr || read.starts()->back() == read.samples(), "shards end where samples end");
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(read.samples(), 20); ++i)
      for (const std::uint64_t at : {i, read.samples() - 1 - i}) {
        const auto place = read.locate(at);
        must(place.shard < read.shards().size() && place.sample < read.shards()[place.shard].samples,
             "a sample is in its shard");
      }
  });
  return 0;
}
