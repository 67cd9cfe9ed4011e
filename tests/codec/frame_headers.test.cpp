// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The headers of zstd and lz4 frames, read without their libraries, so that this also runs on
// architectures for which those are not installed. The bytes are written by hand from the formats'
// specifications.

#include <penstock/codec/detail/packed_blob.hpp>
#include <penstock/core/error.hpp>

#include "support/catch.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>

using namespace penstock;

namespace {

std::string octets(std::initializer_list<int> values, std::size_t payload = 0) {
  std::string text;
  for (const int value : values) text.push_back(static_cast<char>(value));
  return text + std::string(payload, 'x');
}

template <class Walk>
std::optional<error> refusal_of(const std::string& packed) {
  try {
    Walk walk(bytes_of(packed));
    if constexpr (requires { walk.run(); }) {
      (void)walk.run();
    } else {
      while (!walk.done()) (void)walk.next();
    }
  } catch (const error& e) {
    return e;
  }
  return std::nullopt;
}

// The header of one last raw block of `size` bytes: size << 3 | 1, in three bytes.
std::string zstd_block(std::size_t size) {
  const auto header = static_cast<int>(size << 3 | 1);
  return octets({header & 255, header >> 8 & 255, header >> 16}, size);
}

}  // namespace

TEST_CASE("codec/frame_headers: a zstd frame gives its size in one, two, four or eight bytes") {
  struct example {
    std::string head;
    std::uint64_t content;
  };
  const std::size_t size = 1000;
  const example examples[] = {
      // one segment, two bytes less 256: 744 = 0x02e8
      {octets({0x28, 0xb5, 0x2f, 0xfd, 0x60, 0xe8, 0x02}), 1000},
      // a window, four bytes
      {octets({0x28, 0xb5, 0x2f, 0xfd, 0x80, 0x58, 0xe8, 0x03, 0x00, 0x00}), 1000},
      // a window, a dictionary number of four bytes that is 0, eight bytes
      {octets({0x28, 0xb5, 0x2f, 0xfd, 0xc3, 0x58, 0, 0, 0, 0, 0xe8, 0x03, 0, 0, 0, 0, 0, 0}), 1000}};
  for (const example& e : examples) {
    const std::string packed = e.head + zstd_block(size);
    const detail::frames_extent extent = detail::zstd_frame_walk(bytes_of(packed)).run();
    CHECK(extent.known);
    CHECK(extent.content == e.content);
    CHECK(extent.bound == size);
  }
  const std::string one_byte = octets({0x28, 0xb5, 0x2f, 0xfd, 0x20, 200}) + zstd_block(200);
  CHECK(detail::zstd_frame_walk(bytes_of(one_byte)).run().content == 200);
  const std::string unknown = octets({0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58}) + zstd_block(size);
  CHECK_FALSE(detail::zstd_frame_walk(bytes_of(unknown)).run().known);
  // A skippable frame of 258 bytes between two others.
  const std::string three = one_byte + octets({0x5f, 0x2a, 0x4d, 0x18, 0x02, 0x01, 0, 0}, 258) + one_byte;
  CHECK(detail::zstd_frame_walk(bytes_of(three)).run().content == 400);
}

TEST_CASE("codec/frame_headers: numbers in zstd frames with the wrong byte order are refused") {
  const auto turned = refusal_of<detail::zstd_frame_walk>(octets({0xfd, 0x2f, 0xb5, 0x28, 0x20, 0}));
  REQUIRE(turned);
  CHECK(turned->offset() == 0u);
  // 0x03e8 byte-swapped is 0xe803: more than the block can hold
  const auto lie = refusal_of<detail::zstd_frame_walk>(
      octets({0x28, 0xb5, 0x2f, 0xfd, 0x80, 0x58, 0x00, 0x00, 0x03, 0xe8}) + zstd_block(1000));
  REQUIRE(lie);
  CHECK_THAT(std::string(lie->message()), penstock_test::contains("says that it holds 3892510720 bytes"));
  const auto dictionary = refusal_of<detail::zstd_frame_walk>(
      octets({0x28, 0xb5, 0x2f, 0xfd, 0x22, 0x34, 0x12, 0}) + zstd_block(0));
  REQUIRE(dictionary);
  CHECK_THAT(std::string(dictionary->message()), penstock_test::contains("dictionary 4660"));
}

TEST_CASE("codec/frame_headers: an lz4 frame gives its size, and its blocks give theirs") {
  // version 1, independent blocks of up to 64 KiB, a size of 300 in eight bytes; one stored block of 300
  const std::string packed =
      octets({0x04, 0x22, 0x4d, 0x18, 0x68, 0x40, 0x2c, 0x01, 0, 0, 0, 0, 0, 0, 0x00, 0x2c, 0x01, 0, 0x80},
             300) +
      octets({0, 0, 0, 0});
  detail::lz4_frame_walk walk(bytes_of(packed));
  const detail::lz4_frame frame = walk.next();
  CHECK(walk.done());
  CHECK(frame.known);
  CHECK(frame.content == 300);
  CHECK(frame.bound == 300);
  CHECK(frame.bytes.size() == packed.size());

  // a compressed block of 4 bytes may expand to 1020
  const std::string small =
      octets({0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x00, 4, 0, 0, 0}, 4) + octets({0, 0, 0, 0});
  detail::lz4_frame_walk second(bytes_of(small));
  CHECK(second.next().bound == 1020);

  const std::string skipped = octets({0x50, 0x2a, 0x4d, 0x18, 0x02, 0x01, 0, 0}, 258);
  detail::lz4_frame_walk third(bytes_of(skipped));
  CHECK(third.next().skippable);
  CHECK(third.done());
}

TEST_CASE("codec/frame_headers: numbers in lz4 frames with the wrong byte order are refused") {
  CHECK(refusal_of<detail::lz4_frame_walk>(octets({0x18, 0x4d, 0x22, 0x04, 0x60, 0x40, 0x00, 0, 0, 0, 0})));
  const auto legacy = refusal_of<detail::lz4_frame_walk>(octets({0x02, 0x21, 0x4c, 0x18, 0, 0, 0, 0}));
  REQUIRE(legacy);
  CHECK_THAT(std::string(legacy->message()), penstock_test::contains("legacy"));
  const auto lie = refusal_of<detail::lz4_frame_walk>(
      octets({0x04, 0x22, 0x4d, 0x18, 0x68, 0x40, 0, 0, 0, 0, 0, 0, 0x01, 0x2c, 0, 0, 0, 0, 0}));
  REQUIRE(lie);
  CHECK_THAT(std::string(lie->message()), penstock_test::contains("says that it holds 3170815612645539840"));
}
