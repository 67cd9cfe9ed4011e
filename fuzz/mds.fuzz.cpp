// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// An MDS dataset of one shard, and what codecs make of its columns:
// [length of the index, 16 bits][index][shard]

#include <penstock/codec/mds_array.hpp>
#include <penstock/codec/raw_number.hpp>
#include <penstock/source/mds.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/memory_files.hpp>

#include "support/fuzz.hpp"

#include <algorithm>
#include <string>
#include <vector>

using namespace penstock_fuzz;
namespace ps = penstock;

namespace {

template <class Codec, class Value>
void decode(const Value& value) {
  outcome([&] {
    value.check_codec(Codec::codec_name);
    ps::scratch_of<Codec> scratch;
    const auto made = Codec{}.decode(value, scratch);
    if constexpr (requires { made.finish(); }) {
      const auto view = made.finish();
      touch({reinterpret_cast<const std::byte*>(view.data()),
             view.shape().elements() * sizeof(view.data()[0])});
      must(view.shape().elements() <= value.size(), "values are within their column");
    } else if constexpr (requires { made.size(); }) {
      std::uint64_t together = 0;
      for (const std::string& part : made) {
        touch(part);
        together += part.size();
      }
      must(together <= value.size(), "no byte belongs to two parts");
    }
  });
}

template <class Data>
void read(const Data& all, std::uint64_t bytes) {
  const auto reader = all.connect();
  typename decltype(all.connect())::worker worker;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(all.size(), 20); ++i)
    for (const std::uint64_t at : {i, all.size() - 1 - i})
      outcome([&] {
        reader.evaluate({0, at}, worker, [&](const auto& sample) {
          std::uint64_t together = 0;
          for (std::size_t k = 0; k < sample.size(); ++k) {
            const auto value = sample.member(k);
            touch(value.finish());
            together += value.size();
            decode<ps::raw_number<std::int64_t>>(value);
            decode<ps::mds_array<std::uint8_t>>(value);
            decode<ps::mds_array<float>>(value);
            decode<ps::pil_pixels>(value);
            decode<ps::mds_list>(value);
          }
          must(together <= bytes, "no byte belongs to two columns");
        });
      });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const file_in_memory file;
  input in(data, size);
  const auto wanted = in.number<std::uint16_t>();
  const ps::bytes_view rest = in.rest();
  const std::size_t length = std::min<std::size_t>(rest.size(), wanted);
  outcome([&] {
    ps::mds_index index = ps::mds_index_from_string(ps::text_of(rest.first(length)));
    must(index.columns.size() <= index.shards.size(), "each list of columns has a shard");
    if (index.shards.size() != 1) return;
    const ps::bytes_view shard = rest.subspan(length);
    read(ps::mds(ps::memory_files().add_view(index.shards[0].name, shard), index), shard.size());
    // The same through a session that copies.
    file.write(shard);
    index.shards[0].name = file.path().substr(file.path().rfind('/') + 1);
    read(ps::mds(ps::file(std::vector{file.path()}, {.access = ps::file_access::read}), index), shard.size());
  });
  return 0;
}
