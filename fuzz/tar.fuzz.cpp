// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// An index is made of an archive, and everything in it is looked at: [1 put checksums right][archive]

#include <penstock/source/webdataset.hpp>
#include <penstock/storage/memory_files.hpp>

#include "support/fuzz.hpp"
#include "support/tar.hpp"

using namespace penstock_fuzz;
namespace ps = penstock;

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t maximum,
                                               unsigned seed) {
  return change_blocks(data, size, maximum, seed, 1);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(data, size);
  const bool seal = (in.number() & 1) != 0;
  const ps::bytes_view given = in.rest();
  const std::string repaired = seal ? sealed(given) : std::string();
  const ps::bytes_view bytes = seal ? ps::bytes_of(repaired) : given;
  const auto files = ps::memory_files().add_view("a.tar", bytes);

  outcome([&] {
    auto session = files.connect();
    const ps::buffer made = ps::detail::build_index(session, 0, "a.tar");
    const auto index = ps::detail::shard_index::over(made.view());
    must(index.has_value(), "an index that was made passes its own checks");
    std::uint64_t payload = 0, end = 0;
    std::uint32_t next = 0;
    for (std::uint64_t i = 0; i < index->header().samples; ++i) {
      must(index->first_member(i) == next, "samples follow each other");
      touch(index->key(i));
      for (; next < index->end_member(i); ++next) {
        must(index->offset(next) >= end && index->offset(next) % 512 == 0, "members are in their order");
        end = index->offset(next) + index->size(next);
        must(end <= bytes.size(), "members are within the archive");
        payload += index->size(next);
        touch(index->suffix(next));
      }
    }
    must(payload == index->header().payload, "sizes add up");
  });
  outcome([&] {
    const ps::webdataset data(files);
    for (const std::string& line : indexed_lines(data)) touch(line);
  });
  return 0;
}
