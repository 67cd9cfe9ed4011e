// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Builds the indexes of tar shards before training, on many machines at once: each process takes every n-th
// shard. It needs no MPI, only a launcher that numbers processes, or the tasks of a Slurm job array:
//
//     mpirun -np 8 index_shards --shards 'train-{000000..001023}.tar'
//     sbatch --array=0-31 --wrap "index_shards --shards 'train-{000000..001023}.tar'"
//     index_shards --shards 's3://bucket/train-{000000..001023}.tar'
//     index_shards --shards 'https://data.example.com/train-{0000..0127}.tar' --to indexes
//
// Indexes go beside their shards, into S3 too. A web server takes none: --to names a folder, or an
// s3://bucket/prefix, where they wait to be put beside the shards.
// It makes them from DALI's where those lie beside their shards in a store, and leaves indexes alone that
// already belong to their shards. So if it was killed, start it again with any number of processes; it does
// the rest.

#include "arguments.hpp"

#include <penstock/core/bytes.hpp>
#include <penstock/order/world.hpp>
#include <penstock/source/dali_index.hpp>
#include <penstock/source/index_shards.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/storage/any_of.hpp>
#include <penstock/storage/braces.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/http.hpp>
#include <penstock/storage/s3.hpp>
#include <penstock/storage/s3_writer.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ps = penstock;
namespace fs = std::filesystem;

namespace {

using anywhere = ps::any_of<ps::file, ps::http, ps::s3>;

/// What this process did.
struct tally {
  std::uint64_t built = 0, there = 0, unended = 0;
  std::string first_unended;

  void note(const ps::manifest& shards) {
    for (const ps::manifest::shard& one : shards.shards())
      if (one.unended && unended++ == 0) first_unended = one.name;
  }
};

void say(const std::string& what) {
  std::printf("indexed %s\n", what.c_str());
  std::fflush(stdout);
}

/// The header of a local shard's index, if the shard has a current one.
std::optional<ps::manifest> indexed(const std::string& shard) {
  try {
    return ps::webdataset(std::vector{shard}, {.index = ps::index_policy::require}).manifest();
  } catch (const ps::error& e) {
    if (e.code() != ps::errc::missing) throw;
    return std::nullopt;
  }
}

/// Of local files: `webdataset` writes the index itself, if it is asked to.
tally index_files(const std::vector<std::string>& shards) {
  tally done;
  for (const std::string& shard : shards) {
    if (const auto known = indexed(shard)) {
      ++done.there;
      done.note(*known);
      continue;
    }
    const ps::webdataset made(std::vector{shard}, {.index = ps::index_policy::keep, .threads = 1});
    done.note(made.manifest());
    if (!indexed(shard))
      throw std::runtime_error("the index of " + shard +
                               " cannot be kept beside it; may its folder be written?");
    ++done.built;
    say(shard + ", " + std::to_string(made.size()) + " samples");
  }
  return done;
}

/// Puts indexes beside their shards in S3, or to where --to says.
class index_target {
 public:
  explicit index_target(std::string to) : to_(std::move(to)) {
    if (!in_folder()) writer_.emplace();
  }
  void put(const std::string& name, ps::bytes_view index) {
    const std::string there = to_.empty() ? name : to_ + "/" + name.substr(name.rfind('/') + 1);
    if (writer_) {
      writer_->open(there);
      writer_->write(index);
      static_cast<void>(writer_->finish());
    } else {
      fs::create_directories(to_);
      std::ofstream out(there + ".part", std::ios::binary);
      if (!(out << ps::text_of(index)).flush()) throw std::runtime_error("cannot write " + there + ".part");
      out.close();
      fs::rename(there + ".part", there);
    }
    say(name.substr(0, name.size() - std::string_view(".penstock-index").size()));
  }

 private:
  [[nodiscard]] bool in_folder() const { return !to_.empty() && !to_.starts_with("s3://"); }

  std::string to_;
  std::optional<ps::s3_writer> writer_;
};

/// Of objects in a store.
tally index_stored(const std::vector<std::string>& shards, const std::string& to) {
  tally done;
  const anywhere where(shards);
  index_target target(to);
  const ps::indexed_shards found = ps::index_shards(
      where, [&](std::size_t, const std::string& name, ps::bytes_view index) { target.put(name, index); },
      {.index = ps::index_policy::cache.or_else(ps::dali_index)});
  done.built = found.made;
  done.there = found.there;
  // As training will find them; not those that wait elsewhere.
  if (to.empty()) done.note(ps::webdataset(where, {.index = ps::index_policy::require}).manifest());
  return done;
}

void index(arguments& given) {
  const std::string pattern = given.text("shards"), to = given.text("to", "");
  given.done();
  const ps::world here = ps::world::from_environment({.slurm_array = true});
  const anywhere all(pattern);
  std::vector<std::string> names(all.names().begin(), all.names().end());
  if (!all.local()) names = ps::expand_braces(pattern);  // with their queries, which names() leaves out
  if (!all.local() && !pattern.starts_with("s3://") && to.empty())
    throw std::runtime_error("a web server takes no indexes; say with --to where they shall be");
  if (all.local() && !to.empty())
    throw std::runtime_error("indexes of local files are beside them, without --to");
  std::vector<std::string> mine;
  for (std::uint64_t i = here.rank; i < names.size(); i += here.size) mine.push_back(names[i]);
  tally done;
  if (!mine.empty()) done = all.local() ? index_files(mine) : index_stored(mine, to);
  std::printf("rank %llu of %llu (%.*s): %llu indexes built, %llu were there\n",
              static_cast<unsigned long long>(here.rank), static_cast<unsigned long long>(here.size),
              static_cast<int>(here.launcher.size()), here.launcher.data(),
              static_cast<unsigned long long>(done.built), static_cast<unsigned long long>(done.there));
  if (done.unended != 0)
    std::fprintf(
        stderr,
        "index_shards: %llu of these shards have no end-of-archive blocks and may be cut off, the first "
        "is %s; .require_end refuses them\n",
        static_cast<unsigned long long>(done.unended), done.first_unended.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    constexpr const char* usage =
        "index_shards --shards URL|PATTERN [--to DIR|s3://BUCKET/PREFIX]\n"
        "Builds the indexes of shards in files, on web servers and in S3 (which the environment says, as for "
        "the tools of AWS), beside the shards or where --to says. Each process of a job takes its share.";
    if (asked_for_help(argc, argv, usage)) return 0;
    arguments given(argc, argv, usage);
    index(given);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "index_shards: %s\n", e.what());
    return 1;
  }
}
