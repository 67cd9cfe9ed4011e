// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row 28: shards in the cache of a node, from their second epoch on, against the same shards as local files;
// and in a cache in memory, or kept as samples, against the same shards in memory.

#include "support/folder.hpp"
#include "support/harness.hpp"

#include <penstock/order/shuffle.hpp>
#include <penstock/run.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/keep_in_memory.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/cached.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/memory_cache.hpp>
#include <penstock/storage/memory_files.hpp>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace ps = penstock;

namespace {

using namespace penstock::literals;

constexpr std::size_t sample_bytes = 110'000;

struct look_at_field {
  template <class Batch>
  std::uint64_t operator()(const Batch& batch) const {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < batch.valid_size(); ++i) {
      const ps::bytes_view bytes = ps::as_bytes(ps::get<"bin">(batch)[i]);
      sum += std::to_integer<std::uint64_t>(bytes.front()) + bytes.size();
    }
    return sum;
  }
};

std::string bytes_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void measure(const bench::options& o) {
  const bench::folder folder(o, "cache");
  const auto files = bench::write_shards(folder, 4, o.quick ? 128 : 1024, sample_bytes, false);
  const ps::file local(files);
  const auto epochs = [&](const bench::row& row, ps::verify verify, std::string_view kept, auto order) {
    if (!o.wants(row.id)) return;
    const ps::cached near(local, ps::disk_cache(folder.file(std::string(kept)), 2_GiB, {.verify = verify}));
    const auto loader = [&](const auto& source) {
      return (order(source) | ps::fields<"bin"> | ps::batch(32) | ps::workers(2)).open();
    };
    auto cached = loader(ps::webdataset(near));
    auto plain = loader(ps::webdataset(local));
    auto ours = bench::epochs_of(cached, look_at_field{});
    auto reference = bench::epochs_of(plain, look_at_field{});
    ours();  // fetches
    reference();
    bench::compare(o, row, ours, reference);
  };
  const auto in_order = [](const auto& source) { return source; };
  const auto shuffled = [](const auto& source) { return source | ps::shuffle(ps::seed(7)); };
  const std::string what = "110 KB samples, 2 workers, from a node's cache / from local files, ";
  epochs({"28a", what + "verified on every read", 0.8}, ps::verify::each_read, "each", in_order);
  epochs({"28b", what + "verified once", 0.95}, ps::verify::once, "once", in_order);
  epochs({"28c", what + "verified on every read, shuffled", 0}, ps::verify::each_read, "each_shuffled",
         shuffled);
  epochs({"28d", what + "verified once, shuffled", 0}, ps::verify::once, "once_shuffled", shuffled);

  const auto from_memory = [&](const bench::row& row, auto order) {
    if (!o.wants(row.id)) return;
    ps::memory_files all;
    for (const std::string& path : local.names()) all.add(path, bytes_of_file(path));
    const ps::cached near(local, ps::memory_cache(2_GiB));
    const auto loader = [&](const auto& source) {
      return (order(source) | ps::fields<"bin"> | ps::batch(32) | ps::workers(2)).open();
    };
    auto cached = loader(ps::webdataset(near));
    auto plain = loader(ps::webdataset(all, {.index = ps::index_policy::transient}));
    auto ours = bench::epochs_of(cached, look_at_field{});
    auto reference = bench::epochs_of(plain, look_at_field{});
    ours();  // fetches
    reference();
    bench::compare(o, row, ours, reference);
  };
  const std::string memory = "110 KB samples, 2 workers, from a cache in memory / from memory_files";
  from_memory({"28f", memory, 0.95}, in_order);
  from_memory({"28g", memory + ", shuffled", 0}, shuffled);

  if (o.wants("28i")) {
    ps::memory_files all;
    for (const std::string& path : local.names()) all.add(path, bytes_of_file(path));
    const auto loader = [&](const auto& samples) {
      return (samples | ps::shuffle(ps::seed(7)) | ps::batch(32) | ps::workers(2)).open();
    };
    const auto samples = ps::webdataset(all, {.index = ps::index_policy::transient}) | ps::fields<"bin">;
    auto kept = loader(samples | ps::keep_in_memory(2_GiB));
    auto plain = loader(samples);
    auto ours = bench::epochs_of(kept, look_at_field{});
    auto reference = bench::epochs_of(plain, look_at_field{});
    ours();  // keeps
    reference();
    bench::compare(o, {"28i", "110 KB samples, 2 workers, kept in memory / from memory_files, shuffled", 0},
                   ours, reference);
  }
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, measure); }
