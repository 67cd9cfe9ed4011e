// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row 9: shuffled samples of 110 KB whose shards are not in the page cache, fetched ahead through io_uring,
// against reading each one when it is needed.

#include "support/cold.hpp"
#include "support/folder.hpp"
#include "support/harness.hpp"

#include <penstock/order/shuffle.hpp>
#include <penstock/run.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/uring_file.hpp>

#include <cstdint>
#include <filesystem>
#include <string>

namespace ps = penstock;

namespace {

void measure(const bench::options& o) {
  if (!o.wants("9c")) return;
  const bench::row r{"9c", "the same as 9a over uring_file: prefetch(128) / file and none", 2.5};
  const std::uint64_t shards = o.quick ? 2 : 8, each = o.quick ? 1024 : 1664;
  const std::uint64_t bytes = shards * each * bench::sample_bytes;
  if (std::filesystem::space(o.dir).available < 2 * bytes)
    return bench::print_skipped(r, "the disk has no room for " + std::to_string(bytes) + " bytes");
  const bench::folder folder(o, "cold_uring");
  const auto names = bench::write_shards(folder, shards, each, bench::sample_bytes, false);
  const auto alone =
      ps::webdataset(names) | ps::shuffle(ps::seed(7)) | ps::fields<"bin"> | ps::batch(64) | ps::workers(1);
  const auto fetched = ps::webdataset(ps::uring_file(names)) | ps::shuffle(ps::seed(7)) | ps::prefetch(128) |
                       ps::fields<"bin"> | ps::batch(64) | ps::workers(1);
  bench::compare(
      o, r, [&] { return bench::pass(fetched); }, [&] { return bench::pass(alone); },
      [&] { bench::make_cold(names); });
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, measure); }
