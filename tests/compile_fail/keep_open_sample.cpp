// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: keep_in_memory of samples whose members are known only at run time

#include <penstock/codec/integer.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/keep_in_memory.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

/// A source of open samples, like a tar archive.
struct bag {
  using is_open_sample = void;
  using blob_type = penstock::bytes_view;
  [[nodiscard]] std::string_view key() const { return "k"; }
  [[nodiscard]] std::size_t size() const { return 1; }
  [[nodiscard]] std::string_view name(std::size_t) const { return "txt"; }
  [[nodiscard]] penstock::bytes_view member(std::size_t) const { return penstock::bytes_of("17"); }
};

int main() {
  const auto make = [](std::uint64_t) { return bag{}; };
#ifdef PENSTOCK_WRONG
  auto loader = penstock::generated(4, make) | penstock::keep_in_memory(1 << 20) |
                penstock::decode<penstock::integer> | penstock::batch(2);
#else
  auto loader = penstock::generated(4, make) | penstock::decode<penstock::integer> |
                penstock::keep_in_memory(1 << 20) | penstock::batch(2);
#endif
  int sum = 0;
  for (auto&& b : loader) sum += static_cast<int>(b.size());
  return sum == 0;
}
