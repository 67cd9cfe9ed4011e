// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/megatron_gpt_options.hpp>

#include <penstock/source/megatron_gpt.hpp>
#include <penstock/storage/memory_files.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/megatron_files.hpp"

namespace megatron_gpt_options_test {

namespace ps = penstock;

TEST_CASE("source/megatron_gpt_options: what is not said is what Megatron's own options default to") {
  const ps::megatron_gpt_options said_nothing;
  CHECK(said_nothing.samples == 0);
  CHECK(said_nothing.seed == 1234);
  CHECK(said_nothing.split.empty());
  CHECK(said_nothing.part == ps::megatron_part::train);
  CHECK(said_nothing.cache.empty());
  const auto memory = ps::memory_files()
                          .add("made.bin", codec_test::to_vector(penstock_test::megatron_oracle("made.bin")))
                          .add("made.idx", codec_test::to_vector(penstock_test::megatron_oracle("made.idx")));
  const auto source = ps::megatron_gpt<std::uint16_t>(memory, ps::token_window<16>{});
  CHECK(source.epochs() == 1);
  const auto all = ps::megatron_gpt<std::uint16_t>(memory, ps::token_window<16>{}, {.split = "7"});
  CHECK(all.fingerprint() == source.fingerprint());
  const auto part = ps::megatron_gpt<std::uint16_t>(memory, ps::token_window<16>{}, {.split = "1,1"});
  CHECK(part.size() < source.size());
}

}  // namespace megatron_gpt_options_test
