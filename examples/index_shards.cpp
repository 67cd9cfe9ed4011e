// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Builds the indexes of tar shards before training, on many machines at once: each process takes every n-th
// shard. It needs no MPI, only a launcher that numbers processes, or the tasks of a Slurm job array:
//
//     mpirun -np 8 index_shards --shards 'train-{000000..001023}.tar'
//     sbatch --array=0-31 --wrap "index_shards --shards 'train-{000000..001023}.tar'"
//
// It leaves indexes alone that already belong to their shards. So if it was killed, start it again with any
// number of processes; it does the rest.

#include "arguments.hpp"

#include <penstock/order/world.hpp>
#include <penstock/source/webdataset.hpp>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace ps = penstock;

namespace {

/// The header of the shard's index, if the shard has a current one.
std::optional<ps::manifest> indexed(const std::string& shard) {
  try {
    return ps::webdataset(std::vector{shard}, {.index = ps::index_policy::require}).manifest();
  } catch (const ps::error& e) {
    if (e.code() != ps::errc::missing) throw;
    return std::nullopt;
  }
}

void index(arguments& given) {
  const std::string pattern = given.text("shards");
  given.done();
  const ps::world here = ps::world::from_environment({.slurm_array = true});
  const ps::file files(pattern);
  const std::span<const std::string> shards = files.names();
  std::uint64_t built = 0, there = 0, unended = 0;
  std::string first_unended;
  for (std::uint64_t i = here.rank; i < shards.size(); i += here.size) {
    const std::string& shard = shards[i];
    const auto count_unended = [&](const ps::manifest& one) {
      if (one.unended() != 0 && unended++ == 0) first_unended = shard;
    };
    if (const auto known = indexed(shard)) {
      ++there;
      count_unended(*known);
      continue;
    }
    const ps::webdataset made(std::vector{shard}, {.threads = 1});
    count_unended(made.manifest());
    if (!indexed(shard))
      throw std::runtime_error("the index of " + shard +
                               " cannot be kept beside it; may its folder be written?");
    ++built;
    std::printf("indexed %s, %llu samples\n", shard.c_str(), static_cast<unsigned long long>(made.size()));
    std::fflush(stdout);
  }
  std::printf("rank %llu of %llu (%.*s): %llu indexes built, %llu were there\n",
              static_cast<unsigned long long>(here.rank), static_cast<unsigned long long>(here.size),
              static_cast<int>(here.launcher.size()), here.launcher.data(),
              static_cast<unsigned long long>(built), static_cast<unsigned long long>(there));
  if (unended != 0)
    std::fprintf(
        stderr,
        "index_shards: %llu of these shards have no end-of-archive blocks and may be cut off, the first "
        "is %s; .require_end refuses them\n",
        static_cast<unsigned long long>(unended), first_unended.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    constexpr const char* usage = "index_shards --shards PATTERN";
    if (asked_for_help(argc, argv, usage)) return 0;
    arguments given(argc, argv, usage);
    index(given);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "index_shards: %s\n", e.what());
    return 1;
  }
}
