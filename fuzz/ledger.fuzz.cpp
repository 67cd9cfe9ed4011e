// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The lines of a ledger of bad samples, which are read, and proved for a plan: [text]

#include <penstock/inspection/ledger_proof.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/bad/bad_tally.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>

#include "support/fuzz.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

using namespace penstock_fuzz;
namespace ps = penstock;

namespace {

/// The line that a run would write of what was read.
std::string written(const ps::bad_entry& one) {
  ps::error what(ps::errc::format, one.reason);
  if (one.offset) what.at_offset(*one.offset);
  ps::bad_slot slot{0, {one.epoch, one.index}, what.in_stage(one.stage)};
  if (one.substitute) slot.substitute = ps::position{one.epoch, one.substitute->index};
  ps::sample_place other;
  if (one.substitute) other = {one.substitute->source, one.substitute->key, one.substitute->file};
  return ps::ledger_line(slot, {.rank = one.rank, .size = std::numeric_limits<std::uint64_t>::max()},
                         {one.source, one.key, one.file}, other);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto plan =
      ps::generated(50, [](std::uint64_t i) { return i; }) | ps::shuffle(ps::seed(3)) | ps::global_batch(8);
  const std::string_view text = ps::text_of(input(data, size).rest());
  std::vector<ps::bad_entry> all;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    outcome([&] {
      const auto one = ps::bad_entry_from(text.substr(begin, end - begin));
      if (!one) return;
      const auto again = ps::bad_entry_from(written(*one));
      must(again.has_value(), "what was read is written so that it is read");
      must(again->index == one->index && again->source == one->source, "a line is read as it was written");
      must(again->substitute.has_value() == one->substitute.has_value(), "and so is what stands in");
      all.push_back(*one);
    });
    begin = end + 1;
  }
  outcome([&] {
    const ps::ledger_proof found = ps::prove_ledger(plan, all);
    must(found.all.skipped + found.all.replaced + found.again == all.size(), "each line is counted");
    touch(to_string(found));
  });
  return 0;
}
