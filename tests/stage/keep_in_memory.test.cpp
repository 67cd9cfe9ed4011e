// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/stage/keep_in_memory.hpp>

#include <penstock/codec/pixels.hpp>
#include <penstock/codec/text.hpp>
#include <penstock/image/flip.hpp>
#include <penstock/image/random_resized_crop.hpp>
#include <penstock/image/resize.hpp>
#include <penstock/inspection/describe.hpp>
#include <penstock/observe/verdict.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/concat.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/source/mix.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/bad_samples.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"
#include "support/count_allocations.hpp"
#include "support/noting_storage.hpp"
#include "support/raw_tar.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace keep_in_memory_test {

namespace ps = penstock;
using namespace penstock_test;
using namespace penstock::literals;

namespace {

constexpr std::uint64_t count = 500;

struct made {
  std::shared_ptr<std::atomic<std::uint64_t>> calls = std::make_shared<std::atomic<std::uint64_t>>(0);
  std::array<std::uint64_t, 8> operator()(std::uint64_t i) const {
    calls->fetch_add(1);
    return {i, i * i, 1, 2, 3, 4, 5, 6};
  }
};

[[nodiscard]] bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// A source that finds out only after it has shown number 3 that its bytes are bad.
struct late_source {
  using penstock_part = ps::source_tag;
  using element = std::uint64_t;
  static constexpr std::string_view source_name = "late";
  struct reader {
    struct worker {};
    template <class Sink>
    void evaluate(ps::position p, worker&, Sink&& sink) const {
      sink(p.index == 3 ? std::uint64_t{777} : p.index);
      if (p.index == 3) throw ps::error(ps::errc::checksum, "broken");
    }
  };
  [[nodiscard]] static std::uint64_t size() { return 10; }
  [[nodiscard]] static std::shared_ptr<const std::vector<std::uint64_t>> starts() { return nullptr; }
  [[nodiscard]] static std::uint64_t fingerprint() { return 1; }
  [[nodiscard]] static reader connect() { return {}; }
};

/// What two epochs deliver, and in which order.
template <class Plan>
std::vector<std::uint64_t> two_epochs(const Plan& plan) {
  std::vector<std::uint64_t> seen;
  auto run = plan.open();
  for (auto epoch : run.epochs(2))
    for (auto&& b : epoch)
      for (std::size_t i = 0; i < b.size(); ++i) seen.push_back(b.values()[i][0]);
  return seen;
}

}  // namespace

TEST_CASE("stage/keep_in_memory: later epochs make nothing anew, and the sequence is the same") {
  for (const unsigned workers : {0u, 1u, 3u}) {
    const made f;
    const auto source = ps::generated(count, [](std::uint64_t i) { return i; }) | ps::map(f);
    const auto plain = source | ps::shuffle(ps::seed(3)) | ps::batch(32) | ps::workers(workers);
    const auto expected = two_epochs(plain);
    f.calls->store(0);
    CHECK(two_epochs(source | ps::keep_in_memory(1_MiB) | ps::shuffle(ps::seed(3)) | ps::batch(32) |
                     ps::workers(workers)) == expected);
    // two workers may make one at the same time, where epochs meet
    CHECK(f.calls->load() >= count);
    CHECK(f.calls->load() <= count + 32);
  }
}

