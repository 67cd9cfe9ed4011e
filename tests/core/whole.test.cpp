// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/whole.hpp>

#include <penstock/core/strided_view.hpp>

#include "support/catch.hpp"
#include "support/count_allocations.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace ps = penstock;

namespace whole_test {

struct text_blob {
  using unfinished = void;
  std::string_view text;
  [[nodiscard]] std::uint64_t size() const { return text.size(); }
  void read_into(ps::mutable_bytes into) const {
    for (std::size_t i = 0; i < into.size(); ++i) into[i] = static_cast<std::byte>(text[i]);
  }
  [[nodiscard]] ps::bytes_view finish() const { return ps::bytes_of(text); }
};
struct mapped_blob : text_blob {
  static constexpr bool lasting = true;
};
struct ramp {
  using unfinished = void;
  using value_type = int;
  std::uint64_t length = 0;
  [[nodiscard]] ps::extents shape() const { return ps::extents(length, 2); }
  void write_to(int* to) const {
    for (std::uint64_t i = 0; i < 2 * length; ++i) to[i] = static_cast<int>(i);
  }
};
struct bag {
  using is_open_sample = void;
  using blob_type = text_blob;
  std::string_view name_of_sample;
  std::span<const std::pair<std::string_view, std::string_view>> members;
  [[nodiscard]] std::string_view key() const { return name_of_sample; }
  [[nodiscard]] std::size_t size() const { return members.size(); }
  [[nodiscard]] std::string_view name(std::size_t i) const { return members[i].first; }
  [[nodiscard]] text_blob member(std::size_t i) const { return {members[i].second}; }
};

static_assert(std::is_same_v<ps::whole<int>, int> &&
                  std::is_same_v<ps::whole<const std::string&>, std::string>,
              "what owns itself is whole");
static_assert(std::is_same_v<ps::whole<std::string_view>, std::string>, "a view of a text becomes a text");
static_assert(std::is_same_v<ps::whole<std::span<const int>>, std::vector<int>>, "a span becomes a vector");
static_assert(std::is_same_v<ps::whole<ps::bytes_view>, ps::whole_bytes> &&
                  std::is_same_v<ps::whole<text_blob>, ps::whole_bytes>,
              "bytes and blobs become owned bytes");
static_assert(std::is_same_v<ps::whole<mapped_blob>, ps::bytes_view>, "a lasting value is not copied");
static_assert(std::is_same_v<ps::whole<ramp>, ps::whole_tensor<int>> &&
                  std::is_same_v<ps::whole<ps::tensor_view<const int>>, ps::whole_tensor<int>>,
              "arrays become owned arrays");
static_assert(std::is_same_v<ps::whole<bag>, ps::whole_sample>, "open samples become owned ones");
static_assert(std::is_same_v<ps::whole<ps::record<ps::field<"a", text_blob>, ps::field<"b", int>>>,
                             ps::record<ps::field<"a", ps::whole_bytes>, ps::field<"b", int>>>,
              "records become whole field by field");
static_assert(std::is_same_v<ps::whole<ps::whole<ramp>>, ps::whole<ramp>> &&
                  std::is_same_v<ps::whole<ps::whole_bytes>, ps::whole_bytes> &&
                  std::is_same_v<ps::whole<ps::whole_sample>, ps::whole_sample>,
              "what is whole stays as it is");

/// Makes `first` and then `second` whole in one object; returns the number of allocations for the
/// second.
template <class V>
std::uint64_t allocations_again(const V& first, const V& second, ps::whole<V>& into) {
  ps::make_whole(first, into);
  return penstock_test::allocations_of([&] { ps::make_whole(second, into); });
}

}  // namespace whole_test

TEST_CASE("core/whole: bytes and texts are copied into reused memory") {
  const std::string long_text(200, 'x'), short_text(150, 'y');
  {
    ps::whole_bytes bytes;
    CHECK(whole_test::allocations_again(whole_test::text_blob{long_text}, whole_test::text_blob{short_text},
                                        bytes) == 0);
    CHECK(ps::text_of(bytes.view()) == short_text);
    CHECK(ps::text_of(bytes) == short_text);
    CHECK(bytes.size() == 150);
  }
  {
    ps::whole_bytes bytes;
    CHECK(whole_test::allocations_again(ps::bytes_of(long_text), ps::bytes_of(short_text), bytes) == 0);
    CHECK(ps::text_of({bytes.data(), bytes.size()}) == short_text);
    ps::make_whole(ps::bytes_view{}, bytes);
    CHECK(bytes.size() == 0);
  }
  {
    std::string text;
    CHECK(whole_test::allocations_again(std::string_view(long_text), std::string_view(short_text), text) ==
          0);
    CHECK(text == short_text);
  }
  {
    std::vector<char> letters;
    CHECK(whole_test::allocations_again(std::span<const char>(long_text), std::span<const char>(short_text),
                                        letters) == 0);
    CHECK(letters.size() == 150);
  }
  {
    ps::bytes_view view;
    ps::make_whole(whole_test::mapped_blob{{long_text}}, view);
    CHECK(view.data() == static_cast<const void*>(long_text.data()));
  }
}

