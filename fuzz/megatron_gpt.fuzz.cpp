// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The index, the tokens and the cache of a dataset of Megatron:
// [sequence length and extra token][samples][seed][four files, each behind 16 bits of size][tokens]

#include <penstock/source/megatron_gpt.hpp>
#include <penstock/storage/memory_files.hpp>

#include "support/fuzz.hpp"

using namespace penstock_fuzz;
namespace ps = penstock;

namespace {

using windows = ps::with_document_ids<ps::token_windows>;

void look_at(const ps::memory_files& files, const windows& window, const ps::megatron_gpt_options& options) {
  const auto source = ps::megatron_gpt<std::uint16_t>(files, window, options);
  must(source.size() != 0, "there are samples");
  const auto reader = source.connect();
  typename decltype(source)::reader::worker worker;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(source.size(), 100); ++i) {
    for (const std::uint64_t at : {i, source.size() - 1 - i}) {
      touch(reader.key(at));
      std::uint64_t bytes = 0;
      reader.ranges(at, [&](const auto&, ps::object_id, std::uint64_t begin, std::uint64_t size) {
        must(begin + size <= 2 * source.tokens(), "pieces are inside the file");
        bytes += size;
      });
      must(bytes == 2 * (window.length + window.targets), "pieces are a sample");
      reader.evaluate({0, at}, worker, [](const auto& sample) {
        const auto tokens = get<"tokens">(sample).finish();
        touch({reinterpret_cast<const std::byte*>(tokens.data()), tokens.size() * sizeof(std::uint16_t)});
        const auto ids = get<"document_ids">(sample).finish();
        must(ids.data()[0] == 0, "documents count from 0");
        for (std::size_t k = 1; k < ids.size(); ++k)
          must(static_cast<unsigned>(ids.data()[k] - ids.data()[k - 1]) <= 1, "documents count by one");
      });
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(data, size);
  const unsigned how = in.number();
  windows window;
  window.length = how / 2 + 1;
  window.targets = how % 2;
  ps::megatron_gpt_options options;
  options.samples = in.number();
  options.seed = in.number();
  constexpr std::string_view splits[] = {"", "1,1", "80,20,0", "0.3,0.3,0.4"};
  options.split = splits[options.seed % 4];
  options.part = static_cast<ps::megatron_part>(options.seed / 4 % 3);
  ps::memory_files files;
  for (const char* const name :
       {"x.idx", "c-document_index.npy", "c-sample_index.npy", "c-shuffle_index.npy"})
    files.add_view(name, in.take(in.number<std::uint16_t>()));
  files.add_view("x.bin", in.rest());
  outcome([&] { look_at(files, window, options); });
  options.cache = "c";
  outcome([&] { look_at(files, window, options); });
  return 0;
}
