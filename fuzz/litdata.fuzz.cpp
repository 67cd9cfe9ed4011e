// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A LitData dataset of one chunk, and what codecs make of its leaves:
// [length of the index, 16 bits][index][chunk]

#include <penstock/codec/litdata_array.hpp>
#include <penstock/source/litdata.hpp>
#include <penstock/storage/memory_files.hpp>

#include "support/fuzz.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

using namespace penstock_fuzz;
namespace ps = penstock;

namespace {

template <class T, class Value>
void decode(const Value& value) {
  outcome([&] {
    value.check_codec(ps::litdata_array<T>::codec_name);
    typename ps::litdata_array<T>::scratch scratch;
    const auto view = ps::litdata_array<T>{}.decode(value, scratch).finish();
    touch({reinterpret_cast<const std::byte*>(view.data()), view.shape().elements() * sizeof(T)});
    must(view.shape().elements() * sizeof(T) <= value.size(), "values are within their leaf");
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(data, size);
  const auto wanted = in.number<std::uint16_t>();
  const ps::bytes_view rest = in.rest();
  const std::size_t length = std::min<std::size_t>(rest.size(), wanted);
  outcome([&] {
    const ps::litdata_index index = ps::litdata_index_from_string(ps::text_of(rest.first(length)));
    must(index.chunks.columns.size() == 1, "there is one list of leaves");
    if (index.chunks.shards.size() != 1 || index.tokens) return;
    const ps::bytes_view chunk = rest.subspan(length);
    const auto all = ps::litdata(ps::memory_files().add_view(index.chunks.shards[0].name, chunk), index);
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
              decode<std::uint8_t>(value);
              decode<float>(value);
              decode<std::int64_t>(value);
            }
            must(together <= chunk.size(), "no byte belongs to two leaves");
          });
        });
  });
  return 0;
}
