// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row 9: shuffled samples of 110 KB whose shards are not in the page cache: fetched ahead against not, and
// against reading the shards sequentially. Through io_uring: uring.cpp.

#include "support/cold.hpp"
#include "support/folder.hpp"
#include "support/harness.hpp"

#include <penstock/core/record.hpp>
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
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
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

void measure(const bench::options& o) {
  if (!o.wants("9a") && !o.wants("9b")) return;
  const bench::row first{"9a", "110 KB samples, shuffled, page cache cold, 1 worker: prefetch(64) / none",
                         2.0};
  const bench::row second{"9b", "the same with prefetch(64) / reading the shards in order", 1};
  const std::uint64_t shards = o.quick ? 2 : 8, each = o.quick ? 1024 : 1664;
  const std::uint64_t bytes = shards * each * sample_bytes;
  if (std::filesystem::space(o.dir).available < 2 * bytes) {
    for (const auto& r : {first, second})
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
  const auto source =
      ps::webdataset(names) | ps::shuffle(7) | ps::fields<"bin"> | ps::batch(batch_size) | ps::workers(1);
  const auto hinted = ps::webdataset(names) | ps::shuffle(7) | ps::prefetch(64) | ps::fields<"bin"> |
                      ps::batch(batch_size) | ps::workers(1);
  const auto cold = [&] { make_cold(names); };
  bench::compare(
      o, first, [&] { return bench::pass(hinted); }, [&] { return bench::pass(source); }, cold);
  bench::compare(
      o, second, [&] { return bench::pass(hinted); }, [&] { return read_in_order(names, members, numbers); },
      cold);
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, measure); }
