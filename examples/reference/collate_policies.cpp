// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// How values of one field become one piece of a batch: stacked, one after another, or padded.

#include <penstock/core/collate.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace ps = penstock;

namespace {

/// Images of unequal sizes in one block, with the size of each.
bool padded_images() {
  const std::vector<ps::extents> sizes{ps::extents(2, 4, 3),
                                       ps::extents(3, 1, 3)};  // height, width, channels
  const std::vector<std::uint8_t> bright(24, 255);
  const auto loader = ps::from(sizes) | ps::map([&](const ps::extents& size) {
                        return ps::tensor_view<const std::uint8_t>(bright.data(), size);
                      }) |
                      ps::batch(2, ps::pad_to_largest_with<7>);
  bool works = false;
  for (auto&& b : loader) {
    const auto images = b.values();  // padded_arrays_view<std::uint8_t>: (2, 3, 4, 3), with sizes
    works = images.shape() == ps::extents(2, 3, 4, 3) && images.sizes()[1] == ps::extents(3, 1, 3) &&
            images.values()(1, 2, 0, 0) == 255 && images.values()(1, 2, 1, 0) == 7 &&
            images[1].shape() == ps::extents(3, 1, 3);
  }
  return works;
}

}  // namespace

int main() {
  const std::vector<int> lengths{3, 1, 2};
  const auto sample = [](int n) {
    return ps::record<ps::field<"fixed", std::vector<float>>, ps::field<"ids", std::vector<int>>,
                      ps::field<"txt", std::string>>(std::vector<float>{1, 2},
                                                     std::vector<int>(static_cast<std::size_t>(n), n),
                                                     std::string(static_cast<std::size_t>(n), 'x'));
  };
  const auto loader = ps::from(lengths) | ps::map(sample) |
                      ps::batch(3, ps::collate<"ids">(ps::pad_to_longest), ps::collate<"txt">(ps::ragged));
  bool works = false;
  for (auto&& b : loader) {
    const auto fixed = get<"fixed">(b);  // tensor_view<const float>, stacked: (3, 2)
    const auto ids = get<"ids">(b);      // padded_view<int>: (3, 3), with lengths and a mask
    const auto txt = get<"txt">(b);      // ragged_view<char>: all characters, with offsets
    works = fixed.shape() == ps::extents(3, 2) && fixed[2][1].values()[0] == 2.0f &&  //
            ids.shape() == ps::extents(3, 3) && ids.values()[1].values()[1] == 0 && ids.lengths()[2] == 2 &&
            ids.mask()[1].values()[0] == 1 && ids.mask()[1].values()[2] == 0 &&  //
            txt.values().size() == 6 && txt.offsets()[1] == 3 && txt[1].size() == 1;
    std::printf("fixed %s, ids %s, txt %zu characters\n", to_string(fixed.shape()).c_str(),
                to_string(ids.shape()).c_str(), txt.values().size());
  }
  return works && padded_images() ? 0 : 1;
}
