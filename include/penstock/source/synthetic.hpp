// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/fingerprint.hpp>
#include <penstock/core/opens_as_plan.hpp>
#include <penstock/source/concepts.hpp>

#include <algorithm>
#include <chrono>
#include <thread>

namespace penstock::inline v0_1 {

/// How a synthetic sample spends its time: computing on a core, like a decoder, or waiting, like a disk read.
enum class synthetic_wait { spin, sleep };

/// Options of `synthetic`.
struct synthetic_options {
  std::uint64_t samples = 0;
  /// Bytes in each sample.
  std::uint64_t bytes = 0;
  /// The time that each sample takes, on average, before `tail_factor`.
  std::chrono::nanoseconds cost{0};
  /// From 0 to 1: the time is drawn evenly from cost * (1 - jitter) to cost * (1 + jitter).
  double jitter = 0;
  std::uint64_t seed = 0;
  /// With this probability a sample takes `tail_factor` times as long.
  double tail_probability = 0;
  double tail_factor = 1;
  synthetic_wait wait = synthetic_wait::spin;
  /// The number of shards the dataset claims to have, equal in size to within one sample; 0 for none.
  std::uint64_t shards = 0;
};

/// The bytes of one synthetic sample: a blob. Word j of 8 bytes is `mix64(seed ^ mix64(index)) + j *
/// 0x9e3779b97f4a7c15`, little-endian.
class synthetic_bytes {
 public:
  using unfinished = void;

  synthetic_bytes(std::uint64_t first_word, std::uint64_t size, buffer& scratch) noexcept
      : first_word_(first_word), size_(size), scratch_(&scratch) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  void read_into(mutable_bytes into) const noexcept {
    std::uint64_t word = first_word_;
    std::size_t at = 0;
    for (; at + 8 <= into.size(); at += 8, word += step) detail::store_little(into.data() + at, word);
    for (; at != into.size(); ++at, word >>= 8) into[at] = static_cast<std::byte>(word);
  }
  [[nodiscard]] bytes_view finish() const {
    scratch_->resize_for_overwrite(static_cast<std::size_t>(size_));
    read_into(scratch_->span());
    return scratch_->view();
  }

 private:
  static constexpr std::uint64_t step = 0x9e3779b97f4a7c15u;
  std::uint64_t first_word_;
  std::uint64_t size_;
  buffer* scratch_;
};

/// The source that `synthetic` makes.
class synthetic_source : public opens_as_plan<synthetic_source> {
 public:
  using penstock_part = source_tag;
  using element = synthetic_bytes;
  static constexpr std::string_view source_name = "synthetic";

  class reader {
   public:
    struct worker {
      buffer scratch;
    };
    explicit reader(const synthetic_options& options) noexcept : options_(options) {}

    template <class Sink>
    void evaluate(position p, worker& w, Sink&& sink) const {
      spend(cost_of(p));
      sink(synthetic_bytes(mix64(options_.seed ^ mix64(p.index)), options_.bytes, w.scratch));
    }
    /// The time that the sample at this position takes, which is equal in every run.
    [[nodiscard]] std::chrono::nanoseconds cost_of(position p) const noexcept {
      if (options_.cost.count() == 0) return options_.cost;
      rng random(options_.seed, p.epoch, p.index, stream);
      double factor = 1 + options_.jitter * (2 * random.uniform() - 1);
      if (random.chance(options_.tail_probability)) factor *= options_.tail_factor;
      return std::chrono::nanoseconds(
          static_cast<std::int64_t>(static_cast<double>(options_.cost.count()) * factor));
    }
    [[nodiscard]] std::string key(std::uint64_t index) const { return std::to_string(index); }
    [[nodiscard]] std::uint64_t bytes_per_sample() const noexcept { return options_.bytes; }

   private:
    static constexpr std::uint64_t stream = 0x73796e;

    void spend(std::chrono::nanoseconds time) const {
      if (time.count() == 0) return;
      if (options_.wait == synthetic_wait::sleep) {
        std::this_thread::sleep_for(time);
      } else {
        for (const auto end = std::chrono::steady_clock::now() + time;
             std::chrono::steady_clock::now() < end;) {
        }
      }
    }

    synthetic_options options_;
  };

  explicit synthetic_source(const synthetic_options& options) : options_(options) {
    const auto in_0_1 = [](double x) { return x >= 0 && x <= 1; };
    if (!in_0_1(options.jitter) || !in_0_1(options.tail_probability) || !(options.tail_factor >= 0) ||
        options.cost.count() < 0)
      throw error(
          errc::argument,
          "synthetic: jitter and tail_probability must be from 0 to 1, cost and tail_factor not negative");
    if (options.shards == 0) return;
    if (options.shards > options.samples)
      throw error(errc::argument, "synthetic: there cannot be more shards than samples");
    std::vector<std::uint64_t> starts(detail::to_size(options.shards + 1));
    const std::uint64_t each = options.samples / options.shards, longer = options.samples % options.shards;
    for (std::uint64_t i = 0; i <= options.shards; ++i)
      starts[detail::to_size(i)] = i * each + std::min(i, longer);
    starts_ =
        shared<const std::vector<std::uint64_t>>(new const std::vector<std::uint64_t>(std::move(starts)));
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return options_.samples; }
  [[nodiscard]] shared<const std::vector<std::uint64_t>> starts() const noexcept { return starts_; }
  [[nodiscard]] std::string describe() const {
    return detail::text({"synthetic(", options_.samples, " samples of ", options_.bytes, " bytes, ",
                         options_.cost.count(), " ns each)"});
  }
  /// Covers everything that determines the content, so not the cost.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept {
    return penstock::fingerprint{}
        .add(source_name, options_.samples, options_.bytes, options_.seed, options_.shards)
        .value();
  }
  [[nodiscard]] reader connect() const noexcept { return reader(options_); }

 private:
  synthetic_options options_;
  shared<const std::vector<std::uint64_t>> starts_;
};

/// The function object behind `synthetic`.
struct synthetic_fn {
  [[nodiscard]] synthetic_source operator()(const synthetic_options& options) const {
    return synthetic_source(options);
  }
};

/// A made-up dataset for measurements and tests: samples of a given size that take a given time, without
/// storage.
///
/// In: `synthetic_options`. Out: blobs of `bytes` bytes whose content depends on seed and index only. The
/// time is spent, spinning or sleeping, before a sample is delivered; it depends on seed, epoch and index,
/// never on threads or runs.
/// Kind: an indexed source; indexed, deterministic, resumable, elastic, lockstep. Cost per sample: the time
/// asked for, and one pass over the bytes to write them; no allocation, except for the scratch of `finish`.
/// Threads: any number at once.
/// Throws `errc::argument` for options out of range.
///
///     auto slow_disk = synthetic({.samples = 10'000, .bytes = 100'000, .cost = std::chrono::microseconds(500),
///                                 .jitter = 0.5, .tail_probability = 0.01, .tail_factor = 20, .wait = synthetic_wait::sleep});
inline constexpr synthetic_fn synthetic{};

}  // namespace penstock::inline v0_1
