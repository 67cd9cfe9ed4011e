// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two loaders and a timer on one io_context and one thread: it awaits batches, and can cancel a wait.

#include <penstock/integration/asio.hpp>

#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/workers.hpp>

#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>

namespace ps = penstock;
using namespace asio::experimental::awaitable_operators;

namespace {

auto loader(std::uint64_t samples) {
  return ps::generated(samples, [](std::uint64_t i) { return i; }) | ps::shuffle(ps::seed(7)) |
         ps::batch(32) | ps::workers(1);
}

/// Two epochs. If no batch comes within a second it could do something else; the batch is not lost.
asio::awaitable<std::uint64_t> sum_of(asio::io_context& io, std::uint64_t samples) {
  ps::async_run batches(io, loader(samples).open(), 2);
  asio::steady_timer timer(io);
  std::uint64_t sum = 0;
  while (true) {
    timer.expires_after(std::chrono::seconds(1));
    auto first = co_await (batches.next() || timer.async_wait(asio::use_awaitable));
    if (first.index() == 1) continue;  // a second has passed
    auto& batch = std::get<0>(first);
    if (!batch) co_return sum;
    for (const std::uint64_t x : *batch) sum += x;
  }
}

asio::awaitable<std::uint64_t> sum_of_three_epochs(asio::io_context& io) {
  ps::async_run batches(io, loader(100).open(), 3);
  std::uint64_t sum = 0;
  while (auto batch = co_await batches.next())
    for (const std::uint64_t x : *batch) sum += x;
  co_return sum;
}

}  // namespace

int main() {
  asio::io_context io;
  std::uint64_t train = 0, validate = 0, plain = 0;
  const auto into = [](std::uint64_t& result) {
    return [&result](std::exception_ptr what, std::uint64_t sum) {
      if (what) std::rethrow_exception(what);
      result = sum;
    };
  };
  asio::co_spawn(io, sum_of(io, 1000), into(train));
  asio::co_spawn(io, sum_of(io, 100), into(validate));
  asio::co_spawn(io, sum_of_three_epochs(io), into(plain));
  io.run();
  std::printf("%llu and %llu\n", static_cast<unsigned long long>(train),
              static_cast<unsigned long long>(validate));
  return train == 2 * 499'500 && validate == 2 * 4950 && plain == 3 * 4950 ? 0 : 1;
}
