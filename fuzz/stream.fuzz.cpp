// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Archives read forward, plain or packed in any way: [file]

#include <penstock/codec/unpack_bzip2.hpp>
#include <penstock/codec/unpack_gzip.hpp>
#include <penstock/codec/unpack_lz4.hpp>
#include <penstock/codec/unpack_xz.hpp>
#include <penstock/codec/unpack_zstd.hpp>
#include <penstock/source/webdataset_stream.hpp>

#include "support/fuzz.hpp"
#include "support/tar.hpp"

using namespace penstock_fuzz;
namespace ps = penstock;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const file_in_memory shard;
  shard.write(input(data, size).rest());
  static const auto source =
      ps::webdataset_stream<ps::unpack_gzip, ps::unpack_zstd, ps::unpack_lz4, ps::unpack_bzip2,
                            ps::unpack_xz>(std::vector{shard.path()}, {.limit = 1 << 20});
  static auto reader = source.connect();  // whatever a file did to it, it reads the next one
  static ps::detail::tar_stream_sample sample;
  reader.rewind(0);
  outcome([&] {
    while (reader.next(sample)) {
      std::uint64_t held = 0;
      for (std::size_t m = 0; m < sample.size(); ++m) held += sample.member(m).size() + sample.name(m).size();
      must(held <= 1 << 20, "a sample keeps to its limit");
      touch(line_of(sample));
    }
  });
  return 0;
}
