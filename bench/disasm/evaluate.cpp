// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The loop over the slots of a batch in functions of their own, so that a disassembler can show that a chain
// of stages becomes one function without a call through a pointer. tools/check_indirect_calls.py reads the
// functions `slots_of_...` of this object.

#include <penstock/codec/npy.hpp>
#include <penstock/core/plan.hpp>
#include <penstock/device/host.hpp>
#include <penstock/evaluation/stage_chain.hpp>
#include <penstock/run/engine/engine.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/workers.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace ps = penstock;

namespace {

/// The types of a run of a plan, and its slot loop as a worker runs it.
template <class Plan>
struct loop {
  using engine = ps::engine<Plan>;
  using chain = typename engine::chain_type;
  using worker = typename chain::worker;
  using columns = typename engine::columns_type;

  [[gnu::always_inline]] static void run(const chain& evaluate, worker& w, columns& into, std::uint64_t first,
                                         std::uint64_t last) {
    for (std::uint64_t slot = first; slot < last; ++slot)
      evaluate.evaluate(
          {{0, slot}, {0, slot}}, w, [&]<class V>(V&& value) { into.write(slot, std::forward<V>(value)); },
          ps::untimed{});
  }
};

[[maybe_unused]] inline auto numbers() {
  return ps::from(std::vector<int>{}) | ps::map([](int x) { return x * 3 + 1; }) |
         ps::map([](int x) { return x ^ 5; }) | ps::batch(256);
}
[[maybe_unused]] inline auto shards() {
  return ps::webdataset("shard.tar") | ps::fields<"npy"> | ps::decode<ps::field<"npy", ps::npy<float>>> |
         ps::batch(64);
}
using of_numbers = loop<decltype(numbers())>;
using of_shards = loop<decltype(shards())>;

}  // namespace

int sum_of_copies(std::vector<int> values);

extern "C" void slots_of_numbers(const void* chain, void* worker, void* columns, std::uint64_t first,
                                 std::uint64_t last) {
  of_numbers::run(*static_cast<const of_numbers::chain*>(chain), *static_cast<of_numbers::worker*>(worker),
                  *static_cast<of_numbers::columns*>(columns), first, last);
}
extern "C" void slots_of_shards(const void* chain, void* worker, void* columns, std::uint64_t first,
                                std::uint64_t last) {
  of_shards::run(*static_cast<const of_shards::chain*>(chain), *static_cast<of_shards::worker*>(worker),
                 *static_cast<of_shards::columns*>(columns), first, last);
}

/// A run whose worker only copies numbers: its loop is to have packed instructions.
int sum_of_copies(std::vector<int> values) {
  const auto loader = ps::from(std::move(values)) | ps::batch(256) | ps::workers(1);
  int sum = 0;
  for (auto&& batch : loader.epoch(0))
    for (const int x : batch) sum += x;
  return sum;
}

int main() {}
