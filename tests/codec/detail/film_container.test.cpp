// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/detail/film_container.hpp>

#include "support/catch.hpp"

#include <string>
#include <string_view>

namespace ps = penstock;
using namespace std::string_literals;
using ps::detail::container_extent;
using ps::detail::film_container;
using ps::detail::film_container_of;

TEST_CASE("boxes say how long an mp4 file is", "[codec][film_container]") {
  const std::string head =
      "\0\0\0\x10"
      "ftypisom\0\0\0\0"s;
  CHECK(film_container_of(ps::bytes_of(head)) == film_container::mp4);
  CHECK(film_container_of(ps::bytes_of("\0\0\0\x10"
                                       "fty"s)) == film_container::none);
  CHECK(film_container_of(ps::bytes_of("")) == film_container::none);
  const auto size = [](const std::string& file) { return container_extent(ps::bytes_of(file)).size; };
  CHECK(size(head) == 16);
  CHECK(size(head + "\0\0\0\x0c"
                    "mdat1234"s) == 28);
  CHECK(size(head + "\0\0\0\x0c"
                    "mdat12"s) == 28);  // two bytes are missing
  CHECK(size(head + "\0\0\0\0"
                    "mdat1234"s) == 28);  // up to the end
  CHECK(size(head + "\0\0\0\x01"
                    "mdat\0\0\0\0\0\0\0\x14"
                    "1234"s) == 36);
  CHECK(size(head + "\0\0\0\x01"
                    "mdat\0\0\0\0\0\0\0\x20"
                    "1234"s) == 48);
  CHECK(size(head + "\0\0\0\x01"
                    "mdat\xff\xff\xff\xff\xff\xff\xff\xff"s) == ~std::uint64_t{0});
  CHECK(size(head + "\0\0"s) == 24);  // no whole head of a box
  // nonsense is left to the demuxer
  CHECK(size(head + "\0\0\0\x03"
                    "mdat1234"s) == 28);
}

TEST_CASE("elements say how long an mkv file is", "[codec][film_container]") {
  const std::string head = "\x1a\x45\xdf\xa3\x82zz";
  const std::string segment = "\x18\x53\x80\x67", cluster = "\x1f\x43\xb6\x75",
                    endless = "\x01\xff\xff\xff\xff\xff\xff\xff";
  CHECK(film_container_of(ps::bytes_of(head)) == film_container::matroska);
  const auto size = [](const std::string& file) { return container_extent(ps::bytes_of(file)).size; };
  CHECK(size(head) == 7);
  CHECK(size(head + segment +
             "\x83"
             "abc") == 15);
  CHECK(size(head + segment +
             "\x83"
             "a") == 15);
  CHECK(size(head + segment) == 12);
  CHECK(size(head + segment + endless + cluster + endless + "\xa3\x82zz") == 35);
  CHECK(size(head + segment + endless + cluster + endless + "\xa3\x82z") == 35);
  const auto damage = [](const std::string& file) { return container_extent(ps::bytes_of(file)).damage; };
  constexpr std::uint64_t nowhere = ps::detail::film_extent::nowhere;
  CHECK(damage(head + segment + endless + cluster + endless + "\xa3\x82zz") == nowhere);
  CHECK(damage(head + segment + endless + cluster + endless + "\xa3\x82z") == nowhere);
  // An element without a size that is no group, one that is too long, and others than there are.
  CHECK(size(head + "\xa3\xff"
                    "abc") == 12);
  CHECK(damage(head + "\xa3\xff"
                      "abc") == 7);
  const std::string block = "\xa3\x82zz";
  const auto in_segment = [&](const std::string& elements) {
    return head + segment + static_cast<char>(0x80 + elements.size()) + elements;
  };
  CHECK(damage(in_segment(cluster + "\x88" + block + block)) == nowhere);
  CHECK(damage(in_segment(cluster + "\x88" + block + block) + "anything") == nowhere);
  CHECK(damage(in_segment(cluster + "\x88" + block + "\xa4\x82zz")) == 21);
  CHECK(damage(in_segment(cluster + "\x88" + block + std::string(4, '\0'))) == 21);
  CHECK(damage(in_segment(cluster + "\x88" + block + "\xa3\x83zz")) == 21);
  CHECK(damage(in_segment(cluster + "\x88" + block + "\xa3\x81zz")) == 24);
  CHECK(damage(in_segment("UUUU" + block)) == 12);
}