TEST_CASE("core/whole: arrays keep their shape") {
  ps::whole_tensor<int> tensor;
  CHECK(whole_test::allocations_again(whole_test::ramp{50}, whole_test::ramp{3}, tensor) == 0);
  CHECK(tensor.shape() == ps::extents(3, 2));
  CHECK(tensor.values()[5] == 5);
  CHECK(tensor.view()[2].values()[1] == 5);

  ps::whole_tensor<int> other;
  CHECK(whole_test::allocations_again(tensor.view(), tensor.view(), other) == 0);
  CHECK(other.shape() == tensor.shape());
  CHECK(other.values()[5] == 5);
}

TEST_CASE("core/whole: records become whole field by field") {
  using sample = ps::record<ps::field<"raw", whole_test::text_blob>, ps::field<"n", int>,
                            ps::field<"text", std::string_view>>;
  const std::string text(100, 't');
  ps::whole<sample> into;
  CHECK(whole_test::allocations_again(sample(whole_test::text_blob{text}, 1, text),
                                      sample(whole_test::text_blob{"flow"}, 2, "weir"), into) == 0);
  CHECK(ps::text_of(ps::get<"raw">(into)) == "flow");
  CHECK(ps::get<"n">(into) == 2);
  CHECK(ps::get<"text">(into) == "weir");
}

TEST_CASE("core/whole: an open sample keeps the memory of members it no longer has") {
  using pair = std::pair<std::string_view, std::string_view>;
  const std::vector<pair> many{
      {"jpg", "pixels"}, {"cls", "7"}, {"txt", "a rather long text that is no small string"}};
  const std::vector<pair> one{{"cls", "8"}};
  ps::whole_sample into;
  CHECK(whole_test::allocations_again(whole_test::bag{"first", many}, whole_test::bag{"second", one}, into) ==
        0);
  CHECK(into.key() == "second");
  CHECK(into.size() == 1);
  CHECK(into.name(0) == "cls");
  CHECK(ps::text_of(into["cls"]) == "8");
  CHECK_THROWS_WITH(into["jpg"],
                    penstock_test::contains("no member 'jpg'") && penstock_test::contains("key second"));
  CHECK(penstock_test::allocations_of([&] { ps::make_whole(whole_test::bag{"third", many}, into); }) == 0);
  CHECK(ps::text_of(into["jpg"]) == "pixels");
}

TEST_CASE("core/whole: values that own themselves are copied or moved") {
  std::string text;
  ps::make_whole(std::string("flow"), text);
  CHECK(text == "flow");
  int n = 0;
  ps::make_whole(5, n);
  CHECK(n == 5);
  std::string given(100, 'z');
  const auto* const memory = given.data();
  ps::make_whole(std::move(given), text);
  CHECK(text.data() == memory);
}

TEST_CASE("core/whole: a whole value can be passed on") {
  ps::whole_tensor<int> tensor, moved;
  ps::make_whole(whole_test::ramp{3}, tensor);
  ps::make_whole(tensor, moved);
  CHECK(moved.shape() == ps::extents(3, 2));
  ps::whole_bytes bytes, taken;
  ps::make_whole(ps::bytes_of("flow"), bytes);
  ps::make_whole(std::move(bytes), taken);
  CHECK(ps::text_of(taken) == "flow");
}

TEST_CASE("run/whole: a view with strides becomes an array without gaps") {
  STATIC_REQUIRE(std::is_same_v<ps::whole<ps::strided_view<const int>>, ps::whole_tensor<int>>);
  const int memory[] = {1, 2, -1, 3, 4, -1};
  ps::whole_tensor<int> into;
  ps::make_whole(ps::strided_view<const int>(memory, ps::extents(2, 2), {3, 1}), into);
  CHECK(into.shape() == ps::extents(2, 2));
  CHECK(std::vector<int>(into.values().begin(), into.values().end()) == std::vector<int>{1, 2, 3, 4});
}

TEST_CASE("run/whole: bools are an array of bools, which can be copied") {
  const bool memory[] = {true, false, true};
  ps::whole_tensor<bool> into;
  ps::make_whole(ps::tensor_view<const bool>(memory, ps::extents(3)), into);
  const ps::whole_tensor<bool> copy = into;
  const std::span<const bool> values = copy.values();
  CHECK(std::vector<bool>(values.begin(), values.end()) == std::vector<bool>{true, false, true});
}
