// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row 9: shuffled samples of 110 KB whose shards are not in the page cache: fetched ahead against not, and
// against reading the shards sequentially. Through io_uring: uring.cpp.

#include "support/cold.hpp"
#include "support/folder.hpp"
#include "support/harness.hpp"

#include <penstock/core/record.hpp>
#include <penstock/order/permutation.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace ps = penstock;

namespace {

constexpr std::size_t batch_size = 64;
using bench::make_cold;
using bench::sample_bytes;

/// Reads whole shards, 1 MiB at a time, and looks at the samples as they arrive.
std::uint64_t read_in_order(std::span<const std::string> names, std::span<const bench::member_place> members,
                            std::span<const int> numbers) {
  ps::buffer piece(1 << 20);
  std::uint64_t sum = 0;
  std::size_t next = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bench::descriptor file(names[i]);
    const std::uint64_t size = file.size();
    for (std::uint64_t at = 0; at < size; at += piece.size()) {
      const auto here = static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), size - at));
      bench::read_range(file.get(), piece.data(), here, at);
      for (; next < members.size() && members[next].file == numbers[i] && members[next].offset < at + here;
           ++next)
        sum += bench::first_words(piece.data() + (members[next].offset - at), 1, 8);
    }
  }
  return sum;
}

/// Reads all samples in a shuffled order with so many threads: what the disk allows.
std::uint64_t read_shuffled(std::span<const bench::member_place> members, unsigned threads) {
  const ps::permutation order(members.size(), 7);
  std::atomic<std::uint64_t> next{0}, sum{0};
  const auto read = [&] {
    ps::buffer sample(sample_bytes);
    std::uint64_t mine = 0;
    for (std::uint64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < members.size();) {
      const bench::member_place& from = members[order(i)];
      bench::read_range(from.file, sample.data(), from.size, from.offset);
      mine += bench::first_words(sample.data(), 1, 8);
    }
    sum.fetch_add(mine, std::memory_order_relaxed);
  };
  std::vector<std::jthread> others;
  for (unsigned i = 1; i < threads; ++i) others.emplace_back(read);
  read();
  others.clear();
  return sum;
}

void measure(const bench::options& o) {
  if (!o.wants("9a") && !o.wants("9b") && !o.wants("9d") && !o.wants("9e")) return;
  const bench::row first{"9a", "110 KB samples, shuffled, page cache cold, 1 worker: prefetch(64) / none",
                         2.0};
  const bench::row second{"9b", "the same with prefetch(64) / reading the shards in order", 1};
  const bench::row limit{
      "9d", "what the disk allows: the same samples by hand, 32 reads at once / one after another"};
  const bench::row share{"9e", "the same with prefetch(64) / by hand, 32 reads at once"};
  const std::uint64_t shards = o.quick ? 2 : 8, each = o.quick ? 1024 : 1664;
  const std::uint64_t bytes = shards * each * sample_bytes;
  if (std::filesystem::space(o.dir).available < 2 * bytes) {
    for (const auto& r : {first, second, limit, share})
      bench::print_skipped(r, "the disk has no room for " + std::to_string(bytes) + " bytes");
    return;
  }
  const bench::folder folder(o, "cold");
  const auto names = bench::write_shards(folder, shards, each, sample_bytes, false);
  std::vector<bench::descriptor> files;
  std::vector<bench::member_place> members;
  std::vector<int> numbers;
  for (const auto& name : names) {
    files.emplace_back(name);
    numbers.push_back(files.back().get());
    bench::find_members(files.back().get(), files.back().size(), ".bin", members);
  }
  const auto source = ps::webdataset(names) | ps::shuffle(ps::seed(7)) | ps::fields<"bin"> |
                      ps::batch(batch_size) | ps::workers(1);
  const auto hinted = ps::webdataset(names) | ps::shuffle(ps::seed(7)) | ps::prefetch(64) |
                      ps::fields<"bin"> | ps::batch(batch_size) | ps::workers(1);
  const auto cold = [&] { make_cold(names); };
  bench::compare(
      o, first, [&] { return bench::pass(hinted); }, [&] { return bench::pass(source); }, cold);
  bench::compare(
      o, second, [&] { return bench::pass(hinted); }, [&] { return read_in_order(names, members, numbers); },
      cold);
  for (const auto& file : files) (void)::posix_fadvise(file.get(), 0, 0, POSIX_FADV_RANDOM);
  const auto at_depth_32 = [&] { return read_shuffled(members, 32); };
  bench::compare(
      o, limit, at_depth_32, [&] { return read_shuffled(members, 1); }, cold);
  bench::compare(
      o, share, [&] { return bench::pass(hinted); }, at_depth_32, cold);
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, measure); }
