// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row 3: samples of 4 bytes through the engine with one worker, against a ring of batches between two
// threads, written by hand.

#include "support/harness.hpp"

#include <penstock/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/workers.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ps = penstock;

namespace {

/// A ring of batch buffers for one producer and one consumer. A waiting side polls 300 times if both have a
/// processor, then parks; only a sleeping side is woken (the standard library counts waiters; the stores are
/// sequentially consistent so that they cannot pass that count, or a wake-up would be lost). Each side keeps
/// a copy of the other's counter and reads the shared one only when the copy says that it must wait.
class batch_ring {
 public:
  batch_ring(std::span<const std::uint32_t> data, std::size_t batch, std::size_t buffers)
      : data_(data), batch_(batch), slots_(buffers), spins_(ps::usable_processors() >= 2 ? 300 : 0) {
    for (auto& s : slots_) s.resize(batch);
    producer_ = std::thread([this] { produce(); });
  }
  batch_ring(const batch_ring&) = delete;
  batch_ring& operator=(const batch_ring&) = delete;
  ~batch_ring() {
    stop_.store(true, std::memory_order_seq_cst);
    epoch_.fetch_add(1, std::memory_order_seq_cst);
    epoch_.notify_one();
    producer_.join();
  }

  /// One pass over the data; `look(values, count)` sees each batch.
  template <class Look>
  std::uint64_t pass(Look look) {
    const std::size_t steps = (data_.size() + batch_ - 1) / batch_;
    epoch_.fetch_add(1, std::memory_order_seq_cst);
    epoch_.notify_one();
    std::uint64_t sum = 0;
    for (std::size_t step = 0; step < steps; ++step, ++taken_) {
      if (made_seen_ == taken_) made_seen_ = wait_beyond(made_, taken_);
      const std::size_t count = std::min(batch_, data_.size() - step * batch_);
      sum += look(slots_[taken_ % slots_.size()].data(), count);
      given_back_.store(taken_ + 1, std::memory_order_seq_cst);
      given_back_.notify_one();
    }
    return sum;
  }

 private:
  static void relax() {
#if defined(__x86_64__)
    _mm_pause();
#endif
  }
  std::uint32_t wait_beyond(const std::atomic<std::uint32_t>& counter, std::uint32_t seen) const {
    for (unsigned i = 0; i < spins_; ++i) {
      const std::uint32_t now = counter.load(std::memory_order_acquire);
      if (now != seen) return now;
      relax();
    }
    while (true) {
      counter.wait(seen, std::memory_order_acquire);
      const std::uint32_t now = counter.load(std::memory_order_acquire);
      if (now != seen) return now;
    }
  }
  void produce() {
    std::uint32_t epoch = 0, made = 0, given_back = 0;
    const auto room = static_cast<std::uint32_t>(slots_.size());
    while (true) {
      epoch_.wait(epoch, std::memory_order_seq_cst);
      ++epoch;
      if (stop_.load(std::memory_order_seq_cst)) return;
      for (std::size_t begin = 0; begin < data_.size(); begin += batch_, ++made) {
        while (made - given_back == room) given_back = wait_beyond(given_back_, given_back);
        auto& into = slots_[made % slots_.size()];
        const std::size_t count = std::min(batch_, data_.size() - begin);
        std::memcpy(into.data(), data_.data() + begin, count * sizeof(std::uint32_t));
        made_.store(made + 1, std::memory_order_seq_cst);
        made_.notify_one();
      }
    }
  }

  std::span<const std::uint32_t> data_;
  std::size_t batch_;
  std::vector<std::vector<std::uint32_t>> slots_;
  unsigned spins_;
  std::uint32_t taken_ = 0, made_seen_ = 0;
  alignas(64) std::atomic<std::uint32_t> epoch_{0};
  alignas(64) std::atomic<std::uint32_t> made_{0};
  alignas(64) std::atomic<std::uint32_t> given_back_{0};
  alignas(64) std::atomic<bool> stop_{false};
  std::thread producer_;
};

/// Samples in flight in the reference: as many as the engine holds by default.
constexpr std::size_t buffered_samples = 32'768;

std::uint64_t sum_of(const std::uint32_t* values, std::size_t count) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += values[i];
  return sum;
}

void measure(const bench::options& o) {
  std::vector<std::uint32_t> values(o.quick ? 1u << 21 : 1u << 22);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint32_t>(ps::mix64(i));
  const std::span<const std::uint32_t> data(values);
  const auto one = [&](const bench::row& r, std::size_t batch) {
    if (!o.wants(r.id)) return;
    auto run = (ps::from(data) | ps::batch(batch) | ps::workers(1)).open();
    batch_ring reference(data, batch, buffered_samples / batch);
    bench::compare(o, r,
                   bench::epochs_of(run,
                                    [](auto& b) {
                                      const auto v = b.values();
                                      return sum_of(v.data(), v.size());
                                    }),
                   [&] { return reference.pass(sum_of); });
  };
  one({"3a", "4-byte samples, batch(256), 1 worker / ring of batches by hand", 0.8}, 256);
  one({"3b", "the same, batch(4096)", 0.9}, 4096);
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, measure); }
