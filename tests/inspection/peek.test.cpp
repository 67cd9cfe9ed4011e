// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/inspection/peek.hpp>

#include <penstock/codec/integer.hpp>
#include <penstock/core/arrow_column.hpp>
#include <penstock/core/half.hpp>
#include <penstock/core/strided_view.hpp>
#include <penstock/image.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/take.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace peek_test {

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("inspection/peek: one sample, its key, its fields and their first bytes") {
  using sample = ps::record<ps::field<"x", int>, ps::field<"txt", std::string>>;
  const auto source =
      ps::from(std::vector<sample>{sample(5, "hello"), sample(6, std::string("\x01\x02", 2))});
  CHECK(peek(source) == "sample at position 0:0, key 0\n  x: 5 (int32)\n  txt: 5 characters: \"hello\"\n");
  CHECK_THAT(peek(source, 1), contains("txt: 2 characters: \"\\x01\\x02\"\n"));
  CHECK_THAT(peek(source | ps::map<"x">([](int x) { return x * 10; }) | ps::batch(2, ps::ragged)),
             contains("x: 50"));
}

TEST_CASE("inspection/peek: numbers are shown as numbers, with their type and shape") {
  const auto shown = [](const auto& value) {
    using type = std::remove_cvref_t<decltype(value)>;
    const std::string all = peek(ps::from(std::vector<type>{value}));
    return all.substr(all.find('\n') + 3, all.size() - all.find('\n') - 4);
  };
  CHECK(shown(std::vector<float>{0.1f, -2.5f, 1e-9f}) == "float32 (3,): 0.1, -2.5, 1e-09");
  CHECK(shown(std::vector<double>(20, 0.25)) ==
        "float64 (20,): 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, ...");
  CHECK(shown(std::vector<std::uint8_t>{72, 101}) == "uint8 (2,): 72, 101");  // no text
  CHECK(shown(std::vector<ps::half>{ps::half(1.5f)}) == "float16 (1,): 1.5");
  CHECK(shown(std::vector<std::int64_t>{}) == "int64 (0,)");
  CHECK(shown(std::array<std::int16_t, 2>{-1, 2}) == "int16 (2,): -1, 2");
  CHECK(shown(0.1) == "0.1 (float64)");
  CHECK(shown(3e-12f) == "3e-12 (float32)");
  CHECK(shown(std::uint8_t{65}) == "65 (uint8)");
  CHECK(shown(true) == "true (bool)");
  CHECK(shown(std::vector<std::string>{"a", "b"}) == "2 values: [1 character: \"a\", 1 character: \"b\"]");
  CHECK(shown(std::optional<int>{}) == "null");
  CHECK(shown(std::optional<int>{7}) == "7 (int32)");
  CHECK(shown(std::pair<int, float>{1, 0.5f}) == "(1 (int32), 0.5 (float32))");
  CHECK(shown(std::string("\xc3\xa9t\xc3\xa9\n")) == "6 characters: \"\xc3\xa9t\xc3\xa9\\n\"");
  CHECK(shown(std::string("\x1b[2J")) == "4 characters: \"\\x1b[2J\"");
}

TEST_CASE("inspection/peek: of an image its type, its shape and its first values, even if they are letters") {
  const std::vector<std::uint8_t> pixels(5 * 4 * 3, 'A');
  const auto images = ps::from(first_ints(1)) | ps::map([&](int) {
                        return ps::shown_image<std::uint8_t, 3>(
                            ps::pixel_view<std::uint8_t, 3>(pixels.data(), ps::image_size{4, 5}));
                      });
  CHECK_THAT(peek(images), contains("  image uint8 (5, 4, 3): 65, 65, 65, 65, 65, 65, 65, 65, ...\n"));
  CHECK_THAT(peek(images | ps::map(ps::to_float(), ps::to_chw())), contains("  float32 (3, 5, 4): 0.254"));
}

TEST_CASE("inspection/peek: of bytes how many they are and what they look like") {
  const auto shown = [](std::string_view text) { return ps::detail::bytes_text(ps::bytes_of(text)); };
  CHECK(shown("hello\n") == "6 bytes: \"hello\\n\"");
  CHECK(shown("") == "0 bytes");
  CHECK(shown(std::string_view("\0\1\2", 3)) == "3 bytes: 00 01 02");
  CHECK(shown("\xff\xd8\xff\xe0") == "4 bytes, a JPEG image: ff d8 ff e0");
  CHECK(shown("RIFF....WEBPVP8 ") ==
        "16 bytes, a WebP image: 52 49 46 46 2e 2e 2e 2e 57 45 42 50 56 50 38 20");
  CHECK(shown(std::string(63, 'a') + "\xc3\xa9 and more") ==
        "74 bytes: \"" + std::string(63, 'a') + "\" ...");
}

TEST_CASE("inspection/peek: columns of Arrow as their values") {
  ps::arrow_type number = ps::arrow_type::of_format("f"), list = ps::arrow_type::of_format("+l");
  list.children = {number};
  const float values[] = {0.5f, 1, -2};
  const std::int32_t offsets[] = {0, 1, 3};
  ps::arrow_column of_values, of_lists;
  of_values.type = &list.children[0];
  of_values.length = 3;
  of_values.values = reinterpret_cast<const std::byte*>(values);
  of_lists.type = &list;
  of_lists.length = 2;
  of_lists.offsets = reinterpret_cast<const std::byte*>(offsets);
  of_lists.children = {of_values};
  CHECK(ps::detail::arrow_text(ps::arrow_cell(of_values, 0)) == "0.5 (float)");
  CHECK(ps::detail::arrow_text(ps::arrow_cell(of_lists, 1)) == "[1, -2] (list<float>)");
  CHECK(ps::detail::arrow_text(ps::arrow_cell::null_of(of_values)) == "null (float)");
}

TEST_CASE("inspection/peek: of a strided view the values, and no gaps") {
  const auto crops = ps::from(first_ints(2)) | ps::map([](int) {
                       static const int memory[8] = {1, 2, 3, 4, 5, 6, 7, 8};
                       return ps::strided_view<const int>(memory, ps::extents(2, 3), {4, 1});
                     });
  CHECK_THAT(peek(crops), contains("  int32 (2, 3): 1, 2, 3, 5, 6, 7 (with strides)\n"));
}

TEST_CASE("inspection/peek: beyond the end, dropped samples and empty sources are reported, not thrown") {
  CHECK_THAT(peek(ps::from(first_ints(3)) | ps::take(2), 2), contains("beyond the end: there are 2 samples"));
  CHECK_THAT(peek(ps::from(first_ints(3)) | ps::filter([](int) { return false; })),
             contains("dropped by a filter"));
  CHECK_THAT(peek(ps::from(first_ints(0))), contains("beyond the end"));
}

TEST_CASE("inspection/peek: an error of the chain says where it happened") {
  const auto bad = ps::from(std::vector<std::string>{"1", "x"}) | ps::decode<ps::integer>;
  CHECK_THAT(peek(bad), contains("  1 (int64)\n"));
  CHECK_THAT(error_of([&] { (void)peek(bad, 1); }), contains("[stage decode<integer>, position 0:1]"));
}

}  // namespace peek_test
