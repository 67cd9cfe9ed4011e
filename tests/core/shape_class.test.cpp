// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/shape_class.hpp>
#include <penstock/core/whole.hpp>

#include "support/catch.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace ps = penstock;

namespace shape_class_test {

enum class colour { red };
struct point {
  float x, y;
};
struct some_blob {
  using unfinished = void;
  [[nodiscard]] std::uint64_t size() const { return 0; }
  void read_into(ps::mutable_bytes) const {}
  [[nodiscard]] ps::bytes_view finish() const { return {}; }
};
struct image {
  using unfinished = void;
  using value_type = std::uint8_t;
  [[nodiscard]] ps::extents shape() const { return ps::extents(3, 2, 2); }
  void write_to(std::uint8_t*) const {}
};
struct crop : image {
  static constexpr ps::extents static_shape{3, 2, 2};
};
struct bag {
  using is_open_sample = void;
  using blob_type = some_blob;
  [[nodiscard]] std::string_view key() const { return {}; }
  [[nodiscard]] std::size_t size() const { return 0; }
  [[nodiscard]] std::string_view name(std::size_t) const { return {}; }
  [[nodiscard]] some_blob member(std::size_t) const { return {}; }
};

using shape = ps::shape_class;
template <class T>
inline constexpr shape of = ps::shape_class_of<T>;

static_assert(of<int> == shape::fixed && of<const bool&> == shape::fixed && of<colour> == shape::fixed &&
                  of<point> == shape::fixed && of<std::array<float, 3>> == shape::fixed &&
                  of<crop> == shape::fixed,
              "shapes that the type says");
static_assert(of<some_blob> == shape::announced && of<image> == shape::announced &&
                  of<std::vector<int>> == shape::announced &&
                  of<std::span<const float>> == shape::announced &&
                  of<std::span<int, 4>> == shape::announced && of<ps::bytes_view> == shape::announced &&
                  of<ps::tensor_view<const int>> == shape::announced &&
                  of<ps::whole_tensor<int>> == shape::announced && of<ps::whole_bytes> == shape::announced,
              "shapes that the value says before it is written");
static_assert(of<std::string> == shape::discovered && of<std::string_view> == shape::discovered,
              "shapes that decoding finds");
static_assert(of<bag> == shape::none && of<ps::whole_sample> == shape::none &&
                  of<std::map<int, int>> == shape::none && of<std::vector<std::string>> == shape::none &&
                  of<std::unique_ptr<int>> == shape::none && of<int*> == shape::none &&
                  of<const char*> == shape::none,
              "what cannot be in a batch");

template <class T>
using number = typename ps::detail::stored<T>::type;
static_assert(std::is_same_v<number<std::array<float, 3>>, float> &&
                  std::is_same_v<number<crop>, std::uint8_t> &&
                  std::is_same_v<number<std::span<const float>>, float> &&
                  std::is_same_v<number<std::string>, char> && std::is_same_v<number<some_blob>, std::byte> &&
                  std::is_same_v<number<point>, point>,
              "a batch stores the numbers of a value");
static_assert(of<ps::strided_view<const float>> == shape::announced &&
                  std::is_same_v<ps::detail::stored<ps::strided_view<const float>>::type, float>,
              "a view with strides is an array, not a struct of a pointer and numbers");
template <class T>
inline constexpr int rank = ps::detail::value_rank<T>;
static_assert(rank<int> == 0 && rank<std::array<int, 3>> == 1 && rank<crop> == 3 && rank<some_blob> == 1 &&
                  rank<std::vector<int>> == 1 && rank<image> == -1 && rank<ps::tensor_view<int>> == -1,
              "how many lengths there are, where the type tells");
static_assert(ps::detail::stored<crop>::elements == 12 && !ps::detail::stored<crop>::scalar &&
                  ps::detail::stored<std::array<float, 3>>::elements == 3 &&
                  ps::detail::stored<point>::elements == 1 && ps::detail::stored<point>::scalar,
              "a fixed shape is known to its last number");

}  // namespace shape_class_test

TEST_CASE("core/shape_class: a record of plain values is a plain value") {
  using sample = ps::record<ps::field<"x", int>, ps::field<"y", float>>;
  CHECK(ps::shape_class_of<sample> == ps::shape_class::fixed);
  CHECK(ps::shape_class_of<ps::record<ps::field<"x", std::string>>> == ps::shape_class::none);
}