TEST_CASE("stage/keep_in_memory: what does not fit is made anew each time, and the limit holds") {
  const made f;
  const auto plan = ps::generated(count, [](std::uint64_t i) { return i; }) | ps::map(f) |
                    ps::keep_in_memory(40'000) | ps::shuffle(ps::seed(3)) | ps::batch(32) | ps::workers(2);
  auto run = plan.open();
  std::uint64_t sum = 0;
  for (auto epoch : run.epochs(3))
    for (auto&& b : epoch)
      for (std::size_t i = 0; i < b.size(); ++i) sum += b.values()[i][0];
  CHECK(sum == 3 * count * (count - 1) / 2);
  const ps::kept_counters kept = run.counters().kept;
  CHECK(kept.samples > 100);
  CHECK(kept.samples < count);
  CHECK(kept.bytes <= 40'000);
  CHECK(kept.hits > kept.samples);
  CHECK(f.calls->load() + kept.hits == 3 * count);
  CHECK(kept.uncached > 0);
  CHECK(kept.samples + kept.uncached <= f.calls->load());
  CHECK(
      has(ps::report(run.counters()), std::to_string(kept.uncached) + " made for which there was no room\n"));
  CHECK(run.counters().bytes_held >= kept.bytes);
  CHECK(has(ps::report(run.counters()), "kept in memory: "));
}

TEST_CASE("stage/keep_in_memory: random stages behind it draw as they do without it, and after a restore") {
  const auto source = ps::generated(count, [](std::uint64_t i) { return i; });
  const auto noisy = ps::map([](std::uint64_t i, ps::rng& random) {
    return std::array<std::uint64_t, 2>{i, random()};
  });
  const auto plain = source | ps::shuffle(ps::seed(3)) | noisy | ps::batch(32);
  const auto kept = source | ps::keep_in_memory(1_MiB) | ps::shuffle(ps::seed(3)) | noisy | ps::batch(32);
  auto one = plain.open();
  auto two = kept.open();
  (void)one.epochs(4), (void)two.epochs(4);
  std::optional<ps::state> state;
  for (int i = 0; i < 25; ++i) {
    auto a = one.next();
    auto b = two.next();
    REQUIRE(a->size() == b->size());
    for (std::size_t k = 0; k < a->size(); ++k) REQUIRE(a->values()[k][1] == b->values()[k][1]);
    if (i == 17) state = two.state();
  }
  auto again = plain.open(*state);  // it does not hold samples, and does not belong to the stage
  auto third = kept.open(*state);
  (void)again.epochs(4), (void)third.epochs(4);
  auto a = again.next();
  auto b = third.next();
  for (std::size_t k = 0; k < a->size(); ++k) REQUIRE(a->values()[k][1] == b->values()[k][1]);
}

TEST_CASE("stage/keep_in_memory: images stay images, which augmentations work on") {
  std::vector<std::vector<std::byte>> files;
  for (std::size_t i = 0; i < 40; ++i) {
    std::vector<std::byte> one(16 * 12 * 3);
    for (std::size_t k = 0; k < one.size(); ++k) one[k] = static_cast<std::byte>(ps::mix64(i * 1000 + k));
    files.push_back(std::move(one));
  }
  const auto images =
      ps::from(files) | ps::decode<ps::pixels<ps::rgb8>>(ps::pixels<ps::rgb8>{.width = 16, .height = 12});
  const auto augmented = [](const auto& plan) {
    return plan | ps::shuffle(ps::seed(1)) | ps::map(ps::random_resized_crop(8), ps::horizontal_flip()) |
           ps::batch(8) | ps::workers(2);
  };
  auto plain = augmented(images).open();
  auto kept = augmented(images | ps::keep_in_memory(1_MiB)).open();
  (void)plain.epochs(4), (void)kept.epochs(4);
  for (int i = 0; i < 15; ++i) {
    auto a = plain.next();
    auto b = kept.next();
    CHECK(std::ranges::equal(a->values().flat(), b->values().flat()));
  }
  static_assert(!ps::keepable<ps::pixel_view<std::uint8_t, 3>>);  // pixels that somebody else owns
  CHECK(kept.counters().kept.samples == 40);
  CHECK(kept.counters().kept.hits >= 80);
}

TEST_CASE("stage/keep_in_memory: encoded bytes before decode; what is kept is not read again") {
  raw_tar tar;
  for (int i = 0; i < 64; ++i) {
    tar.member(std::to_string(1000 + i) + ".txt", std::string(2000, static_cast<char>('a' + i % 26)));
    tar.member(std::to_string(1000 + i) + ".cls", std::to_string(i));
  }
  const noting_storage storage{ps::memory_files().add("a.tar", tar.end().bytes)};
  for (const unsigned workers : {0u, 2u}) {
    const auto plan =
        ps::webdataset(storage) | ps::fields<"txt", "cls"> | ps::keep_in_memory(1_MiB) |
        ps::decode<ps::field<"txt", ps::text>> | ps::shuffle(ps::seed(1)) | ps::map([](const auto& sample) {
          return std::array<std::uint64_t, 2>{ps::get<"txt">(sample).size(),
                                              static_cast<unsigned char>(ps::get<"txt">(sample)[0])};
        }) |
        ps::batch(16) | ps::workers(workers);
    auto run = plan.open();
    (void)run.epochs(9);
    for (int i = 0; i < 4; ++i) CHECK(run.next());
    // what was asked for ahead of its epoch
    for (int i = 0; i < 8; ++i) CHECK(run.next());
    storage.notes->clear();
    for (int i = 0; i < 8; ++i) {
      auto b = run.next();
      CHECK(b->values()[3][0] == 2000);
    }
    CHECK(storage.notes->reads.empty());
    CHECK(storage.notes->hints.empty());
    CHECK(run.counters().kept.samples == 64);
  }
}

TEST_CASE("stage/keep_in_memory: of a shard, each process keeps what it gets; records, texts and spans") {
  std::vector<std::string> words;
  for (int i = 0; i < 90; ++i) words.push_back("word " + std::to_string(i));
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    const auto plan = ps::from(words) | ps::keep_in_memory(1_MiB) | ps::shuffle(ps::seed(2)) |
                      ps::shard(rank, 3) | ps::map([](std::string_view w) { return w.size(); }) |
                      ps::batch(5) | ps::workers(1);  // of two, both may make a sample of which one is kept
    auto run = plan.open();
    std::uint64_t total = 0;
    for (auto epoch : run.epochs(4))
      for (auto&& b : epoch) total += b.size();
    CHECK(total == 120);
    CHECK(run.counters().kept.samples + run.counters().kept.hits == 120);
  }
}

TEST_CASE("stage/keep_in_memory: in plans that are joined, each with a limit of its own") {
  const made f;
  const auto one =
      ps::generated(100, [](std::uint64_t i) { return i; }) | ps::map(f) | ps::shuffle(ps::seed(4));
  const auto kept = ps::generated(100, [](std::uint64_t i) { return i; }) | ps::map(f) |
                    ps::keep_in_memory(1_MiB) | ps::shuffle(ps::seed(4));
  const auto expected = two_epochs(ps::mix(ps::weights{1, 1}, one, one) | ps::batch(10));
  f.calls->store(0);
  const auto plan = ps::mix(ps::weights{1, 1}, kept, kept) | ps::batch(10) | ps::workers(1);
  CHECK(two_epochs(plan) == expected);
  CHECK(f.calls->load() <= 200);
  auto run = plan.open();
  for (auto epoch : run.epochs(2))
    for (auto&& b : epoch) (void)b;
  CHECK(run.counters().kept.samples <= 200);
  CHECK(run.counters().kept.hits != 0);
}

TEST_CASE("stage/keep_in_memory: bad samples are not kept, and found bad in each epoch") {
  const auto f = [](std::uint64_t i) {
    if (i % 10 == 3) throw ps::error(ps::errc::format, "broken");
    return std::array<std::uint64_t, 1>{i};
  };
  const auto source = ps::generated(100, [](std::uint64_t i) { return i; }) | ps::map(f);
  const auto rest = [](const auto& plan) {
    return plan | ps::bad_samples::replace(50) | ps::shuffle(ps::seed(9)) | ps::batch(10) | ps::workers(2);
  };
  CHECK(two_epochs(rest(source | ps::keep_in_memory(1_MiB))) == two_epochs(rest(source)));
}

TEST_CASE("stage/keep_in_memory: a sample that turns out to be bad after it was shown is not kept either") {
  for (const unsigned workers : {0u, 2u}) {
    const auto plan = ps::plan<late_source>(late_source{}) | ps::keep_in_memory(1_MiB) |
                      ps::bad_samples::skip(100) | ps::batch(10) | ps::workers(workers);
    auto run = plan.open();
    (void)run.epochs(4);
    for (int i = 0; i < 4; ++i) {
      auto b = run.next();
      for (const std::uint64_t v : b->values()) CHECK(v != 777);
    }
    CHECK(run.counters().kept.samples == 9);
  }
}

TEST_CASE("stage/keep_in_memory: a filter before it decides once for what it lets through") {
  const auto seen = std::make_shared<std::atomic<std::uint64_t>>(0);
  const auto plan = ps::generated(100, [](std::uint64_t i) { return std::array<std::uint64_t, 1>{i}; }) |
                    ps::filter([seen](const auto& v) {
                      seen->fetch_add(1);
                      return v[0] % 2 == 0;
                    }) |
                    ps::keep_in_memory(1_MiB) | ps::batch(10) | ps::workers(1);
  const auto all = two_epochs(plan);
  CHECK(all.size() == 100);
  CHECK(seen->load() == 100 + 50);
}

TEST_CASE("stage/keep_in_memory: once all is kept, nothing is allocated") {
  const auto plan = ps::generated(256, [](std::uint64_t i) { return i; }) | ps::map([](std::uint64_t i) {
                      return std::array<std::uint64_t, 4>{i, i, i, i};
                    }) |
                    ps::keep_in_memory(1_MiB) | ps::shuffle(ps::seed(3)) | ps::batch(32) | ps::workers(0);
  auto run = plan.open();
  (void)run.epochs(9);
  for (int i = 0; i < 24; ++i) (void)run.next();
  std::uint64_t sum = 0;
  const std::uint64_t before = allocations;
  for (int i = 0; i < 16; ++i) sum += run.next()->values()[0][0];
  CHECK(allocations == before);
  CHECK(sum != 0);
}

TEST_CASE("stage/keep_in_memory: at a place that it chooses, the sequence is the plain plan's") {
  const auto source = ps::generated(count, [](std::uint64_t i) { return std::to_string(i); });
  const auto number =
      ps::map([](std::string_view text) { return std::vector<char>(text.begin(), text.end()); });
  const auto made = ps::map([](const auto& text) {
    if (text[0] == '4' && text.size() == 2) throw ps::error(ps::errc::format, "broken");
    std::array<std::uint64_t, 2> both{text.size(), 0};
    for (const char c : text) both[1] = both[1] * 10 + static_cast<std::uint64_t>(c - '0');
    return both;
  });
  const auto noisy = ps::map([](const std::array<std::uint64_t, 2>& v, ps::rng& random) {
    return std::array<std::uint64_t, 2>{v[1], v[1] ^ random()};
  });
  const auto rest = [&](const auto& plan, unsigned workers) {
    return plan | ps::shuffle(ps::seed(3)) | ps::bad_samples::replace(50) | ps::batch(32) |
           ps::workers(workers);
  };
  const auto pairs = [](auto& run, int batches) {
    std::vector<std::array<std::uint64_t, 2>> seen;
    for (int k = 0; k < batches; ++k) {
      auto b = run.next();
      for (std::size_t i = 0; i < b->size(); ++i) seen.push_back({b->values()[i][0], b->values()[i][1]});
    }
    return seen;
  };
  const auto before = source | number | made;
  const auto plain = rest(before | noisy, 0);
  auto plain_run = plain.open();
  (void)plain_run.epochs(3);
  const auto expected = pairs(plain_run, 48);
  for (const unsigned workers : {0u, 3u}) {
    for (std::uint32_t place = 0; place <= 3; ++place) {
      const auto plan = rest(before | noisy | ps::keep_in_memory(1_MiB, ps::keep_at{place}), workers);
      auto run = plan.open();
      (void)run.epochs(3);
      auto seen = pairs(run, 20);
      const ps::state state = run.state();
      const auto more = pairs(run, 28);
      const ps::run_counters counters = run.counters();
      REQUIRE(counters.kept.choices.size() == 1);
      const ps::kept_choice& choice = counters.kept.choices[0];
      CHECK(choice.places.size() == 3);
      CHECK(choice.places[0].behind == "generated");
      CHECK(choice.places[2].behind == "map");
      CHECK(choice.random_behind == "map");
      CHECK(choice.chosen != ps::kept_choice::undecided);
      CHECK(has(ps::report(counters), ps::why_kept(choice) + "\n"));
      if (place != 0) {
        CHECK(choice.chosen == place - 1);
        CHECK(counters.kept.hits > count);
        CHECK(counters.kept.samples == count - 10);
        CHECK(has(ps::why_kept(choice), "as the program says"));
      }
      auto again = plan.open(state);
      (void)again.epochs(3);
      const auto restored = pairs(again, 28);
      CHECK(restored == more);
      seen.insert(seen.end(), more.begin(), more.end());
      CHECK(seen == expected);
    }
  }
}

TEST_CASE("stage/keep_in_memory: chooses what saves most, and what does not fit passes as it is") {
  const auto slow = [](auto v) {
    std::uint64_t x = v[0];
    for (int i = 0; i < 20'000; ++i) x = ps::mix64(x);
    return std::array<std::uint64_t, 2>{v[0], x};
  };
  const auto source = ps::generated(count, [](std::uint64_t i) { return std::array<std::uint64_t, 1>{i}; });
  // as it stands behind the dear stage, in the middle of a plan, and before one
  const auto expected = two_epochs(source | ps::map(slow) | ps::batch(10));
  const auto plan = source | ps::map(slow) | ps::keep_in_memory(20'000, ps::keep_at::automatic) |
                    ps::batch(10) | ps::workers(2);
  CHECK(two_epochs(plan) == expected);
  auto run = plan.open();
  for (auto epoch : run.epochs(3))
    for (auto&& b : epoch) (void)b;
  const ps::kept_counters kept = run.counters().kept;
  CHECK(kept.choices[0].chosen == 1);
  CHECK(kept.choices[0].places[1].saved_seconds > 0);
  CHECK(kept.bytes <= 20'000);
  CHECK(kept.samples > 50);
  CHECK(kept.hits > 0);
  CHECK(kept.uncached > 0);
  const std::string why = ps::why_kept(kept.choices[0]);
  CHECK(has(why, "kept behind map: saves "));
  CHECK(has(why, " of 500 samples fit in 20.0 kB; behind generated: "));

  auto cheap = (source | ps::keep_in_memory(1_MiB, ps::keep_at::automatic) | ps::map(slow) | ps::batch(10) |
                ps::workers(0))
                   .open();
  CHECK(has(ps::report(cheap.counters()), "keep_in_memory: measures what to keep"));
  ps::kept_choice none = kept.choices[0];
  none.chosen = none.places.size();
  none.places[0].differs = true;
  CHECK(has(ps::why_kept(none), "nothing is kept in memory: no place saves much of the "));
  CHECK(has(ps::why_kept(none), "; behind generated, values could be others"));
  CHECK_THROWS_AS((source | ps::keep_in_memory(1_MiB, ps::keep_at{9}) | ps::batch(10)).open(), ps::error);
}

TEST_CASE("stage/keep_in_memory: whole images or parts of them, at any place") {
  std::vector<std::vector<std::byte>> files;
  for (std::size_t i = 0; i < 40; ++i) {
    std::vector<std::byte> one(16 * 12 * 3);
    for (std::size_t k = 0; k < one.size(); ++k) one[k] = static_cast<std::byte>(ps::mix64(i * 1000 + k));
    files.push_back(std::move(one));
  }
  const auto images = ps::from(files) |
                      ps::decode<ps::pixels<ps::rgb8>>(ps::pixels<ps::rgb8>{.width = 16, .height = 12}) |
                      ps::map(ps::resize(10, 9));
  const auto augmented = [](const auto& plan) {
    return plan | ps::map(ps::random_resized_crop(8), ps::horizontal_flip()) | ps::shuffle(ps::seed(1)) |
           ps::batch(8) | ps::workers(2);
  };
  const auto values = [](const auto& plan) {
    std::vector<std::uint8_t> all;
    auto run = plan.open();
    for (auto epoch : run.epochs(3))
      for (auto&& b : epoch) all.insert(all.end(), b.values().flat().begin(), b.values().flat().end());
    return all;
  };
  const auto expected = values(augmented(images));
  for (std::uint32_t place = 0; place <= 3; ++place)
    CHECK(values(augmented(images | ps::keep_in_memory(1_MiB, ps::keep_at{place}))) == expected);
}

TEST_CASE("stage/keep_in_memory: describes itself, and refuses a limit of 0") {
  const auto plan = ps::from({1, 2, 3}) | ps::keep_in_memory(8_MiB);
  CHECK(has(ps::describe(plan), "keep_in_memory(8388608)"));
  CHECK_THROWS_AS(ps::keep_in_memory(0), ps::error);
  CHECK(has(ps::describe(ps::from({1}) | ps::keep_in_memory(8_MiB, ps::keep_at::automatic)),
            "keep_in_memory(8388608, keep_at::automatic)"));
  static_assert(ps::indexed<decltype(plan)> && ps::elastic<decltype(plan)> && ps::resumable<decltype(plan)>);
}

}  // namespace keep_in_memory_test
