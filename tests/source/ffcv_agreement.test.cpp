// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/ffcv.hpp>

#include "support/catch.hpp"
#include "support/format_peers.hpp"
#include "support/temp_dir.hpp"

#include <penstock/codec/ffcv_image.hpp>
#include <penstock/codec/mds_array.hpp>
#include <penstock/codec/text.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace ps = penstock;

namespace ffcv_agreement_test {

constexpr int seeds = 24;

/// Takes the place of a codec of JPEG: a pixel that is a hash of the bytes, since decoders differ.
struct hashed_image {
  static constexpr std::string_view codec_name = "hashed_image";
  static constexpr std::string_view extensions[] = {"jpg"};
  struct scratch {
    ps::image_scratch image;
    std::array<std::byte, 3> pixel;
  };
  static bool recognises(ps::bytes_view) { return true; }
  template <ps::byte_element Bytes>
  ps::raw_image<ps::rgb8> decode(const Bytes& in, scratch& s) const {
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (const std::byte one : ps::as_bytes(in))
      hash = (hash ^ std::to_integer<std::uint64_t>(one)) * 0x100000001b3u;
    for (std::size_t i = 0; i < 3; ++i) s.pixel[i] = static_cast<std::byte>(hash >> (8 * (2 - i)));
    return {s.image, s.pixel, ps::image_size{1, 1}, false};
  }
};

/// A value of a field, read with the codec for it.
const auto value_text = [](std::string_view kind, const auto& value) -> std::string {
  using namespace penstock_test;
  if (kind == "b") return quoted_hex(value.finish());
  if (kind == "t")
    return decoded_text(ps::text{}, value,
                        [](std::string_view one) { return quoted_hex(ps::bytes_of(one)); });
  const auto array = [](const auto& one) { return array_text(one); };
  if (kind == "im") return decoded_text(ps::ffcv_image<hashed_image>{}, value, array);
  if (kind.front() == 'a')
    return with_dtype(kind.substr(1),
                      [&]<class T>() { return decoded_text(ps::mds_array<T>{}, value, array); });
  return raw_number_text(kind, value);
};

}  // namespace ffcv_agreement_test

TEST_CASE("source/ffcv: what FFCV writes, value for value") {
  const auto peer = penstock_test::format_peer::find("ffcv");
  if (!peer) return;
  const penstock_test::temp_dir dir;
  peer->run("write ffcv", dir.path(), 0, ffcv_agreement_test::seeds);
  for (int seed = 0; seed < ffcv_agreement_test::seeds; ++seed) {
    INFO("seed " << seed);
    penstock_test::check_peer_values(ps::ffcv((dir / std::to_string(seed)).string()), dir.path(), seed,
                                     ffcv_agreement_test::value_text);
  }
}
