// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The state of a run, as text and as numbers that a text may hold; runs open with it or refuse it:
// [1 numbers, 6 which plan][text or numbers]

#include <penstock/order/repeat.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/stage/steps.hpp>
#include <penstock/stage/workers.hpp>

#include "support/fuzz.hpp"

using namespace penstock_fuzz;
namespace ps = penstock;

namespace {

template <class Plan>
void resume(const Plan& plan, ps::state s) {
  static const ps::state begin = plan.open().state();
  s.dataset = begin.dataset;
  s.sequence = begin.sequence;
  outcome([&] {
    auto run = plan.open(s);
    for (int i = 0; i < 3 && run.next(); ++i) {
    }
    const ps::state now = run.state();
    must(ps::state_from_string(ps::to_string(now)) == now, "a state is written and read back");
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto numbers = ps::generated(50, [](std::uint64_t i) { return i; }) | ps::shuffle(ps::seed(3));
  input in(data, size);
  const unsigned how = in.number();
  ps::state s;
  if ((how & 1) != 0) {
    ps::detail::for_each_state_number(s, [&](std::string_view, std::uint64_t& n) {
      // small numbers more often than large ones
      const unsigned bits = in.number() % 65;
      n = in.number<std::uint64_t>() & (bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1);
    });
    for (unsigned held = in.number() % 16; held != 0; --held)
      s.held.push_back(in.number() == 0 ? in.number<std::uint64_t>() : in.number());
    for (unsigned words = in.number() % 8; words != 0; --words)
      s.plan.push_back(ps::detail::as_utf8(ps::text_of(in.take(in.number() % 16))));
  } else if (!outcome([&] { s = ps::state_from_string(ps::text_of(in.rest())); }).empty()) {
    return 0;
  }
  if (s.version == ps::state::current_version)
    must(ps::state_from_string(ps::to_string(s)) == s, "a state is written and read back");
  if ((how & 6) == 0) resume(numbers | ps::batch(4) | ps::workers(1), s);
  if ((how & 6) == 2) resume(numbers | ps::shuffle_buffer(9) | ps::batch(4) | ps::workers(1), s);
  if ((how & 6) == 4) {
    resume(numbers | ps::filter([](std::uint64_t i) { return i % 3 != 0; }) | ps::batch(4) | ps::steps(7) |
               ps::workers(1),
           s);
  }
  if ((how & 6) == 6) resume(numbers | ps::repeat(3) | ps::batch(4) | ps::workers(1), s);
  return 0;
}
