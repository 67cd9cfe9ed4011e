// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row 46: windows of 64 rows of 32 floats from a mapped npy file, in batches of 64, one for every row of
// episodes of 500 rows: against bare copies of the same values in such an order.

#include "support/folder.hpp"
#include "support/harness.hpp"

#include <penstock/codec/npy.hpp>
#include <penstock/core/random.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run.hpp>
#include <penstock/source/npy_rows.hpp>
#include <penstock/source/windows.hpp>
#include <penstock/source/zip.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/workers.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace ps = penstock;

namespace {

constexpr std::size_t columns = 32, length = 64, batch_size = 64, episode = 500;

/// The sum of the first values of windows, which shows that they are there.
template <class Batch>
std::uint64_t look(const Batch& b) {
  const auto values = [&] {
    if constexpr (requires { b.values(); })
      return b.values();
    else
      return ps::get<"x">(b);
  }();
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < b.size(); ++i)
    sum += static_cast<std::uint64_t>(values.data()[i * length * columns]);
  return sum;
}

void measure(const bench::options& o) {
  const std::size_t rows = (o.quick ? 20 : 400) * episode;
  const bench::folder folder(o, "windows");
  const std::string path = folder.file("x.npy");
  std::vector<float> table(rows * columns);
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<float>(i % 65'521);
  {
    const auto bytes = ps::npy_bytes<float>(ps::extents(rows, columns), std::span<const float>(table));
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  const ps::episodes known(std::vector<std::uint64_t>(rows / episode, episode));
  const auto source = ps::npy_rows<float>(path);

  // Several batches in turn, as a run has them.
  constexpr std::size_t slots = 4, window = length * columns;
  std::vector<float> room(slots * batch_size * window);
  std::vector<std::uint8_t> masks(slots * batch_size * length);
  std::vector<std::size_t> whole, any;  // the rows at which windows begin
  for (std::size_t row = 0; row < rows; ++row) {
    any.push_back(row);
    if (row % episode + length <= episode) whole.push_back(row);
  }
  for (auto* const order : {&whole, &any})
    for (std::size_t i = order->size(); i-- > 1;)
      std::swap((*order)[i], (*order)[static_cast<std::size_t>(ps::mix64(i) % (i + 1))]);
  const auto bare = [&](const std::vector<std::size_t>& order, auto&& copy) {
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      float* const to = room.data() + i % (slots * batch_size) * window;
      copy(order[i], i, to);
      seen += static_cast<std::uint64_t>(*to);
    }
    return seen;
  };
  const auto in_one_piece = [&] {
    return bare(whole, [&](std::size_t row, std::size_t, float* to) {
      std::memcpy(to, table.data() + row * columns, window * sizeof(float));
    });
  };
  // Rows from 32 before to 31 after, clamped, and their mask.
  const auto clamped = [&] {
    return bare(any, [&](std::size_t row, std::size_t i, float* to) {
      std::uint8_t* const mask = masks.data() + i % (slots * batch_size) * length;
      const auto begin = static_cast<std::int64_t>(row / episode * episode),
                 end = begin + std::int64_t{episode};
      for (std::size_t k = 0; k < length; ++k) {
        const std::int64_t wanted = static_cast<std::int64_t>(row + k) - 32;
        mask[k] = wanted < begin || wanted >= end ? 1 : 0;
        const auto at = static_cast<std::size_t>(std::clamp(wanted, begin, end - 1));
        std::memcpy(to + k * columns, table.data() + at * columns, columns * sizeof(float));
      }
    });
  };
  auto plain = (ps::windows(source, known, {.length = length}) | ps::shuffle(ps::seed(7)) |
                ps::batch(batch_size) | ps::workers(0))
                   .open();
  bench::compare(o, {"46a", "64 rows of 32 floats of npy, shuffled, no worker / memcpy of the windows", 0.8},
                 bench::epochs_of(plain, [](auto& b) { return look(b); }), in_one_piece);
  auto run = (ps::windows(ps::zip<"x">(source), known, {.at = ps::row_offsets::from_to(-32, 31)}) |
              ps::shuffle(ps::seed(7)) | ps::batch(batch_size) | ps::workers(0))
                 .open();
  bench::compare(o, {"46b", "32 rows before to 31 after with a mask, no worker / memcpy of the rows", 0.8},
                 bench::epochs_of(run, [](auto& b) { return look(b); }), clamped);
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, measure); }
