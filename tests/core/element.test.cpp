// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/element.hpp>

#include "support/catch.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace ps = penstock;

namespace element_test {

struct text_blob {
  using unfinished = void;
  std::string_view text;
  [[nodiscard]] std::uint64_t size() const { return text.size(); }
  void read_into(ps::mutable_bytes into) const {
    for (std::size_t i = 0; i < into.size(); ++i) into[i] = static_cast<std::byte>(text[i]);
  }
  [[nodiscard]] ps::bytes_view finish() const { return ps::bytes_of(text); }
};
struct ramp {
  using unfinished = void;
  using value_type = float;
  static constexpr ps::extents static_shape{3};
  static constexpr float values[] = {1, 2, 3};
  [[nodiscard]] ps::extents shape() const { return static_shape; }
  void write_to(float* to) const {
    for (const float v : values) *to++ = v;
  }
  [[nodiscard]] ps::tensor_view<const float> finish() const { return {values, static_shape}; }
};
using mixed = ps::record<ps::field<"raw", text_blob>, ps::field<"n", int>, ps::field<"ramp", ramp>>;

static_assert(ps::unfinished<text_blob> && ps::unfinished<const ramp&> && !ps::unfinished<int>,
              "unfinished values say so");
static_assert(ps::blob<text_blob> && !ps::blob<ramp> && !ps::blob<std::string>, "blobs are unfinished bytes");
static_assert(ps::array_expression<ramp> && ps::static_array_expression<ramp> &&
                  !ps::array_expression<text_blob>,
              "array expressions write numbers");
static_assert(ps::byte_element<text_blob> && ps::byte_element<std::string> &&
                  ps::byte_element<std::string_view> && ps::byte_element<const char*> &&
                  ps::byte_element<ps::bytes_view> && ps::byte_element<std::vector<std::byte>> &&
                  ps::byte_element<ps::mutable_bytes>,
              "codecs accept blobs, bytes and texts");
static_assert(!ps::byte_element<int> && !ps::byte_element<std::vector<int>> && !ps::byte_element<ramp>,
              "codecs accept nothing else");
static_assert(std::is_same_v<ps::finished<text_blob>, ps::bytes_view>, "a blob is finished into a view");
static_assert(std::is_same_v<std::remove_cvref_t<ps::finished<mixed>>,
                             ps::record<ps::field<"raw", ps::bytes_view>, ps::field<"n", int>,
                                        ps::field<"ramp", ps::tensor_view<const float>>>>,
              "a record is finished field by field");
static_assert(std::is_same_v<ps::finished<const std::string&>, const std::string&>,
              "what is finished passes as it is");

}  // namespace element_test

TEST_CASE("core/element: the bytes of blobs, views and texts") {
  CHECK(ps::text_of(ps::as_bytes(element_test::text_blob{"flow"})) == "flow");
  const std::string text = "weir";
  CHECK(ps::as_bytes(text).data() == static_cast<const void*>(text.data()));
  CHECK(ps::as_bytes(ps::bytes_of(text)).size() == 4);
}

TEST_CASE("core/element: finish returns plain values unchanged") {
  int number = 5;
  CHECK(&ps::finish(number) == &number);
  const std::string text = "gate";
  CHECK(&ps::finish(text) == &text);
  const ps::record<ps::field<"n", int>> plain(3);
  CHECK(&ps::finish(plain) == &plain);
}

TEST_CASE("core/element: finish computes the unfinished fields of a record") {
  const element_test::mixed sample(element_test::text_blob{"flow"}, 7, element_test::ramp{});
  const auto done = ps::finish(sample);
  CHECK(ps::text_of(ps::get<"raw">(done)) == "flow");
  CHECK(ps::get<"n">(done) == 7);
  CHECK(ps::get<"ramp">(done).shape() == ps::extents(3));
  CHECK(ps::get<"ramp">(done).values()[2] == 3);
}

TEST_CASE("core/element: finishing a temporary record moves its other fields") {
  using sample = ps::record<ps::field<"raw", element_test::text_blob>, ps::field<"text", std::string>>;
  sample given(element_test::text_blob{"x"}, std::string(100, 'y'));
  const auto* const memory = ps::get<"text">(given).data();
  const auto done = ps::finish(std::move(given));
  CHECK(ps::get<"text">(done).data() == memory);
}
