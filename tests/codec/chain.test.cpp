// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/chain.hpp>
#include <penstock/codec/identity.hpp>
#include <penstock/codec/integer.hpp>
#include <penstock/codec/npy.hpp>
#include <penstock/codec/text.hpp>
#include <penstock/core/destination.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/count_allocations.hpp"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

namespace ps = penstock;
using penstock_test::contains;

namespace chain_test {

/// A stand-in for a decompressor: shifts each byte by an option, in the worker's memory.
struct moved_bytes {
  using unfinished = void;
  ps::bytes_view from;
  ps::buffer* scratch;
  int by;

  [[nodiscard]] std::uint64_t size() const { return from.size(); }
  void read_into(ps::mutable_bytes into) const {
    for (std::size_t i = 0; i < from.size(); ++i)
      into[i] = static_cast<std::byte>(std::to_integer<int>(from[i]) + by);
  }
  [[nodiscard]] ps::bytes_view finish() const {
    scratch->resize_for_overwrite(from.size());
    read_into(scratch->span());
    return scratch->view();
  }
};
struct moved {
  int by = 1;
  static constexpr std::string_view codec_name = "moved";
  using scratch = ps::buffer;
  template <ps::byte_element Bytes>
  moved_bytes decode(const Bytes& in, scratch& s) const {
    return {ps::as_bytes(in), &s, by};
  }
};
using both = ps::chain<moved, moved>;

}  // namespace chain_test

using chain_test::moved;
static_assert(ps::codec<ps::chain<moved, ps::npy<float>>>);
static_assert(ps::blob<ps::decoded<chain_test::both, ps::bytes_view>>);
static_assert(ps::array_expression<ps::decoded<ps::chain<moved, ps::npy<float>>, ps::bytes_view>>);
static_assert(
    std::is_same_v<ps::scratch_of<ps::chain<moved, ps::text>>, std::tuple<ps::buffer, ps::no_scratch>>);

TEST_CASE("codec/chain: each codec feeds the next, and has its own options and scratch") {
  const ps::chain codec{moved{.by = 3}, moved{.by = -5}, ps::integer{}};
  static_assert(std::is_same_v<decltype(codec), const ps::chain<moved, moved, ps::integer>>);
  decltype(codec)::scratch scratch;
  CHECK(codec.decode(std::string_view("46"), scratch) == 24);
  ps::chain<moved, ps::text>::scratch other;
  CHECK(ps::chain<moved, ps::text>{}.decode(std::string_view("HAL"), other) == "IBM");
}

TEST_CASE("codec/chain: an unfinished result stays unfinished and outlives the chain's steps") {
  const std::vector<float> values = {1, 2, 3};
  auto file = ps::npy_bytes<float>(ps::extents(3), values);
  for (std::byte& b : file) b = static_cast<std::byte>(std::to_integer<int>(b) - 1);
  ps::chain<moved, ps::npy<float>>::scratch scratch;
  std::vector<float> out(3);
  const auto sample = [&] {
    const auto array = ps::chain<moved, ps::npy<float>>{}.decode(file, scratch);
    REQUIRE(array.shape() == ps::extents(3));
    array.write_to(ps::destination(out.data(), array.shape()));
  };
  sample();
  CHECK(out == values);
  CHECK(penstock_test::allocations_of([&] {
          static_cast<void>(ps::chain<moved, ps::npy<float>>{}.decode(file, scratch).finish());
        }) == 0);
  ps::chain<moved, ps::identity>::scratch raw;
  const auto blob = ps::chain<moved, ps::identity>{}.decode(std::string_view("HAL"), raw);
  CHECK(std::get<0>(raw).capacity() == 0);  // nothing was expanded yet
  CHECK(ps::text_of(blob.finish()) == "IBM");
}

TEST_CASE("codec/chain: reads a blob once, and errors of any step pass through") {
  int reads = 0;
  const auto bytes = codec_test::to_vector("31");
  ps::chain<moved, ps::integer>::scratch scratch;
  CHECK(ps::chain<moved, ps::integer>{}.decode(codec_test::counted_blob{bytes, &reads}, scratch) == 42);
  CHECK(reads == 1);
  const auto error = codec_test::caught(
      [&] { static_cast<void>(ps::chain<moved, ps::integer>{}.decode(std::string_view("b`s"), scratch)); });
  CHECK(error.code == ps::errc::format);
  CHECK_THAT(error.line, contains("\"cat\""));
}
