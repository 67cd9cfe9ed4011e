// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Functions of whole batches, in the workers. Images are centred on the mean of their batch, in place, and
// get noise. A collate function of our own turns texts into padded ids and a mask.

#include <penstock/core/collate.hpp>
#include <penstock/core/whole.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map_batch.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace ps = penstock;

namespace {

using image = std::array<float, 4>;

image made(std::uint64_t i) {
  const auto x = static_cast<float>(i);
  return {x, x + 1, x + 2, x + 3};
}

/// Changes values in place: returns nothing.
const auto centred = [](auto& columns) {
  const auto values = columns.values();  // tensor_view<float>: (samples, 4)
  float sum = 0;
  for (const float x : values.flat()) sum += x;
  for (float& x : values.flat()) x -= sum / static_cast<float>(values.size());
};

/// The random numbers belong to the step, on any number of threads.
const auto noisy = [](auto& columns, ps::rng& random) {
  for (float& x : columns.values().flat()) x += static_cast<float>(random.uniform(-0.1, 0.1));
};

/// Makes new columns: the batch consists of what it returns.
const auto padded = [](auto& columns) {
  const auto texts = columns.values();  // ragged: one text after another
  std::size_t longest = 0;
  for (std::size_t i = 0; i < columns.size(); ++i) longest = std::max(longest, texts[i].size());
  ps::whole_tensor<std::int32_t> ids;
  ps::whole_tensor<std::uint8_t> mask;
  std::int32_t* id = ids.resize(ps::extents(columns.size(), longest));
  std::uint8_t* valid = mask.resize(ids.shape());
  for (std::size_t i = 0; i < columns.size(); ++i)
    for (std::size_t k = 0; k < longest; ++k) {
      const bool there = k < texts[i].size();
      *id++ = there ? texts[i][k] - 'a' : -1;
      *valid++ = there ? 1 : 0;
    }
  return ps::record<ps::field<"ids", ps::whole_tensor<std::int32_t>>,
                    ps::field<"mask", ps::whole_tensor<std::uint8_t>>>(std::move(ids), std::move(mask));
};

}  // namespace

int main() {
  bool works = true;
  const auto images = ps::generated(10, made) | ps::batch(4) | ps::map_batch(centred) | ps::map_batch(noisy);
  for (auto&& b : images.epoch(0)) {
    float sum = 0;
    for (const float x : b.values().flat()) sum += x;
    works = works && std::abs(sum) < 0.1f * static_cast<float>(b.values().size());
    std::printf("batch %llu: mean %.3f\n", static_cast<unsigned long long>(b.step()),
                static_cast<double>(sum) / static_cast<double>(b.values().size()));
  }

  const std::vector<std::string> words{"a", "loader", "feeds"};
  for (auto&& b : ps::from(words) | ps::batch(3, ps::ragged) | ps::map_batch(padded)) {
    const auto ids = get<"ids">(b);    // tensor_view<const std::int32_t>
    const auto mask = get<"mask">(b);  // tensor_view<const std::uint8_t>
    works = works && ids.shape() == ps::extents(3, 6) && ids[0].data()[1] == -1 && ids[1].data()[5] == 17 &&
            mask[2].data()[4] == 1 && mask[2].data()[5] == 0;
    std::printf("ids %s, the second word begins with %d\n", to_string(ids.shape()).c_str(), ids[1].data()[0]);
  }
  return works ? 0 : 1;
}
