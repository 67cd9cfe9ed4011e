// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Header and index of a film, as the codec video reads them, without decoding: [1 recover, 2 as stored][file]

#include <penstock/codec/video.hpp>

#include "support/fuzz.hpp"

#include <cmath>

namespace ps = penstock;
using namespace penstock_fuzz;

namespace {

/// What must hold of every index that was read.
void check_index(const ps::detail::film_reader& reader, const ps::film_limits& limits) {
  const ps::frame_index& index = reader.index();
  must(index.packets().size() <= limits.frames, "the number of packets is limited");
  must(index.frames() <= index.packets().size(), "frames are packets");
  must(index.reordered() <= 16, "frames wait for 16 others at most");
  must(reader.stored().width <= limits.width && reader.stored().height <= limits.height,
       "the size is limited");
  for (const ps::film_packet& packet : index.packets())
    must(reader.bytes_of(packet).size() == packet.size, "a packet has its bytes");
  for (std::uint32_t f = 0; f < index.frames(); ++f) {
    const std::uint32_t packet = index.packet_of(f);
    must(packet < index.packets().size() && index.frame_of(packet) == f && index.packets()[packet].shown,
         "a frame is a packet that is shown");
    must(f == 0 || index.time_of(f - 1) <= index.time_of(f), "times ascend");
    const ps::decode_range range = index.packets_for(f);
    must(range.first <= range.last && range.last == packet, "what is decoded ends with the frame");
    must(index.earlier(range.first, 1) <= range.first, "earlier is before");
  }
  if (index.frames() == 0) return;
  const std::uint32_t first = index.frame_at(index.begin_time());
  must(first < index.frames() || !(index.begin_time() < index.end_time()),
       "the first frame is shown when the film begins");
  must(index.frame_at(std::nan("")) == index.frames(), "no frame is shown at no time");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  av_log_set_level(AV_LOG_QUIET);
  static ps::detail::film_reader reader;  // what was read before changes nothing
  input in(data, size);
  const unsigned how = in.number();
  const ps::bytes_view bytes = in.rest();
  const ps::film_limits limits{.width = 4096, .height = 4096, .frames = 10'000};
  outcome([&] {
    reader.open(bytes, limits, (how & 2) == 0, (how & 1) != 0, "video");
    check_index(reader, limits);
    const std::size_t packets = reader.index().packets().size();
    for (int again = 0; again < 2; ++again) {
      reader.open(bytes, limits, (how & 2) == 0, (how & 1) != 0, "video", 1 << 20);
      must(reader.index().packets().size() == packets, "an index that is kept is the film's");
    }
  });
  return 0;
}
