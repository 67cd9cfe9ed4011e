// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// One archive through memory, files, mappings and forward: the same samples, or an error from all.
// [1 put checksums right][archive]

#include <penstock/source/webdataset.hpp>
#include <penstock/source/webdataset_stream.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/mapped_file.hpp>
#include <penstock/storage/memory_files.hpp>

#include "support/fuzz.hpp"
#include "support/tar.hpp"

#include <limits>

using namespace penstock_fuzz;
namespace ps = penstock;

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t maximum,
                                               unsigned seed) {
  return change_blocks(data, size, maximum, seed, 1);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const file_in_memory shard;
  input in(data, size);
  const bool seal = (in.number() & 1) != 0;
  const ps::bytes_view given = in.rest();
  const std::string repaired = seal ? sealed(given) : std::string();
  const ps::bytes_view bytes = seal ? ps::bytes_of(repaired) : given;
  shard.write(bytes);

  const auto through = [](auto storage, std::vector<std::string>& lines) {
    return outcome([&] {
      lines = indexed_lines(
          ps::webdataset(std::move(storage), {.index = ps::index_policy::transient, .threads = 1}));
    });
  };
  std::vector<std::string> memory, file, mapped, forward;
  const std::string problem = through(ps::memory_files().add_view(shard.path(), bytes), memory);
  must(through(ps::file(std::vector{shard.path()}), file) == problem, "files agree with memory on errors");
  must(file == memory, "files agree with memory");
  must(through(ps::mapped_file(std::vector{shard.path()}), mapped) == problem,
       "mappings agree with memory on errors");
  must(mapped == memory, "mappings agree with memory");

  const std::string forward_problem = outcome([&] {
    const auto source = ps::webdataset_stream<>(std::vector{shard.path()},
                                                {.limit = std::numeric_limits<std::uint64_t>::max()});
    auto reader = source.connect();
    ps::detail::tar_stream_sample sample;
    while (reader.next(sample)) forward.push_back(line_of(sample));
  });
  must(forward_problem.empty() == problem.empty(), "read forward, an archive is as good as with its index");
  if (problem.empty()) must(forward == memory, "read forward, an archive has the same samples");
  return 0;
}
