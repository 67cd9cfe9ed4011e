// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/cached_form.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace kept_test {

namespace ps = penstock;

namespace {

/// Three halves of a number.
struct halves {
  using unfinished = void;
  using value_type = float;
  static constexpr ps::extents static_shape = ps::extents(3);
  float first = 0;
  [[nodiscard]] static constexpr ps::extents shape() { return static_shape; }
  void write_to(float* to) const {
    for (int i = 0; i < 3; ++i, ++to) *to = first + 0.5f * static_cast<float>(i);
  }
  [[nodiscard]] ps::tensor_view<const float> finish() const { return {}; }
};

/// Bytes that count how often they are read, and that lie in a mapping.
struct mapped {
  using unfinished = void;
  using lasting = void;
  std::string_view text;
  [[nodiscard]] std::uint64_t size() const { return text.size(); }
  void read_into(ps::mutable_bytes into) const { std::ranges::copy(ps::bytes_of(text), into.begin()); }
  [[nodiscard]] ps::bytes_view finish() const { return ps::bytes_of(text); }
};

struct point {
  int x = 0, y = 0;
};

template <class T>
ps::kept<T> keep(const T& value) {
  ps::kept<T> made;
  ps::make_kept(value, made);
  return made;
}

}  // namespace

TEST_CASE("core/cached_form: views become owned, and are shown as views of what is owned") {
  std::string text = "some words";
  const auto kept_text = keep(std::string_view(text));
  text.assign(10, '?');
  static_assert(std::is_same_v<ps::shown_of<std::string_view>, std::string_view>);
  CHECK(ps::show_cached(kept_text) == "some words");
  CHECK(ps::bytes_of_kept(kept_text) == 10);

  std::vector<int> numbers{1, 2, 3};
  const auto kept_span = keep(std::span<const int>(numbers));
  numbers.assign(3, 0);
  static_assert(std::is_same_v<ps::shown_of<std::vector<int>>, std::span<const int>>);
  CHECK(ps::show_cached(kept_span)[2] == 3);
  CHECK(ps::bytes_of_kept(kept_span) == 12);

  std::vector<float> values{1, 2, 3, 4};
  const auto kept_tensor = keep(ps::tensor_view<const float>(values.data(), ps::extents(2, 2)));
  values.assign(4, 0.0f);
  static_assert(std::is_same_v<ps::shown_of<ps::tensor_view<const float>>, ps::tensor_view<const float>>);
  CHECK(ps::show_cached(kept_tensor).shape() == ps::extents(2, 2));
  CHECK(ps::show_cached(kept_tensor).data()[3] == 4);
  CHECK(ps::bytes_of_kept(kept_tensor) == 16);
}

TEST_CASE("core/cached_form: bytes are copied even if they would last") {
  std::string bytes = "abc";
  const auto kept = keep(mapped{bytes});
  bytes = "xyz";
  static_assert(std::is_same_v<ps::shown_of<mapped>, ps::bytes_view>);
  CHECK(std::ranges::equal(ps::show_cached(kept), ps::bytes_of(std::string_view("abc"))));
  CHECK(ps::bytes_of_kept(kept) == 3);
}

TEST_CASE("core/cached_form: an array whose type knows its shape still does") {
  const auto kept = keep(halves{4});
  const auto shown = ps::show_cached(kept);
  static_assert(ps::static_array_expression<std::remove_cvref_t<decltype(shown)>>);
  static_assert(std::remove_cvref_t<decltype(shown)>::static_shape == ps::extents(3));
  float to[3] = {};
  ps::write_array(shown, ps::destination<float>(to, ps::extents(3)));
  CHECK(to[2] == 5);
  CHECK(shown.finish().data()[1] == 4.5f);
  CHECK(ps::bytes_of_kept(kept) == 12);
}

TEST_CASE("core/cached_form: numbers are copies, records are kept field by field, anything else in place") {
  static_assert(std::is_same_v<ps::shown_of<int>, int>);
  static_assert(std::is_same_v<ps::shown_of<point>, point>);
  static_assert(std::is_same_v<ps::shown_of<std::array<float, 4>>, std::array<float, 4>>);
  using list = std::vector<std::string>;
  static_assert(std::is_same_v<ps::shown_of<list>, const list&>);
  std::string text = "a text";
  using sample = ps::record<ps::field<"text", std::string_view>, ps::field<"cls", int>>;
  const auto kept = keep(sample(std::string_view(text), 7));
  text = "other!";
  const auto shown = ps::show_cached(kept);
  CHECK(ps::get<"text">(shown) == "a text");
  CHECK(ps::get<"cls">(shown) == 7);
  static_assert(std::is_same_v<std::remove_cvref_t<decltype(shown)>, sample>);
  CHECK(ps::bytes_of_kept(kept) == 6);
  CHECK(ps::show_cached(keep(list{"a", "b"}))[1] == "b");
}

TEST_CASE("core/cached_form: the bytes of containers are those of what they hold, too") {
  using list = std::vector<std::string>;
  const list words{std::string(1000, 'a'), std::string(500, 'b')};
  CHECK(ps::bytes_of_kept(keep(words)) == 2 * sizeof(std::string) + 1500);
  CHECK(ps::bytes_of_kept(keep(std::vector<list>{words, {}})) ==
        2 * sizeof(list) + 2 * sizeof(std::string) + 1500);
  CHECK(ps::bytes_of_kept(keep(std::optional<std::string>(words[0]))) == 1000);
  CHECK(ps::bytes_of_kept(keep(std::optional<std::string>())) == 0);
  CHECK(ps::bytes_of_kept(keep(std::array<std::string, 2>{words[0], words[1]})) == 1500);
  CHECK(ps::bytes_of_kept(keep(std::pair<int, std::string>(7, words[1]))) == 500);
  CHECK(ps::bytes_of_kept(keep(std::optional<int>(7))) == 0);
  CHECK(ps::bytes_of_kept(keep(std::vector<bool>(64))) >= 8);
}

TEST_CASE("core/cached_form: views in types that are kept as they are cannot be kept") {
  using text = std::string_view;
  static_assert(ps::keepable<text> && ps::keepable<std::span<const float>> && ps::keepable<mapped>);
  static_assert(ps::keepable<std::optional<std::string>> && ps::keepable<std::array<int, 3>>);
  static_assert(!ps::keepable<std::optional<text>> && !ps::keepable<std::array<text, 2>>);
  static_assert(!ps::keepable<std::vector<text>> && !ps::keepable<std::span<const text>>);
  static_assert(!ps::keepable<std::pair<int, text>> && !ps::keepable<std::tuple<int, std::span<int>>>);
  static_assert(!ps::keepable<std::variant<int, ps::bytes_view>> && !ps::keepable<std::optional<mapped>>);
  static_assert(ps::keepable<ps::record<ps::field<"a", text>, ps::field<"b", halves>>>);
  static_assert(!ps::keepable<ps::record<ps::field<"a", text>, ps::field<"b", std::optional<text>>>>);
}

TEST_CASE("core/cached_form: what is kept is added up") {
  ps::kept_counters all{1, 2, 3};
  all += ps::kept_counters{10, 20, 30};
  CHECK(all == ps::kept_counters{11, 22, 33});
}

}  // namespace kept_test
