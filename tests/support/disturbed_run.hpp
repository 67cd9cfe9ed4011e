// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/tar_writer.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/storage_counters.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace penstock_test {

/// Two shards of 150 samples each, of unequal sizes.
inline penstock::memory_files disturbed_shards() {
  penstock::memory_files files;
  for (int shard = 0; shard < 2; ++shard) {
    std::vector<std::byte> bytes;
    penstock::tar_writer out(
        [&](penstock::bytes_view piece) { bytes.insert(bytes.end(), piece.begin(), piece.end()); });
    for (std::size_t i = 0; i < 150; ++i) {
      std::string text(100 + i * 37 % 9000, 'a');
      for (std::size_t j = 0; j < text.size(); ++j)
        text[j] = static_cast<char>('a' + (i + j * 7 + static_cast<std::size_t>(shard)) % 26);
      out.write(std::to_string(i), {{"txt", text}});
    }
    out.close();
    files.add(shard == 0 ? "a.tar" : "b.tar", bytes);
  }
  return files;
}

/// All bytes of two epochs of shards, and what the storage counted.
struct disturbed_run {
  std::string bytes;
  penstock::storage_counters counters{};

  template <class Storage>
  disturbed_run(const Storage& where, unsigned threads) {
    namespace ps = penstock;
    // no two samples in one request, so that there are many to disturb
    auto run = (ps::webdataset(where) | ps::shuffle(ps::seed(7)) | ps::prefetch(256, {.coalesce_gap = 0}) |
                ps::fields<"txt"> | ps::batch(8, ps::ragged) | ps::prefetch(32) | ps::workers(threads))
                   .open();
    for (auto epoch : run.epochs(2))
      for (auto&& b : epoch)
        for (std::size_t i = 0; i < b.valid_size(); ++i) {
          const auto text = ps::get<"txt">(b)[i];
          bytes.append(reinterpret_cast<const char*>(text.data()), text.size()).append("\n");
        }
    counters = run.counters().storage;
  }
};

}  // namespace penstock_test
