// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Layouts of arrays in a batch: pictures with channels first, and pictures whose rows begin where a graphics
// device wants them. An array expression writes its values directly to their destination.

#include <penstock/core/collate.hpp>
#include <penstock/core/destination.hpp>
#include <penstock/core/record.hpp>
#include <penstock/core/strided_view.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace ps = penstock;

namespace {

/// An array that is computed at its destination, whatever the order of the elements there.
struct ramp {
  using unfinished = void;
  using value_type = float;
  ps::extents size;
  [[nodiscard]] ps::extents shape() const { return size; }
  void write_to(const ps::destination<float>& into) const {
    into.fill_from([next = 0.0f]() mutable { return next++; });
  }
};

/// The simple form: row-major to a pointer. It works everywhere; if slots are not dense, through a copy.
struct grey {
  using unfinished = void;
  using value_type = std::uint8_t;
  static constexpr ps::extents static_shape{2, 100};  // known to the type
  std::uint64_t level;
  [[nodiscard]] ps::extents shape() const { return static_shape; }
  void write_to(std::uint8_t* into) const {
    for (std::size_t i = 0; i < 200; ++i) into[i] = static_cast<std::uint8_t>(level + i);
  }
};

using sample = ps::record<ps::field<"planes", ramp>, ps::field<"rows", grey>, ps::field<"label", int>>;

}  // namespace

int main() {
  const auto samples = ps::generated(
      8, [](std::uint64_t i) { return sample(ramp{ps::extents(4, 5, 3)}, grey{i}, static_cast<int>(i)); });
  const auto loader = samples | ps::batch(4, ps::collate<"planes">(ps::channels_first),
                                          ps::collate<"rows">(ps::pitched<128>));
  bool works = true;
  for (auto&& b : loader) {
    const auto planes = get<"planes">(b);  // tensor_view<const float>: (4, 3, 4, 5), dense
    const auto rows = get<"rows">(b);      // strided_view<const std::uint8_t>: (4, 2, 100)
    // pixel (y, x) = (2, 1) has the values 33, 34 and 35, one in each plane
    works = works && planes.shape() == ps::extents(4, 3, 4, 5) && planes[0][0][2].data()[1] == 33 &&
            planes[3][1][2].data()[1] == 34 && planes[3][2][2].data()[1] == 35;
    works = works && rows.row_pitch() == 128 && rows.strides() == ps::element_strides{256, 128, 1} &&
            rows(1, 1, 99) == get<"label">(b)[1] + 199 && rows.row(3).size() == 100;
    std::printf("planes %s, rows %s, %lld bytes from row to row\n", to_string(planes.shape()).c_str(),
                to_string(rows.shape()).c_str(), static_cast<long long>(rows.row_pitch()));
  }
  return works ? 0 : 1;
}
