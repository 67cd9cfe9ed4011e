// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Token files of three layouts: [layout and window][bytes of a first file, 16 bits][first file][second file]

#include <penstock/source/tokens.hpp>
#include <penstock/storage/memory_files.hpp>

#include "support/fuzz.hpp"

using namespace penstock_fuzz;
namespace ps = penstock;

namespace {

template <class Source>
void look_at(const Source& source, std::uint64_t bytes) {
  using T = typename Source::element::value_type;
  const auto reader = source.connect();
  typename Source::reader::worker worker;
  must(source.tokens() <= bytes / sizeof(T), "no more tokens than bytes for them");
  must(source.size() <= source.tokens(), "no more windows than tokens");
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(source.size(), 100); ++i) {
    for (const std::uint64_t at : {i, source.size() - 1 - i}) {
      touch(reader.key(at));
      reader.evaluate({0, at}, worker, [](const auto& window) {
        const auto view = window.finish();
        touch({reinterpret_cast<const std::byte*>(view.data()), view.shape().elements() * sizeof(T)});
      });
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(data, size);
  const unsigned how = in.number();
  const ps::bytes_view first = in.take(in.number<std::uint16_t>());
  const ps::bytes_view second = in.rest();
  const ps::token_windows window{.length = how / 8 % 8 + 1, .stride = how / 64 + 1};
  ps::token_windows documents = window;
  documents.within_documents = true;
  const auto two = ps::memory_files().add_view("a.bin", first).add_view("b.bin", second);
  const auto pair = ps::memory_files().add_view("a.idx", first).add_view("a.bin", second);
  const std::uint64_t bytes = first.size() + second.size();
  outcome([&] {
    switch (how % 6) {
      case 0:
        return look_at(ps::raw_tokens<std::uint16_t>(two, window), bytes);
      case 1:
        return look_at(ps::llmc_tokens<std::uint16_t>(two, window), bytes);
      case 2:
        return look_at(ps::llmc_tokens<std::uint32_t>(two, window), bytes);
      case 3:
        return look_at(ps::megatron_tokens<std::uint16_t>(pair, window), bytes);
      case 4:
        return look_at(ps::megatron_tokens<std::uint16_t>(pair, documents), bytes);
      default:
        return look_at(ps::megatron_tokens<std::int32_t>(pair, documents), bytes);
    }
  });
  return 0;
}
